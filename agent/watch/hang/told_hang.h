// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// What node rank 0 tells the other nodes about a hang. A value.
struct ToldHang {
  std::string text;                     // For a person, several lines.
  std::map<Rank, std::string> reasons;  // For the ranks that are to fail; may be empty.
};

// At most `max_bytes`: leaves out the last ranks that are to fail, and lines. Pure.
std::string ToText(ToldHang hang, size_t max_bytes = std::string::npos);

// Unset if `text` is something else. The content may be shown on a terminal. Pure.
std::optional<ToldHang> ParseToldHang(absl::string_view text);

}  // namespace hlaunch
