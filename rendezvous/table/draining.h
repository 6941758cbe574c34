// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/news/news_board.h"
#include "rendezvous/round/drained_node.h"
#include "rendezvous/table/durable_record.h"
#include "rendezvous/table/membership.h"

namespace hlaunch {

// The record's word of this agent; null: it is to be used.
const DrainedNode* FindDrained(const JobRecord& record, const NodeInfo& info);

// "; drained: node1 (ECC), node4 (ECC)", those that are here; empty: none is.
std::string DrainedWords(const JobRecord& record, const Membership& membership);

// How many members of the latest round are drained.
int DrainedMembers(const JobRecord& record, const Membership& membership);

// Whether the nodes that are here and not drained are enough for a round; with --on-loss wait for
// one of as many nodes as the latest.
bool EnoughUndrained(const JobRecord& record, const Membership& membership, Instant t);

// What becomes of a round that is prepared or runs.
struct DrainVerdict {
  enum class Kind {
    kNothing,  // No member is drained, or the round is nearly done: a part of it has succeeded.
    kStop,     // The next round can be formed without the drained members.
    kGoOn,     // It cannot.
  };
  Kind kind = Kind::kNothing;
  std::string reason;  // Who is drained and why, in one line; kGoOn: and what the job lacks.
};

// Pure; O(n), and as often as there are drained nodes.
DrainVerdict DecideDrain(const JobRecord& record, const Membership& membership, Instant t);

// The nodes whose part in the job is over: drained, not needed, and without workers of a round.
// Never the local one, which has the rendezvous. Pure; O(n), as above.
std::vector<std::string> NodesToDismiss(const JobRecord& record, const Membership& membership,
                                        Instant t);

// The drained nodes of a job: who is, by a person's word or its own, and what that means for the
// round that runs.
//
// Belongs to the thread of its RoundTable.
class Draining {
 public:
  // All must outlive it.
  Draining(DurableRecord& record, Membership& membership, NewsBoard& news)
      : record_(record), membership_(membership), news_(news) {}

  // Does as a person asks. Returns what follows, in one line.
  //
  // Errors:
  //   NotFound - there is no such node; the message names those there are.
  //   InvalidArgument - several nodes have that name; the message names them.
  //   FailedPrecondition - the job is over or has only this node, the node has the rendezvous, or
  //       it is drained by its own word and was to be undrained.
  absl::StatusOr<std::string> Take(const DrainRequest& request, Instant t);

  // The node's own word, if it is a new one; it may take it back.
  void Note(const Seat& seat, const NodeUpdate& update);

  // The agent is gone.
  void Forget(const Seat& seat);

  // Why the round is to end now; empty: it goes on. Tells all nodes of those that it keeps.
  // Requires: a round is prepared or runs.
  std::string Look(Instant t);

 private:
  void Mark(const Seat& seat, absl::string_view reason, Duration within, bool own);
  void NoteLocal(const Seat& seat, const NodeUpdate& update);

  DurableRecord& record_;
  Membership& membership_;
  NewsBoard& news_;
  std::string told_;        // Whom the round keeps, as all nodes know.
  std::string told_local_;  // What the local node said of itself, as all nodes know.
};

}  // namespace hlaunch
