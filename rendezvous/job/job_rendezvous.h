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
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// Threads that many jobs share.
struct JobThreads {
  DeadlineThreads* deadlines = nullptr;  // Null if the job has a thread of its own.
  // These threads keep records, which takes seconds if the place of the records does not respond.
  // They run already. Null if the thread that has news to tell keeps the record first.
  DeadlineThreads* keeping = nullptr;
};

// The rendezvous of one job: the round table behind a mutex. When its deadlines come, it is called
// by the given threads, which many jobs share, or by a thread of its own (started with the first
// deadline; a job whose only node is local has none). It does no I/O; the gRPC service and the
// local client are built on it.
//
// Thread-safe.
class JobRendezvous {
 public:
  // A node's end of the conversation. A session gets one call at a time, with no lock held. A call
  // must not block; it may call back into JobRendezvous.
  class Session {
   public:
    virtual ~Session() = default;
    // The node's latest directive; an older one that was not delivered yet may be dropped.
    virtual void OnDirective(const Directive& directive) = 0;
    // The node must give a sign of life at once, such as when another node claims its place.
    virtual void OnProbe() {}
    // The node must answer `question`.
    virtual void OnQuestion(const NodeQuestion& /*question*/) {}
    // Another node of the round has said `word`, for this node.
    virtual void OnWord(const RoundWord& /*word*/) {}
    // Another session or a newer incarnation took this place, or the node was given up.
    virtual void OnEnd(const absl::Status& status) = 0;
  };

  // `clock` must outlive it, and run, because threads wait for the deadlines of a job with remote
  // nodes. `threads` must outlive it, too.
  JobRendezvous(JobRules rules, const Clock& clock, JobThreads threads = {});
  // Goes on with the record that was kept of this job.
  JobRendezvous(JobRules rules, const JobRecord& record, const Clock& clock,
                JobThreads threads = {});
  ~JobRendezvous();

  // Joins, or resumes the conversation if the incarnation is known. `local` marks the agent in this
  // process: it is never suspect. Shares ownership of `session` (the other owner is the stream or
  // client) until Detach, OnEnd or destruction.
  //
  // Errors: as RendezvousClient::Listener::OnEnd - FailedPrecondition, AlreadyExists, Aborted,
  // InvalidArgument; Unavailable if that is not decided yet and the node must try again.
  absl::Status Attach(const NodeInfo& info, const NodeUpdate& update, bool local,
                      std::shared_ptr<Session> session);

  // As RoundTable::Counts. A message that does not count is not answered.
  bool Counts(absl::string_view node_id, Incarnation incarnation, Duration age);

  // The node's latest state; also a sign of life if it `counts`.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this place (any more).
  //   InvalidArgument - the update contradicts what the node was told.
  absl::Status Update(absl::string_view node_id, Incarnation incarnation, const NodeUpdate& update,
                      bool counts = true);

  // The node gave a sign of life. Returns whether it may be answered, since the answer lets the
  // node's workers live on. False once the node is given up, even if the node has not been told so
  // yet.
  bool Heard(absl::string_view node_id, Incarnation incarnation);

  // The node gave a sign of life as a voter. Returns whether it may hear so, as Heard does; false
  // as well if this no longer decides, or as RoundTable::HeardFromVoter.
  bool HeardFromVoter(absl::string_view node_id, Incarnation incarnation);

  // The stream broke: the node may live or not. Does nothing if another session took over.
  void Detach(absl::string_view node_id, const Session* session);

  // The node's keeper proves that the node is dead: no worker of it lives.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this place (any more).
  absl::Status ReportNodeDeath(absl::string_view node_id, Incarnation incarnation,
                               const std::string& reason);

  // Only `nodes` nodes were started, each once, and `ended` of them have ended: a round does not
  // wait for more than the others.
  void Expect(int nodes, int ended);

  // Ends the job with this outcome, as if decided here: all nodes are told to finish.
  void End(const Outcome& outcome);

  // Waits until the job is over and every live node has said so, or until `deadline`. Returns the
  // hosts that have not said so, none if all have.
  std::vector<std::string> AwaitAllFinished(Instant deadline);

  // Returns the state of the job and the reason for it.
  JobStatus Status() const;

  // Checks that it still decides for its job. A message from a node may be answered only if this
  // succeeds after the message has come.
  //
  // Errors:
  //   Unavailable - it no longer decides, for good: another rendezvous takes over. From then on
  //     every call that can fail does so, and no session hears anything more.
  absl::Status CheckLeads() const;

  // Returns whether nothing is left to do: the job is over and all nodes that are here have heard
  // so, or no round has begun and no node is here.
  bool Done() const;
  JobState state() const;
  // Returns whether this incarnation has a place in the job.
  bool Holds(absl::string_view node_id, Incarnation incarnation) const;

  // As RoundTable::Nodes.
  std::vector<NodeInfo> Nodes() const;
  // As RoundTable::Drain. Nodes are told what follows once that is kept.
  //
  // Errors, beside those:
  //   Unavailable - as CheckLeads.
  absl::StatusOr<std::string> Drain(const DrainRequest& request);

  // Tells the people at all nodes a line.
  void Say(const std::string& text);

  const JobPolicy& policy() const;

  // Asks the nodes that run the ranks of `question` and have a stream. `done` is called once, with
  // no lock held, perhaps before this returns: when all nodes have answered, or at the latest after
  // the question's patience. Returns the question's number. Requires: this object outlives the
  // question.
  //
  // Errors:
  //   ResourceExhausted - kMaxQuestions are open.
  using AskDone = std::function<void(JobAnswer)>;
  absl::StatusOr<uint64_t> Ask(const RankQuestion& question, AskDone done);

  // Returns how many questions are open.
  size_t open_questions() const;

  // Cancels the question. Returns true if `done` will not be called.
  bool GiveUp(uint64_t number);

  // Takes a node's answer, which is also a sign of life if it `counts`; returns the same as Heard.
  // Ignores the answer if `incarnation` does not hold this place, or if nothing was asked.
  bool Answer(absl::string_view node_id, Incarnation incarnation, NodeAnswer answer,
              bool counts = true);

  // Passes the node's word on to those that it is for, see RoundWord. It is also a sign of life if
  // it `counts`; returns the same as Heard. Passes nothing on unless that round runs.
  bool Tell(absl::string_view node_id, Incarnation incarnation, RoundWord word, bool counts = true);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
