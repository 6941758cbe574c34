// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// Ranks in their order as "0-3,7". Pure.
std::string RankList(const std::vector<Rank>& ranks);

// The reverse, also of "[0, 1]"; what is no number is passed over, and so is what is beyond 65,536
// ranks. Pure.
std::vector<Rank> ParseRankList(absl::string_view list);

}  // namespace hlaunch
