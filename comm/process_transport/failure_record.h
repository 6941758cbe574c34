// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "comm/transport/transport.h"
#include "proto/base/clock.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// What the ranks of a group write to the store when it fails, so that all of them name the same
// cause. Belongs to one thread.
class FailureRecord {
 public:
  // `prefix` begins the keys: "failure", "waits" and "search". `store` outlives the record.
  FailureRecord(Store& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  // A rank that is cut off from the store must end, too. So the calls below wait for the store for
  // one second at most, and those with a deadline until then.

  // Records `failure` as the group's unless another one was first. Returns the group's failure, or
  // `failure` if the store does not answer.
  Failure RecordFirst(const Failure& failure);

  // Returns the group's failure once it is recorded; none if it is not in time.
  std::optional<Failure> AwaitFirst(Instant deadline);

  // Records that `self` waits for `failure.rank`; false if the store does not answer.
  bool RecordWait(Rank self, const Failure& failure);
  // Returns whether `self` is the rank that looks for the root cause for all: the first that calls
  // this. The records of 16,000 ranks are more than a megabyte, which not all of them may read.
  bool SearchesForAll(Rank self);
  // Returns the wait that caused `failure` according to the records of all ranks so far, or
  // `failure` itself.
  Failure FindRootCause(const Failure& failure, Instant deadline);

 private:
  // Returns the store with a time limit of one second for each call.
  Store& Hasty();

  Store& store_;
  std::unique_ptr<Store> attempt_;
  const std::string prefix_;
};

// Follows the chain of ranks that waited for each other, from `failure` to its end. `waits` has a
// line "SELF AWAITED MESSAGE" for each rank that waited; the last one of a rank counts. Returns
// `failure` itself if the chain is a circle. Pure.
Failure EndOfChain(const Failure& failure, absl::string_view waits);

}  // namespace hlaunch
