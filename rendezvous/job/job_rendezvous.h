// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/job/deadline_threads.h"
#include "rendezvous/job/question.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/round.h"
#include "rendezvous/store/memory_store.h"

namespace hlaunch {

// What the agents of a job share is small; see store.proto.
inline constexpr StoreLimits kSharedLimits = {
    .value_bytes = 64 << 10, .list_keys = 4096, .total_bytes = 64 << 20};

// Threads that many jobs share.
struct JobThreads {
  DeadlineThreads* deadlines = nullptr;  // Null: the job has a thread of its own.
  // Keep what takes seconds to keep where its place is silent; they run already. Null: whoever has
  // news to tell keeps it first.
  DeadlineThreads* keeping = nullptr;
};

// The rendezvous of one job: the round table behind a mutex, called when its deadlines come by
// threads that are given, which many jobs share, or by one of its own (started with the first
// deadline; a job whose only node is local has none). Without I/O; the gRPC service and the local
// client stand on it.
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
    // The node must give a sign of life at once: somebody claims its place.
    virtual void OnProbe() {}
    // The node is to answer.
    virtual void OnQuestion(const NodeQuestion& /*question*/) {}
    // Another session or a newer incarnation took this place, or the node was given up.
    virtual void OnEnd(const absl::Status& status) = 0;
  };

  // `clock` must outlive it, and run: the deadlines of a job with remote nodes are waited for. So
  // must `threads`.
  JobRendezvous(JobRules rules, const Clock& clock, JobThreads threads = {});
  // Goes on with what was kept of this job.
  JobRendezvous(JobRules rules, const JobRecord& record, const Clock& clock,
                JobThreads threads = {});
  ~JobRendezvous();

  // Joins, or takes up the conversation again if the incarnation is known. `local` marks the
  // agent in this very process: it is never suspect. Shares ownership of `session` (the other
  // owner is the stream or client) until Detach, OnEnd or destruction.
  //
  // Errors: as RendezvousClient::Listener::OnEnd - FailedPrecondition, AlreadyExists, Aborted,
  // InvalidArgument; Unavailable if it cannot be said yet and the node is to try again.
  absl::Status Attach(const NodeInfo& info, const NodeUpdate& update, bool local,
                      std::shared_ptr<Session> session);

  // The node's latest state; also a sign of life.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this place (any more).
  //   InvalidArgument - the update contradicts what the node was told.
  absl::Status Update(absl::string_view node_id, Incarnation incarnation, const NodeUpdate& update);

  // A sign of life. Whether it may be answered, by which the node's workers live on: not once the
  // node is given up, even if it has not been told so yet.
  bool Heard(absl::string_view node_id, Incarnation incarnation);

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

  // Where the job stands and why.
  JobStatus Status() const;

  // Whether it still decides for its job. What comes from a node may be answered if it does after
  // it has come.
  //
  // Errors:
  //   Unavailable - it has lost, for good: another rendezvous takes over. All that can fail does so
  //       from then on, and no session hears anything more.
  absl::Status CheckLeads() const;

  // Nothing is left to do: the job is over and whoever is here has heard so, or no round has
  // begun and nobody is here.
  bool Done() const;
  JobState state() const;
  // This incarnation has a place in the job.
  bool Holds(absl::string_view node_id, Incarnation incarnation) const;

  // As RoundTable::Nodes.
  std::vector<NodeInfo> Nodes() const;
  // As RoundTable::Drain. What follows is told to nodes once it is kept.
  //
  // Errors, beside those:
  //   Unavailable - as CheckLeads.
  absl::StatusOr<std::string> Drain(const DrainRequest& request);

  // A line for the people at all nodes.
  void Say(const std::string& text);

  const JobPolicy& policy() const;

  // Asks the nodes that run the ranks of `question`, those with a stream. `done` is called once,
  // with no lock held, perhaps before this returns, when all have answered, and after the
  // question's patience at the latest. Returns the question's number.
  // Requires: this outlives the question.
  //
  // Errors:
  //   ResourceExhausted - kMaxQuestions are open.
  using AskDone = std::function<void(JobAnswer)>;
  absl::StatusOr<uint64_t> Ask(const RankQuestion& question, AskDone done);

  // How many are open.
  size_t open_questions() const;

  // Nobody wants to hear of it any more. True: `done` will not be called.
  bool GiveUp(uint64_t number);

  // A node's answer, which is also a sign of life, as Heard; nothing if `incarnation` does not hold
  // this place, or nothing was asked.
  bool Answer(absl::string_view node_id, Incarnation incarnation, NodeAnswer answer);

  // The keys that the job's agents share, for one of them. They outlive rounds, and are gone once
  // the job is over: then every call of the store, and every wait in it, fails with
  // FailedPrecondition. Shared: a call that waits holds them.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this place (any more), or `round` is not the job's;
  //       0 is of any.
  //   FailedPrecondition - the job is over.
  absl::StatusOr<std::shared_ptr<MemoryStore>> SharedKeys(absl::string_view node_id,
                                                          Incarnation incarnation,
                                                          Round round) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
