// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/restart_policy.h"
#include "rendezvous/table/durable_record.h"
#include "rendezvous/table/membership.h"

namespace hlaunch {

// Collects the failures of a round, and says what is to be decided once it is clear which of them
// was the first: a failure that looks like the consequence of another one, see FirstCause, waits
// for its CauseWindow or for the one that explains it.
//
// Belongs to the thread of its RoundTable.
class FailureJudge {
 public:
  struct Verdict {
    FailureEvent event;
    std::string cause_reason;  // See Outcome.
  };

  // Both must outlive it. Takes the failures in `record` for heard.
  FailureJudge(DurableRecord& record, const Membership& membership);

  // A round begins: nothing has failed.
  void BeginRound();
  // Takes what is new in `update` into the record; false if there is nothing to keep.
  bool Absorb(Seat& seat, const NodeUpdate& update);
  // What has failed, if it is clear by now.
  std::optional<Verdict> Judge(Instant t);

  // When Judge is due at the latest, while something waits for its cause.
  std::optional<Instant> due() const { return due_; }
  void SetDue(Instant t) { due_ = t; }
  void Stop() { due_.reset(); }

 private:
  bool Keep(WorkerFailure failure);
  std::vector<WorkerPlace> NotFailed() const;

  DurableRecord& record_;
  const Membership& membership_;
  size_t judged_ = 0;            // How many of the failures were looked at together.
  std::set<Rank> failed_ranks_;  // All of them, also those that were too many to keep.
  std::optional<Instant> due_;
};

}  // namespace hlaunch
