// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/quorum.h"
#include "rendezvous/table/durable_record.h"
#include "rendezvous/table/membership.h"

namespace hlaunch {

// Looks at all nodes for the next round: while one forms, whether it may start; while one runs,
// whether nodes that wait are to get a larger one. A look costs O(n). A job of more than 64 nodes
// looks at most once a second, or 1 ms per node, unless this very message may have completed the
// round.
//
// Belongs to the thread of its RoundTable.
class Gathering {
 public:
  // What a look at a round that forms came to.
  struct Look {
    // Set if the round may start: its members in the order of their node ranks.
    std::optional<std::vector<Seat*>> order;
    std::string reason;  // Else who is awaited, in one line.
  };

  // Both must outlive it.
  Gathering(const DurableRecord& record, Membership& membership);

  // The first node of the job joins: the join time-out begins.
  void FirstJoin(Instant t);
  // A round forms after another one: the same, and the first look is at once, or after the pause
  // of the restart that was decided.
  void Form(Instant t);
  // The round starts.
  void Start();
  // A running round is to be stopped, and so does not grow.
  void ForgetGrowth() { grow_at_.reset(); }
  // A preflight excluded this node: if it comes back it may fill a round, and stops none.
  void MarkUnfit(const std::string& node_id);

  // Looks, if it is time. Requires: a round forms.
  std::optional<Look> LookForRound(Instant t);
  // Looks, if it is time. Requires: a round runs. Returns why the round is to stop for those who
  // wait; empty: it goes on. Tells them when there is something new.
  std::string LookForGrowth(Instant t);

  // When the next look, or the end of the join time-out, is due.
  std::optional<Instant> NextLookForRound() const;
  std::optional<Instant> NextLookForGrowth() const;
  std::optional<Instant> join_deadline() const { return join_deadline_; }
  // The end of the pause before the round that forms; none: there is none, or it is over.
  std::optional<Instant> begins_at() const { return begins_at_; }
  // Who joins with the next round, in one line; empty: nobody.
  absl::string_view growth() const { return grow_at_ ? absl::string_view(growth_) : ""; }

 private:
  Duration Pause() const;
  bool MayLook(bool at_once, Instant t);
  std::vector<Candidate> Candidates(std::vector<Seat*>* seats, Instant t);
  std::vector<Candidate> Waiting(Instant t) const;
  QuorumRule Rule() const;

  const DurableRecord& record_;
  Membership& membership_;
  Instant forming_since_;
  std::optional<Instant> join_deadline_;
  std::optional<Instant> begins_at_;
  std::optional<Instant> last_call_ends_;
  Instant looked_;
  std::optional<Instant> look_at_;            // Set if a look is owed.
  std::optional<Instant> grow_at_;            // When those who wait get their round.
  std::string growth_;                        // And who that is.
  std::set<std::string, std::less<>> unfit_;  // At most kMaxNodes.
};

}  // namespace hlaunch
