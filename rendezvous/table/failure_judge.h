// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/restart/restart_policy.h"
#include "rendezvous/round/compare_places.h"
#include "rendezvous/round/find_lost_node.h"
#include "rendezvous/round/first_cause.h"
#include "rendezvous/table/durable_record.h"
#include "rendezvous/table/membership.h"

namespace hlaunch {

// Collects the failures of a round, and says what is to be decided once it is clear what came
// first: a failure that looks like the consequence of another one, see FirstCause, waits for its
// CauseWindow, for the one that explains it and for a sign of life of every node. Where one gives
// none, see FindLostNode, that node is the cause. Where all workers waited in vain, the one that
// did something else is, see ComparePlaces; else those are missed that neither failed nor have
// given up, see HasGivenUp.
//
// Belongs to the thread of its RoundTable.
class FailureJudge {
 public:
  struct Verdict {
    FailureEvent event;
    std::string cause_reason;  // See Outcome.
  };

  // Both must outlive it. Takes the failures in `record` for heard.
  FailureJudge(DurableRecord& record, Membership& membership);

  // A round begins: nothing has failed.
  void BeginRound();
  // Takes what is new in `update` into the record; false if there is nothing to keep.
  bool Absorb(Seat& seat, const NodeUpdate& update);
  // What has failed, if it is clear by now.
  std::optional<Verdict> Judge(Instant t);

  // When Judge is due at the latest, while something waits for its cause.
  std::optional<Instant> due() const { return due_; }
  void Stop() { due_.reset(); }
  // The failures were heard of by a rendezvous before this one: they are judged as they are, at
  // `t`.
  void Resume(Instant t);

  // `event`, of the node of `seat`, with what is known of its part in the round that runs: its
  // workers, and which failure it explains.
  FailureEvent WithPart(FailureEvent event, const Seat& seat) const;

 private:
  bool Keep(WorkerFailure failure);
  void BeginWait(Instant t);
  // When to look again at what waits; nothing: it waits no longer.
  std::optional<Instant> WaitUntil(const LostNodeVerdict& nodes, Instant t) const;
  std::vector<const Seat*> AtWork() const;
  std::vector<SignOfLife> Signs(const std::vector<const Seat*>& seats, Instant t) const;
  Verdict BlameWorker(const Cause& cause);
  std::optional<DifferentPlaces> PlacesOfAll(const Cause& cause) const;
  Verdict BlameNode(const Seat& seat, const std::string& why);
  std::vector<WorkerPlace> Awaited(const Cause& cause) const;
  std::vector<WorkerPlace> NotFailedOn(const Seat& seat) const;
  std::vector<WorkerPlace> NotFailed() const;
  bool AllOver() const;

  DurableRecord& record_;
  Membership& membership_;
  size_t judged_ = 0;            // How many of the failures were looked at together.
  std::set<Rank> failed_ranks_;  // All of them, also those that were too many to keep.
  std::optional<Instant> due_;
  std::optional<Instant> asked_;  // The first consequence was heard of, and the nodes were asked.
  Duration window_{};             // The longest CauseWindow of what has waited since.
  bool resumed_ = false;
};

}  // namespace hlaunch
