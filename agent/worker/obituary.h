// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What the keeper runs if the agent was killed. A value.
struct Obituary {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // `NAME=value` each, added to the keeper's own environment.
};

// The message that names a directory which a killed agent leaves behind: this word, then the path.
inline constexpr absl::string_view kDirectoryWord = "directory ";

inline constexpr size_t kMaxObituaryBytes = 64 * 1024;

// One message with all of it: "2\0argv0\0argv1\0NAME=value", the count of argv, then all strings,
// a NUL between each. Pure.
std::string EncodeObituary(const Obituary& obituary);

// Unset: `message` is none, or names no program. Pure.
std::optional<Obituary> DecodeObituary(absl::string_view message);

}  // namespace hlaunch
