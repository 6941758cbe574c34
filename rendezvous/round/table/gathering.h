// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/decide/good_moment.h"
#include "rendezvous/round/decide/growth_view.h"
#include "rendezvous/round/table/durable_record.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {

// Looks at all nodes for the next round. While a round forms, it finds out whether the round may
// start; while a round runs, whether waiting nodes should get a larger one. A look costs O(n). A
// job of more than 64 nodes looks at most once a second, or once in n milliseconds if that is
// longer, unless the current message may have completed the round.
//
// Belongs to the thread of its RoundTable.
class Gathering {
  // The result of a look at a round that forms.
 public:
  struct Look {
    // Set if the round may start: its members in the order of their node ranks.
    std::optional<std::vector<Seat*>> order;
    std::string reason;  // Else what is awaited, in one line.
  };

  // Both must outlive it.
  Gathering(const DurableRecord& record, Membership& membership);

  // The first node of the job joins: the join time-out begins.
  void FirstJoin(Instant t);
  // A round forms after another one: the join time-out begins, too, and the first look comes at
  // once, or after the pause of the restart that was decided.
  void Form(Instant t);
  // The round starts.
  void Start();
  // A running round will be stopped, so it does not grow.
  void ForgetGrowth();
  // Takes the number of good moments that node rank 0 of the running round reported.
  void TakeBoundaries(int64_t boundaries) { moment_.Take(boundaries); }
  // This node was excluded: if it comes back, it may fill a round, but no running round stops for
  // it.
  void MarkUnfit(const std::string& node_id);

  // Only `nodes` nodes were started, each once, and `ended` of them have ended. So nobody is
  // awaited in vain: neither these nor nodes that have left or were given up. JobPolicy's
  // started_nodes says the same from the start.
  void Expect(int nodes, int ended) { expected_ = {nodes, ended}; }

  // Another rendezvous led the job until now: the nodes of its record have come.
  void Resume() { NoteWhoIsHere(); }

  // Looks, if it is time; else returns nothing. Requires: a round forms.
  std::optional<Look> LookForRound(Instant t);
  // Looks, if it is time. Returns why the round must stop for the waiting nodes, once that is due
  // and the workers are at a good moment; empty if the round goes on. Tells nodes if there is news.
  // Requires: a round runs.
  std::string LookForGrowth(Instant t);

  // Returns when the next look, or the end of the join time-out, is due.
  std::optional<Instant> NextLookForRound() const;
  std::optional<Instant> NextLookForGrowth() const;
  std::optional<Instant> join_deadline() const { return join_deadline_; }
  // Returns the end of the pause before the round that forms; unset if there is no pause, or if it
  // is over.
  std::optional<Instant> begins_at() const { return begins_at_; }
  // Returns which nodes wait for the next round, until when and for what.
  GrowthView growth() const;

 private:
  Duration Pause() const;
  bool MayLook(bool at_once, Instant t);
  std::vector<Candidate> Candidates(std::vector<Seat*>* seats, Instant t);
  std::vector<Candidate> Waiting(Instant t) const;
  QuorumRule Rule() const;
  void NoteWhoIsHere();
  int ExpectedNodes() const;
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
  std::optional<Instant> look_at_;  // Set if a look was put off to this time.
  std::optional<Instant> grow_at_;  // When the waiting nodes get their round.
  GrowthVerdict growth_;            // Which nodes these are.
  GoodMoment moment_;               // When the running round ends for them.
  std::optional<Instant> grew_at_;  // When a round last ended for waiting nodes.
  struct Expected {
    int nodes = 0;
    int ended = 0;
  };
  std::optional<Expected> expected_;         // Unset: nobody knows which nodes may come.
  std::set<std::string, std::less<>> came_;  // If set, the nodes that have come: at most kMaxNodes.
  int largest_ = 0;                          // Nodes in the largest round, as far as is known.
  std::set<std::string, std::less<>> unfit_;  // At most kMaxNodes.
};

}  // namespace hlaunch
