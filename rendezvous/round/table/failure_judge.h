// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/cause/compare_places.h"
#include "rendezvous/round/cause/find_lost_node.h"
#include "rendezvous/round/cause/first_cause.h"
#include "rendezvous/round/decide/restart_policy.h"
#include "rendezvous/round/table/durable_record.h"
#include "rendezvous/round/table/membership.h"

namespace hlaunch {

// Collects the failures of a round, and says what must be decided once it is clear what came first.
// A failure that looks like the consequence of another one, see FirstCause, waits for its
// CauseWindow, for the failure that explains it, and for a sign of life of every node. If a node
// gives none, see FindLostNode, that node is the cause. If all workers waited in vain, the worker
// that did something else is the cause, see ComparePlaces; otherwise the verdict names as missed
// the workers that neither failed nor have given up, see HasGivenUp.
//
// Belongs to the thread of its RoundTable.
class FailureJudge {
 public:
  struct Verdict {
    FailureEvent event;
    std::string cause_reason;  // See Outcome.
  };

  // Both must outlive it. The failures in `record` count as heard.
  FailureJudge(DurableRecord& record, Membership& membership);

  // A round begins: nothing has failed.
  void BeginRound();
  // Takes what is new in `update` into the record. Returns false if there is nothing to keep.
  bool Absorb(Seat& seat, const NodeUpdate& update);
  // Returns whether the nodes must tell all failures of the round again, because an earlier
  // rendezvous heard more than it kept.
  bool told_again() const { return told_again_; }
  // Returns what has failed, if that is clear by now.
  std::optional<Verdict> Judge(Instant t);

  // Returns when Judge is due at the latest, while a failure waits for its cause.
  std::optional<Instant> due() const { return due_; }
  void Stop() { due_.reset(); }
  // The failures were heard by an earlier rendezvous: they are judged at `t`, as they are.
  void Resume(Instant t);

  // Returns `event`, which is about the node of `seat`, with what is known of the node's part in
  // the running round: its workers, and the failure that the event explains.
  FailureEvent WithPart(FailureEvent event, const Seat& seat) const;

 private:
  bool WasKept(const WorkerFailure& failure) const;
  bool Keep(WorkerFailure failure);
  void BeginWait(Instant t);
  // Returns when to look again at the failures that wait; nothing if they wait no longer.
  std::optional<Instant> WaitUntil(const LostNodeVerdict& nodes, Instant t) const;
  std::vector<const Seat*> AtWork() const;
  std::vector<SignOfLife> Signs(const std::vector<const Seat*>& seats, Instant t) const;
  Verdict BlameWorker(const Cause& cause);
  std::optional<DifferentPlaces> PlacesOfAll(const Cause& cause) const;
  bool NamedOnesWaited(const Accusation& accusation) const;
  bool AccusedMayTell(const Cause& cause) const;
  Verdict BlameNode(const Seat& seat, const std::string& why);
  std::vector<WorkerPlace> Awaited(const Cause& cause) const;
  std::vector<WorkerPlace> NotFailedOn(const Seat& seat) const;
  std::vector<WorkerPlace> NotFailed() const;
  bool AllOver() const;

  DurableRecord& record_;
  Membership& membership_;
  size_t judged_ = 0;            // How many failures the last judgement looked at.
  std::set<Rank> failed_ranks_;  // All failed ranks, even if their failures were too many to keep.
  int heard_;                    // How many failures were heard, as far as they are told apart.
  // The record has not kept all its failures, so it is not known which of them each node has told:
  // the nodes tell all of them again.
  bool told_again_;
  std::optional<Instant> due_;
  std::optional<Instant> asked_;  // When the first consequence was heard and the nodes were asked.
  Duration window_{};             // The longest CauseWindow of the failures that have waited since.
  bool resumed_ = false;
};

}  // namespace hlaunch
