// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/table/durable_record.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/preflight.h"

namespace hlaunch {

// A proposed round: which nodes have answered its preflight, by when all must answer, and whether
// this is the second measurement of the same nodes.
//
// Belongs to the thread of its RoundTable.
class Proposal {
 public:
  // Both must outlive it.
  Proposal(const DurableRecord& record, const Membership& membership);

  // A round is proposed.
  void Begin(Instant t);
  // The rendezvous was restarted meanwhile: the nodes have to come back first, for which each has
  // as long as until it is given up, and their checks may still run then.
  void Resume(Instant t);
  // So long no member was told what is decided.
  void PutOff(Duration time) { ends_ += time; }
  // The member says kPrepared. Only its first answer in a round counts.
  void Answer(Seat& seat, const NodeUpdate& update);

  // Returns whether all members have answered, or their time is over.
  bool Due(Instant t) const { return answers_ >= record_->round_nodes || t >= ends_; }
  // Decides what follows. `nodes` are the round's members in rank order. Requires: it is due.
  PreflightVerdict Judge(const std::vector<Seat*>& nodes, Instant t) const;
  // Marks the nodes at fault as suspected. The next round measures all nodes once more; there is no
  // third measurement. One measurement may have had bad luck, so no node is excluded for it.
  void MeasureAgain(const PreflightVerdict& verdict, const std::vector<Seat*>& nodes);

  Instant ends() const { return ends_; }

 private:
  Duration TimeToAnswer() const;

  const DurableRecord& record_;
  const Membership& membership_;
  int answers_ = 0;
  Instant ends_;
  Round suspicious_ = 0;  // The last round that did not run because of suspected nodes.
};

}  // namespace hlaunch
