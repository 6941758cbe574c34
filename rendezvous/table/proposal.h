// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/preflight.h"
#include "rendezvous/table/durable_record.h"
#include "rendezvous/table/membership.h"

namespace hlaunch {

// A round that is proposed: who has answered its preflight, by when all must have, and whether it
// is the second measurement of the same nodes.
//
// Belongs to the thread of its RoundTable.
class Proposal {
 public:
  // Both must outlive it.
  Proposal(const DurableRecord& record, const Membership& membership);

  // A round is proposed.
  void Begin(Instant t);
  // The rendezvous was restarted meanwhile: its nodes have to come back first.
  void Resume(Instant t);
  // The member says kPrepared. Its first word in a round counts.
  void Answer(Seat& seat, const NodeUpdate& update);

  // All members have answered, or the time for it is over.
  bool Due(Instant t) const { return answers_ >= record_->round_nodes || t >= ends_; }
  // What follows. `nodes` are the round's members in rank order. Requires: it is due.
  PreflightVerdict Judge(const std::vector<Seat*>& nodes, Instant t) const;
  // The nodes at fault are suspected: the next round measures all of them once more, and none after
  // that. One measurement may have had bad luck: no node is excluded for it.
  void MeasureAgain(const PreflightVerdict& verdict, const std::vector<Seat*>& nodes);

  Instant ends() const { return ends_; }

 private:
  const DurableRecord& record_;
  const Membership& membership_;
  int answers_ = 0;
  Instant ends_;
  Round suspicious_ = 0;  // The last round that was proposed, and not begun, for that.
};

}  // namespace hlaunch
