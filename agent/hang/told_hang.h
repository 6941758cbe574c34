// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// What node rank 0 tells the others of a hang. A value.
struct ToldHang {
  std::string text;                     // For a person, of several lines.
  std::map<Rank, std::string> reasons;  // By the ranks that are to fail, where that is wished.
};

// Pure.
std::string ToText(const ToldHang& hang);

// Unset: `text` is none. What is in it may be shown on a terminal. Pure.
std::optional<ToldHang> ParseToldHang(absl::string_view text);

}  // namespace hlaunch
