// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/decide/news_board.h"
#include "rendezvous/round/table/durable_record.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/drained_node.h"

namespace hlaunch {

// Returns the record's entry of this agent; null if it is not drained.
const DrainedNode* FindDrained(const JobRecord& record, const NodeInfo& info);

// Returns the drained nodes that are here, "; drained: node1 (ECC), node4 (ECC)"; empty if there
// are none.
std::string DrainedWords(const JobRecord& record, const Membership& membership);

// Returns how many members of the latest round are drained.
int DrainedMembers(const JobRecord& record, const Membership& membership);

// Returns whether the nodes that are here and neither suspect nor drained are enough for a round.
// With --on-loss wait it needs as many nodes as the latest round.
bool EnoughUndrained(const JobRecord& record, const Membership& membership, Instant t);

// What happens to a round that is prepared or runs.
struct DrainVerdict {
  enum class Kind {
    kNothing,  // No member is drained, or the round is nearly done: a node has succeeded.
    kStop,     // The next round can be formed without the drained members.
    kGoOn,     // The next round cannot be formed without them.
  };
  Kind kind = Kind::kNothing;
  // Which nodes are drained and why, in one line; kGoOn: also what the job lacks.
  std::string reason;
};

// Pure. O(log n) for each drained node, O(1) for each silent one.
DrainVerdict DecideDrain(const JobRecord& record, const Membership& membership, Instant t);

// Returns the nodes whose part in the job is over: they are drained, not needed, and have no
// workers of a round. The local node is never one of them, because it has the rendezvous. Pure.
// O(log n) for each drained node, O(1) for each silent one.
std::vector<std::string> NodesToDismiss(const JobRecord& record, const Membership& membership,
                                        Instant t);

// The drained nodes of a job: which nodes are drained, by a person's request or by their own word,
// and what that means for the running round.
//
// Belongs to the thread of its RoundTable.
class Draining {
 public:
  // All must outlive it.
  Draining(DurableRecord& record, Membership& membership, NewsBoard& news)
      : record_(record), membership_(membership), news_(news) {}

  // Does what a person asks. Returns what follows, in one line.
  //
  // Errors:
  //   NotFound - there is no such node; the message names those there are.
  //   InvalidArgument - several nodes have that name; the message names them.
  //   FailedPrecondition - the job is over or has only this node, the node has the rendezvous, or
  //     the request is to undrain a node that is drained by its own word.
  absl::StatusOr<std::string> Take(const DrainRequest& request, Instant t);

  // Takes over what the node says of itself, if that is new. The node may take it back.
  void Note(const Seat& seat, const NodeUpdate& update);

  // Removes the entry of this agent.
  void Forget(const Seat& seat);

  // Returns why the round must end now; empty if it goes on. Tells all nodes which drained members
  // the round keeps. Requires: a round is prepared or runs.
  std::string Look(Instant t);

 private:
  void Mark(const Seat& seat, absl::string_view reason, Duration within, bool own);
  void NoteLocal(const Seat& seat, const NodeUpdate& update);

  DurableRecord& record_;
  Membership& membership_;
  NewsBoard& news_;
  std::string told_;        // What all nodes were told of drained members that the round keeps.
  std::string told_local_;  // What all nodes were told of the local node's own drain reason.
};

}  // namespace hlaunch
