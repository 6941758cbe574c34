// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The program that the keeper runs if the agent was killed. A value.
struct DeathReport {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // `NAME=value` each, added to the keeper's own environment.
};

// The message that names a directory to remove after a killed agent: this word, then the path.
inline constexpr absl::string_view kDirectoryWord = "directory ";

// The message with which the agent says that it has begun.
inline constexpr absl::string_view kBegunWord = "begun";

inline constexpr size_t kMaxDeathReportBytes = 64 * 1024;

// Encodes everything in one message: "2\0argv0\0argv1\0NAME=value". It has the count of argv, then
// all strings, with a NUL between them. Pure.
std::string EncodeDeathReport(const DeathReport& death_report);

// Unset if `message` is not a death report or names no program. Pure.
std::optional<DeathReport> DecodeDeathReport(absl::string_view message);

}  // namespace hlaunch
