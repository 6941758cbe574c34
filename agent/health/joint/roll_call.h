// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

// What each rank says, by rank.
using RollCall = std::map<Rank, std::string>;

// Says `line` for `rank` under `key`, and waits until all `ranks` have said theirs or `deadline`
// has come. All nodes get the same answer: that of the first for which it was over; a node that
// comes later finds itself left out. Costs each rank four questions to the store; where all say the
// same, the answer is that one line, however many they are. Thread-safe.
//
// Errors: as Store.
absl::StatusOr<RollCall> CallRoll(Store& store, absl::string_view key, Rank rank,
                                  const std::vector<Rank>& ranks, absl::string_view line,
                                  Instant deadline);

// The keys that it leaves behind under `key`.
std::vector<std::string> RollCallKeys(absl::string_view key);

}  // namespace hlaunch
