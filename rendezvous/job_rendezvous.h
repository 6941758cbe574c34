// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round.h"

namespace hlaunch {

// What one job's rendezvous is told when it is made.
struct JobRules {
  std::string job_id;
  Lease lease;
  Duration join_timeout =
      std::chrono::seconds(600);  // From the first join, or the round's end, to the next round.
  Duration last_call =
      std::chrono::seconds(30);  // From min_nodes present to the start, if fewer than max_nodes.
  // Called with no lock held, before any node is told to run `round`, once all nodes are ready.
  // The one user is the shared listener, which empties its store here. May be empty.
  std::function<void(Round round)> before_round;
};

// The rendezvous of one job: the round table behind a mutex, with a thread for its deadlines
// (started with the first deadline; a job whose only node is local has none). Without I/O; the
// gRPC service and the local client stand on it.
//
// Thread-safe.
class JobRendezvous {
 public:
  // A node's end of the conversation. Called one call at a time for a session, with no lock
  // held; must not block. It may call back into JobRendezvous.
  class Session {
   public:
    virtual ~Session() = default;
    // The node's latest directive; an older one that was not taken yet may be dropped.
    virtual void OnDirective(const Directive& directive) = 0;
    // Another session or a newer incarnation took this place, or the node was given up.
    virtual void OnEnd(const absl::Status& status) = 0;
  };

  // `clock` must outlive it, and run: the deadlines of a job with remote nodes are waited for.
  JobRendezvous(JobRules rules, const Clock& clock);
  ~JobRendezvous();

  // Joins, or takes up the conversation again if the incarnation is known. `local` marks the
  // agent in this very process: it is never suspect. Shares ownership of `session` (the other
  // owner is the stream or client) until Detach, OnEnd or destruction.
  //
  // Errors: as RendezvousClient::Listener::OnEnd - FailedPrecondition, AlreadyExists, Aborted,
  // InvalidArgument.
  absl::Status Attach(const NodeInfo& info, const NodeUpdate& update, bool local,
                      std::shared_ptr<Session> session);

  // The node's latest state; also a sign of life.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this place (any more).
  //   InvalidArgument - the update contradicts what the node was told.
  absl::Status Update(absl::string_view node_id, Incarnation incarnation, const NodeUpdate& update);

  // A sign of life.
  void Heard(absl::string_view node_id, Incarnation incarnation);

  // The stream broke: the node is unknown, not dead. Nothing if another session took over.
  void Detach(absl::string_view node_id, const Session* session);

  // Proof of death, by the node's keeper: no worker of it lives.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this place (any more).
  absl::Status ReportNodeDeath(absl::string_view node_id, Incarnation incarnation,
                               const std::string& reason);

  // Ends the job with this outcome, as if decided here: all nodes are told to finish.
  void End(const Outcome& outcome);

  // Waits until the job is over and every live node has said so, or until `deadline`.
  // Returns the hosts that had not, none if all is well.
  std::vector<std::string> AwaitAllFinished(Instant deadline);

  // Why the job stands where it stands, in one line.
  std::string Explain() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
