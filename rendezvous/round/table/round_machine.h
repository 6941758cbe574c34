// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "rendezvous/round/decide/news_board.h"
#include "rendezvous/round/decide/partition.h"
#include "rendezvous/round/decide/partition_watch.h"
#include "rendezvous/round/decide/restart_policy.h"
#include "rendezvous/round/decide/time_line.h"
#include "rendezvous/round/table/draining.h"
#include "rendezvous/round/table/durable_record.h"
#include "rendezvous/round/table/failure_judge.h"
#include "rendezvous/round/table/gathering.h"
#include "rendezvous/round/table/job_words.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/table/proposal.h"
#include "rendezvous/round/table/silence_watch.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The rounds of one job: each begins, is checked, runs, stops and is followed by the next, until
// the job is over. The comment of RoundTable draws the states. A RoundMachine takes over what nodes
// say; after every message, Settle does what has become possible.
//
// Belongs to the thread of its RoundTable.
class RoundMachine {
 public:
  // The references must outlive it. `make_secret` as in JobRules.
  RoundMachine(DurableRecord& record, Membership& membership, NewsBoard& news,
               std::function<std::string()> make_secret);

  // Goes on after a restart of the rendezvous: the record and the seats are restored, but nothing
  // is known of the nodes yet.
  void Resume(Instant t);
  // A node is about to join.
  void BeforeJoin(Instant t);
  // Takes the failures that are new in `update`, even if a later update has overtaken it.
  void AbsorbFailures(Seat& seat, const NodeUpdate& update, Instant t);
  // The node has reached the round and phase of `update`.
  void Enter(Seat& seat, const NodeUpdate& update, Instant t);
  // Removes the node's seat because of `event`; the node hears `status`.
  void Remove(Seat& seat, const FailureEvent& event, absl::Status status, Instant t);
  // Ends the job with `outcome`; does nothing if the job is over already.
  void Finish(Outcome outcome, Instant t);
  // As Gathering::Expect.
  void Expect(int nodes, int ended) { gathering_.Expect(nodes, ended); }
  // The drained nodes.
  Draining& draining() { return draining_; }
  // Does all that is due or has become possible.
  void Settle(Instant t);
  // Ends a job that waits for nodes beyond its join time-out.
  void CheckJoinTimeout(Instant t);
  // Tells all nodes which nodes have fallen silent, or are heard again.
  void LookForSilence(Instant t);
  // As Proposal::PutOff.
  void PutOff(Duration time) { proposal_.PutOff(time); }
  // Returns when Settle or CheckJoinTimeout is due.
  std::optional<Instant> NextDeadline() const;

  TableView View() const;
  TimeLine& time_line() { return time_line_; }
  const TimeLine& time_line() const { return time_line_; }

 private:
  void MarkStopped(Seat& seat);
  void Leave(Seat& seat, const NodeUpdate& update, Instant t);
  void NoteUnable(const Seat& seat, Instant t);
  void EndIfHopeless(Instant t);
  void Depart(Seat& seat, const FailureEvent& event, Instant t);
  void JudgeFailures(Instant t);
  void JudgePartition(Instant t);
  std::vector<WaysWord> WaysWords(Instant t);
  PartitionRule RuleOfPartition(Instant t) const;
  void CutOff(const PartitionVerdict& verdict, Instant t);
  void LoseWorkers(const Seat& seat, const std::string& why, Instant t);
  void ExcludeCutOff(Instant t);
  void Decide(const FailureEvent& event, const std::string& cause_reason, Instant t);
  void Restart(const FailureEvent& event, const JobVerdict& verdict, Instant t);
  void RecallNotice();
  void StopRound(std::string cause);
  void ChooseReporter();
  void LookForDrained(Instant t);
  void DismissDrained(Instant t);
  void LookForRound(Instant t);
  void Start(const std::vector<Seat*>& order, Instant t);
  void JudgePreflight(Instant t);
  bool RestartInstead(const NodeInfo& first, const std::string& reason, Instant t);
  void Run(const std::string& notice, Instant t);
  void Exclude(const PreflightVerdict& verdict, const std::vector<Seat*>& nodes,
               const std::string& reason, Instant t);

  DurableRecord& record_;
  Membership& membership_;
  NewsBoard& news_;
  const std::function<std::string()> make_secret_;
  SilenceWatch silence_;
  Gathering gathering_;
  Proposal proposal_;
  FailureJudge failures_;
  PartitionWatch partition_;
  Draining draining_;
  TimeLine time_line_;
  std::string reason_;                     // kForming: what is awaited; kStopping: the cause.
  std::map<std::string, Outcome> unable_;  // Nodes that could not start, and why; by node id.
  std::string notice_;                     // What the preflight of the round found worth reporting.
  std::string reporter_;  // kOver: the id of the node that prints the whole report.
};

}  // namespace hlaunch
