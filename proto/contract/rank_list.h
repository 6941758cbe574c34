// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// Writes ranks in their order, as in "0-3,7". Pure.
std::string RankList(const std::vector<Rank>& ranks);

// The reverse; it reads "[0, 1]" too. Words that are no numbers are skipped, and so is everything
// beyond 65,536 ranks. Pure.
std::vector<Rank> ParseRankList(absl::string_view list);

}  // namespace hlaunch
