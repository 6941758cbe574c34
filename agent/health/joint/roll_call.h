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
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// What each rank said, by rank.
using RollCall = std::map<Rank, std::string>;

// Says `line` for `rank` under `key`, then waits until all `ranks` have spoken or `deadline` has
// passed. All nodes get the same answer: that of the first node that closed the call. A node that
// comes later finds itself left out. Each rank costs the store four requests. If all ranks say the
// same, the answer is that one line, however many ranks there are. Thread-safe.
//
// Errors: as Store.
absl::StatusOr<RollCall> CallRoll(Store& store, absl::string_view key, Rank rank,
                                  const std::vector<Rank>& ranks, absl::string_view line,
                                  Instant deadline);

// The keys that CallRoll leaves in the store under `key`.
std::vector<std::string> RollCallKeys(absl::string_view key);

}  // namespace hlaunch
