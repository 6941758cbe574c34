// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/growth/good_moment.h"
#include "rendezvous/growth/growth_view.h"
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
  void ForgetGrowth();
  // What node rank 0 of the round that runs tells of its good moments.
  void TakeBoundaries(int64_t boundaries) { moment_.Take(boundaries); }
  // A preflight excluded this node: if it comes back it may fill a round, and stops none.
  void MarkUnfit(const std::string& node_id);

  // Looks, if it is time. Requires: a round forms.
  std::optional<Look> LookForRound(Instant t);
  // Looks, if it is time. Requires: a round runs. Returns why the round is to stop for those who
  // wait, once it is due and the workers are at a good moment; empty: it goes on. Tells nodes when
  // there is something new.
  std::string LookForGrowth(Instant t);

  // When the next look, or the end of the join time-out, is due.
  std::optional<Instant> NextLookForRound() const;
  std::optional<Instant> NextLookForGrowth() const;
  std::optional<Instant> join_deadline() const { return join_deadline_; }
  // The end of the pause before the round that forms; none: there is none, or it is over.
  std::optional<Instant> begins_at() const { return begins_at_; }
  // Who waits for the next round, and until when for what.
  GrowthView growth() const;

 private:
  Duration Pause() const;
  bool MayLook(bool at_once, Instant t);
  std::vector<Candidate> Candidates(std::vector<Seat*>* seats, Instant t);
  std::vector<Candidate> Waiting(Instant t) const;
  QuorumRule Rule() const;
  bool AwaitsReplacement(Instant t) const;
  void StopGrowing();
  void Want(const GrowthVerdict& verdict, Instant t);
  void Announce(const GrowthVerdict& verdict);

  const DurableRecord& record_;
  Membership& membership_;
  Instant forming_since_;
  std::optional<Instant> join_deadline_;
  std::optional<Instant> begins_at_;
  std::optional<Instant> last_call_ends_;
  Instant looked_;
  std::optional<Instant> look_at_;            // Set if a look is owed.
  std::optional<Instant> grow_at_;            // When those who wait get their round.
  GrowthVerdict growth_;                      // And who that is.
  GoodMoment moment_;                         // When the round ends for them.
  std::optional<Instant> grew_at_;            // When one last ended for that.
  int largest_ = 0;                           // Nodes in the largest round, as far as is known.
  std::set<std::string, std::less<>> unfit_;  // At most kMaxNodes.
};

}  // namespace hlaunch
