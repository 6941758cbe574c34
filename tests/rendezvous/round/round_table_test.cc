// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/round_table.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Kind = Directive::Kind;
using Phase = NodePhase;

// A table and its clock: lease 5 s, loss limit 30 s, margin 10 s, join time-out 600 s.
class Job {
 public:
  Job(int min_nodes, int max_nodes, int max_restarts = 0)
      : Job(Policy(min_nodes, max_nodes, max_restarts)) {}
  explicit Job(const JobPolicy& policy) : rules(RulesOf(policy)), table(rules) {}
  // The job after a restart of its rendezvous, which comes back `later`.
  Job(const Job& before, Duration later)
      : now(before.now + later), rules(before.rules), table(rules, before.table.Record(), now) {}

  NodeInfo Info(int i) const {
    NodeInfo info = Node(i, rules.policy.min_nodes, rules.policy.max_nodes);
    info.policy = rules.policy;
    return info;
  }
  absl::Status Join(const NodeInfo& info, bool local = false) {
    return table.Join(info, Says(0, Phase::kReady), local, now);
  }
  absl::Status Join(int i) { return Join(Info(i)); }
  // Nodes 0 … n - 1 join and run what they are told.
  void Run(int n) {
    for (int i = 0; i < n; ++i) ASSERT_TRUE(Join(i).ok());
    for (int i = 0; i < n; ++i) ASSERT_TRUE(Say(i, Says(1, Phase::kRunning)).ok());
  }
  absl::Status Say(int i, const NodeUpdate& update) {
    return table.Update(absl::StrCat("id", i), i + 1, update, now);
  }
  void Beat(int i) { table.Heard(absl::StrCat("id", i), i + 1, now); }
  void Detach(int i) { table.Disconnected(absl::StrCat("id", i), i + 1, now); }
  Directive Told(int i) const { return table.DirectiveFor(absl::StrCat("id", i)); }
  // Time passes; `beating` nodes are heard of every second.
  void Pass(Duration duration, const std::vector<int>& beating = {}) {
    for (const Instant end = now + duration; now < end;) {
      now = std::min(end, now + seconds(1));
      for (int i : beating) Beat(i);
      table.Tick(now);
    }
  }

  Instant now = Instant{} + std::chrono::hours(1);
  const JobRules rules;
  RoundTable table;

 private:
  static JobRules RulesOf(const JobPolicy& policy) {
    JobRules rules;
    rules.job_id = "job";
    rules.policy = policy;
    rules.set_by = "node0 (pid 100)";
    return rules;
  }
};

TEST(RoundTable, FormsARoundWithRanksAndOneMaster) {
  Job job(3, 3);
  NodeInfo big = job.Info(1);
  big.nproc = 5;
  ASSERT_TRUE(job.Join(2).ok());
  ASSERT_TRUE(job.Join(big).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kWait);
  EXPECT_EQ(job.Told(2).reason, "waiting for 1 of 3 nodes; here: node1, node2");
  ASSERT_TRUE(job.Join(0).ok());
  const int first_rank[] = {0, 2, 7};
  for (int i = 0; i < 3; ++i) {
    const Directive told = job.Told(i);
    ASSERT_EQ(told.kind, Kind::kRun);
    EXPECT_EQ(told.round, 1);
    EXPECT_EQ(told.assignment.round, 1);
    EXPECT_EQ(told.assignment.node_rank, i);
    EXPECT_EQ(told.assignment.num_nodes, 3);
    EXPECT_EQ(told.assignment.first_rank, first_rank[i]);
    EXPECT_EQ(told.assignment.world_size, 9);
    EXPECT_EQ(told.assignment.master_addr, "10.0.0.1");
    EXPECT_EQ(told.assignment.master_port, 4000);
  }
  EXPECT_THAT(job.table.TakeChanged(), UnorderedElementsAre("id0", "id1", "id2"));
  EXPECT_THAT(job.table.TakeChanged(), IsEmpty());
}

TEST(RoundTable, TellsAllWhatItsFirstNodeOffers) {
  Job job(2, 2);
  for (int i = 0; i < 2; ++i) {
    NodeUpdate ready = Says(0, Phase::kReady);
    ready.store_port = static_cast<uint16_t>(4000 + i);
    ready.coordinator_port = static_cast<uint16_t>(5000 + i);
    ready.worker_store = i == 0;
    ASSERT_TRUE(job.table.Join(job.Info(i), ready, false, job.now).ok());
  }
  const auto expect = [](const Assignment& told) {
    EXPECT_EQ(told.master_port, 4000);
    EXPECT_EQ(told.coordinator_port, 5000);
    EXPECT_TRUE(told.worker_store);
  };
  expect(job.Told(0).assignment);
  expect(job.Told(1).assignment);
  const JobRecord restored = Job(job, seconds(1)).table.Record();
  EXPECT_EQ(restored.coordinator_port, 5000);
  EXPECT_TRUE(restored.worker_store);
}

TEST(RoundTable, TellsNodeRankZeroAloneWhoTheMembersAre) {
  Job job(3, 3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(job.Join(i).ok());
  EXPECT_THAT(job.Told(0).assignment.members, ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
  EXPECT_THAT(job.table.FirstAssignment().members, SizeIs(3));
  EXPECT_THAT(job.Told(1).assignment.members, IsEmpty());  // Its reply is O(1).
  EXPECT_THAT(job.Told(2).assignment.members, IsEmpty());
}

TEST(RoundTable, SucceedsOnlyWhenAllHave) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(1).outcome.exit_code, 0);
  EXPECT_EQ(job.Told(1).outcome.reason, "");
  EXPECT_FALSE(job.table.AllFinished());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kFinished)).ok());
  EXPECT_THAT(job.table.Unfinished(), ElementsAre("node0"));
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kFinished)).ok());
  EXPECT_TRUE(job.table.AllFinished());
}

TEST(RoundTable, FirstFailureIsTheCauseAndLaterOnesAreAppended) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  NodeUpdate last = Says(1, Phase::kFinished);
  for (int i = 0; i < 20; ++i) last.failures.push_back(Failure(0, 1));
  ASSERT_TRUE(job.Say(0, last).ok());
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.reason, "worker rank 2 on node1 (pid 1002) exited with 7");
  ASSERT_EQ(outcome.failures.size(), 16u);
  EXPECT_EQ(outcome.failures[0].rank, 2);
  EXPECT_EQ(outcome.total_failures, 17);
}

WorkerFailure Saying(WorkerFailure failure, const std::string& exception) {
  failure.message = exception;
  return failure;
}

TEST(RoundTable, AConsequenceWaitsForItsCause) {
  Job job(2, 2);
  job.Run(2);
  const std::string gone = "RuntimeError: Connection closed by peer [10.0.0.2]:4711";
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), gone))).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(milliseconds(500));
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 85))).ok());
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, 85);
  EXPECT_TRUE(outcome.worker_failed);
  ASSERT_EQ(outcome.failures.size(), 2u);
  EXPECT_EQ(outcome.failures[0].rank, 2);
  EXPECT_EQ(outcome.failures[1].rank, 1);
  EXPECT_EQ(outcome.cause_reason,
            "rank 2 on node1 failed by itself; 1 failure heard before: rank 1 on node0 lost a "
            "connection");
  EXPECT_TRUE(outcome.awaited.empty());
}

TEST(RoundTable, AConsequenceIsTheCauseIfNothingElseComes) {
  Job job(2, 2);
  job.Run(2);
  for (const Rank rank : {2, 3}) {
    NodeUpdate update = Failed(1, Saying(Failure(2, 1), "RuntimeError: Broken pipe"));
    if (rank == 3) update.failures.push_back(Saying(Failure(3, 1), "RuntimeError: Broken pipe"));
    ASSERT_TRUE(job.Say(1, update).ok());
  }
  job.Pass(milliseconds(900));
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(milliseconds(200));
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(outcome.failures[0].rank, 2);
  ASSERT_EQ(outcome.awaited.size(), 2u);
  EXPECT_EQ(outcome.awaited[0].rank, 0);
  EXPECT_EQ(outcome.awaited[1].rank, 1);
  EXPECT_EQ(outcome.awaited[1].local_rank, 1);
  EXPECT_EQ(outcome.awaited[1].host, "node0");
}

TEST(RoundTable, ACauseIsFoundBehindAnyNumberOfConsequences) {
  Job job(12, 12);
  job.Run(12);
  for (int i = 0; i < 11; ++i) {
    NodeUpdate update =
        Failed(1, Saying(Failure(2 * i, 1), "RuntimeError: Connection closed by peer"));
    update.failures.push_back(Saying(Failure(2 * i + 1, 1), "RuntimeError: Socket Timeout"));
    ASSERT_TRUE(job.Say(i, update).ok());
  }
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(11, Failed(1, Failure(23, 3))).ok());
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.failures[0].rank, 23);
  EXPECT_EQ(outcome.failures.size(), 16u);
  EXPECT_EQ(outcome.total_failures, 23);
}

TEST(RoundTable, ALostNodeExplainsAConsequence) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(0, 1), "RuntimeError: Broken pipe"))).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "its agent was killed", job.now).ok());
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, kExitNodeLost);
  EXPECT_FALSE(outcome.worker_failed);
  EXPECT_EQ(outcome.failures.size(), 1u);
}

TEST(RoundTable, ARestoredTableJudgesWhatHadFailed) {
  Job before(2, 2);
  before.Run(2);
  ASSERT_TRUE(before.Say(0, Failed(1, Saying(Failure(0, 1), "RuntimeError: Broken pipe"))).ok());
  Job job(before, milliseconds(10));
  job.Pass(milliseconds(10));
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(0).outcome.exit_code, 1);
}

TEST(RoundTable, TellsWhyItHadRestarted) {
  Job job(2, 2, /*max_restarts=*/1);
  job.Run(2);
  WorkerFailure failure = Saying(Failure(2, 7), "ValueError: bad batch");
  failure.log_tail = failure.traceback = "much";
  ASSERT_TRUE(job.Say(1, Failed(1, failure)).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(0, Failed(2, Failure(0, 9))).ok());
  const Outcome outcome = job.Told(0).outcome;
  ASSERT_EQ(outcome.history.size(), 1u);
  EXPECT_EQ(outcome.history[0].round, 1);
  EXPECT_EQ(outcome.history[0].reason,
            "worker rank 2 on node1 (pid 1002) exited with 7: ValueError: bad batch");
  ASSERT_TRUE(outcome.history[0].failure.has_value());
  EXPECT_EQ(outcome.history[0].failure->rank, 2);
  EXPECT_EQ(outcome.history[0].failure->log_tail, "");
  EXPECT_EQ(outcome.history[0].failure->traceback, "");
}

TEST(RoundTable, RestartsAfterAllHaveStopped) {
  Job job(2, 2, /*max_restarts=*/1);
  job.Run(2);
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_EQ(job.Told(0).round, 1);
  EXPECT_THAT(job.Told(0).reason, HasSubstr("exited with 7; restart 1 of 1"));
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).kind, Kind::kWait);
  EXPECT_THAT(job.Told(1).reason, HasSubstr("waiting for 1 of 2 nodes to stop"));
  NodeUpdate ready = Says(1, Phase::kReady);
  ready.store_port = 4001;
  ASSERT_TRUE(job.Say(0, ready).ok());
  const Assignment again = job.Told(1).assignment;
  EXPECT_EQ(again.round, 2);
  EXPECT_EQ(again.restart_count, 1);
  EXPECT_EQ(again.max_restarts, 1);
  EXPECT_EQ(again.node_rank, 1);
  EXPECT_EQ(again.master_port, 4001);
  ASSERT_TRUE(job.Say(1, Failed(2, Failure(3, 9))).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 9);
  EXPECT_EQ(job.Told(0).outcome.restart_count, 1);
  EXPECT_EQ(job.Told(0).outcome.total_failures, 1);
}

TEST(RoundTable, ANodeThatNeverHeardOfTheRoundMustSayThatItStopped) {
  Job job(2, 2, 1);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(0, Phase::kReady)).ok());  // Sent before it was told to run.
  EXPECT_EQ(job.Told(1).kind, Kind::kStop);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).assignment.round, 2);
}

TEST(RoundTable, DoubledAndLateUpdatesChangeNothing) {
  Job job(2, 2, 3);
  job.Run(2);
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  }
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.round, 2);
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(0, Says(0, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1);
  ASSERT_TRUE(job.Say(0, Says(2, Phase::kSucceeded)).ok());
  ASSERT_TRUE(job.Say(0, Says(2, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(1, Says(2, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 0);
}

TEST(RoundTable, AFailureIsKnownEvenIfOnlyTheNextStateArrives) {
  Job job(2, 2, 1);
  job.Run(2);
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  NodeUpdate ready = Says(1, Phase::kReady);
  ready.failures = {Failure(2, 9)};
  ASSERT_TRUE(job.Say(1, ready).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kLeft)).ok());
  job.Pass(seconds(601), {1});
  EXPECT_EQ(job.Told(1).outcome.exit_code, kExitJoinTimeout);
  EXPECT_EQ(job.Told(1).outcome.total_failures, 2);
}

TEST(RoundTable, RefusesContradictions) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate no_port = Says(0, Phase::kReady), no_failure = Says(1, Phase::kFailed);
  no_port.store_port = 0;
  for (const NodeUpdate& update :
       {Says(2, Phase::kRunning), Says(-1, Phase::kReady), Says(0, Phase::kRunning), no_port,
        no_failure, Says(1, Phase::kReady), Says(1, Phase::kFinished)}) {
    EXPECT_EQ(job.Say(0, update).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(RoundTable, RefusesNodesThatDoNotFit) {
  struct Case {
    std::string what;
    std::function<void(NodeInfo&)> change;
    StatusCode code;
    std::string message;
  };
  const Case cases[] = {
      {"job id", [](NodeInfo& n) { n.job_id = "other"; }, StatusCode::kFailedPrecondition,
       "the job at this endpoint is 'job', not 'other': give both the same --rdzv-id, or each its "
       "own port"},
      {"nnodes", [](NodeInfo& n) { n.policy.max_nodes = 3; }, StatusCode::kFailedPrecondition,
       "job job has --nnodes 2, set by node0 (pid 100), and node node1 (pid 101) says 2:3"},
      {"node id", [](NodeInfo& n) { n.node_id = ""; }, StatusCode::kInvalidArgument, "node id"},
      {"incarnation", [](NodeInfo& n) { n.incarnation = 0; }, StatusCode::kInvalidArgument,
       "incarnation"},
      {"min", [](NodeInfo& n) { n.policy.min_nodes = 0; }, StatusCode::kInvalidArgument,
       "--nnodes 0:2"},
      {"nproc", [](NodeInfo& n) { n.nproc = 0; }, StatusCode::kInvalidArgument,
       "--nproc-per-node 0"},
      {"long name", [](NodeInfo& n) { n.host = std::string(257, 'x'); },
       StatusCode::kInvalidArgument, "257 bytes"},
      {"rank range", [](NodeInfo& n) { n.node_rank = 2; }, StatusCode::kInvalidArgument,
       "node rank 2 of node node1 (pid 101) is not in 0 to 1 (--nnodes 2)"},
      {"duplicate rank", [](NodeInfo& n) { n.node_rank = 0; }, StatusCode::kUnavailable,
       "node rank 0 in job job is held by node0 (pid 100), which is being asked"},
      {"duplicate node", [](NodeInfo& n) { n.node_id = "id0"; }, StatusCode::kUnavailable,
       "the place of this node in job job is held by node0 (pid 100), which is being asked"},
  };
  Job job(2, 2);
  NodeInfo first = job.Info(0);
  first.node_rank = 0;
  ASSERT_TRUE(job.Join(first).ok());
  for (const Case& c : cases) {
    NodeInfo node = job.Info(1);
    c.change(node);
    const absl::Status status = job.Join(node);
    EXPECT_EQ(status.code(), c.code) << c.what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.what;
  }
  EXPECT_EQ(job.Told(0).reason,
            "waiting for 1 of 2 nodes: node rank 1 has not joined; here: node0");
}

TEST(RoundTable, ASurplusNodeStandsByAndIsToldWhatMayBeWrong) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kWait);
  EXPECT_EQ(job.Told(2).reason,
            "this node stands by as a spare: round 1 runs with 2 nodes, as --nnodes says; if this "
            "is another job, give it its own --rdzv-id and port");
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kSucceeded)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(2).outcome.exit_code, 0);
}

TEST(RoundTable, ASpareTakesThePlaceAndTheRankOfALostNode) {
  JobPolicy policy = Policy(3, 3, 1);
  policy.spares = 1;
  Job job(policy);
  job.Run(3);
  NodeInfo spare = job.Info(3);
  spare.node_rank = 3;  // As a scheduler numbers it.
  ASSERT_TRUE(job.Join(spare).ok());
  EXPECT_EQ(job.Told(3).reason, "this node stands by as a spare: round 1 runs with 3 nodes");
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  EXPECT_EQ(job.Told(3).kind, Kind::kWait);
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.node_rank, 0);
  EXPECT_EQ(job.Told(3).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(2).assignment.node_rank, 2);
  EXPECT_EQ(job.Told(3).assignment.restart_count, 1);
}

TEST(RoundTable, AJoinBeginsTheNextRoundUncharged) {
  Job job(1, 3);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(30), {0});
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(1).reason, "round 1 runs with 1 node; this node waits for the next");
  job.Pass(seconds(29), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);  // More may come: the last call.
  job.Pass(seconds(1), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_EQ(job.Told(0).reason, "node1 joined: from 1 to 2 nodes");
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(1).assignment.restart_count, 0);
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);  // Nobody else can come: at once.
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(2).assignment.num_nodes, 3);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 0);
}

TEST(RoundTable, ARoundThatIsPartlyDoneDoesNotGrow) {
  Job job(2, 3);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  job.Pass(seconds(30), {0, 1});
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kSucceeded)).ok());
  ASSERT_TRUE(job.Join(2).ok());
  job.Pass(seconds(60), {0, 1, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(job.Told(2).reason, "round 1 runs with 2 nodes, of which some are done");
}

TEST(RoundTable, ALossWithEnoughNodesLeftGoesOnWithFewerAndIsCharged) {
  Job job(2, 3, 1);
  job.Run(3);
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(30), {0, 2});
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(2).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 1);
}

// ---- Preflight.

JobPolicy WithPreflight(int min_nodes, int max_nodes) {
  JobPolicy policy = Policy(min_nodes, max_nodes);
  policy.preflight = Preflight::kQuick;
  return policy;
}

NodeUpdate Unfit(Round round, const std::string& why) {
  NodeUpdate update = Says(round, Phase::kPrepared);
  update.unfit = why;
  return update;
}

TEST(RoundTable, ARoundRunsOnceAllHaveCheckedIt) {
  Job job(WithPreflight(2, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  for (int i : {0, 1}) {
    EXPECT_EQ(job.Told(i).kind, Kind::kPrepare);
    EXPECT_EQ(job.Told(i).assignment.node_rank, i);
  }
  EXPECT_EQ(job.Say(0, Says(1, Phase::kRunning)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(job.Say(0, Says(1, Phase::kReady)).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kPrepare);
  EXPECT_EQ(job.table.Explain(job.now), "round 1 with 2 nodes is being checked; waiting for node1");
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kPrepared)).ok());
  for (int i : {0, 1}) EXPECT_EQ(job.Told(i).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kPrepared)).ok());  // Late.
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
}

TEST(RoundTable, AnUnfitNodeEndsAJobThatCannotDoWithoutIt) {
  Job job(WithPreflight(2, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(1, Unfit(1, "cannot reach 10.0.0.1:4000")).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitPreflight);
  EXPECT_EQ(job.Told(0).outcome.reason, "round 1 cannot start: node1: cannot reach 10.0.0.1:4000");
}

TEST(RoundTable, ASpareReplacesAnUnfitNodeUncharged) {
  Job job(WithPreflight(3, 3));
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Join(i).ok());
  ASSERT_TRUE(job.Join(3).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(1, Unfit(1, "no route")).ok());
  ASSERT_TRUE(job.Say(2, Says(1, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  const auto ended = job.table.TakeEnded();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].node_id, "id1");
  EXPECT_EQ(ended[0].status,
            absl::FailedPreconditionError("this node was excluded: node1: no route"));
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  for (int i : {0, 2, 3}) EXPECT_EQ(job.Told(i).kind, Kind::kPrepare);
  for (int i : {0, 2, 3}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(3).assignment.round, 2);
  EXPECT_EQ(job.Told(3).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(3).assignment.restart_count, 0);
}

NodeUpdate Measured(Round round, double processor) {
  NodeUpdate update = Says(round, Phase::kPrepared);
  update.health.hardware = "8 × CPU";
  update.health.figures[Figure::kProcessor] = processor;
  return update;
}

TEST(RoundTable, ASpareReplacesANodeThatIsSlowTwiceUncharged) {
  Job job(WithPreflight(4, 4));
  for (int i : {0, 1, 2, 3, 4}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1, 3}) ASSERT_TRUE(job.Say(i, Measured(1, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(1, 9)).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kStop);
  EXPECT_THAT(job.Told(0).reason, testing::HasSubstr("round 1 is measured once more: node2"));
  EXPECT_TRUE(job.table.TakeEnded().empty());
  for (int i : {0, 1, 2, 3}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(2).assignment.node_rank, 2);  // All have their places again.
  for (int i : {0, 1, 3}) ASSERT_TRUE(job.Say(i, Measured(2, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(2, 9)).ok());
  const auto ended = job.table.TakeEnded();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].node_id, "id2");
  EXPECT_THAT(std::string(ended[0].status.message()), testing::HasSubstr("processor 9 ms"));
  for (int i : {0, 1, 3}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kReady)).ok());
  for (int i : {0, 1, 3, 4}) ASSERT_TRUE(job.Say(i, Measured(3, 3)).ok());
  std::vector<int> ranks;
  for (int i : {0, 1, 3, 4}) {
    EXPECT_EQ(job.Told(i).kind, Kind::kRun);
    EXPECT_EQ(job.Told(i).assignment.restart_count, 0);
    ranks.push_back(job.Told(i).assignment.node_rank);
  }
  EXPECT_THAT(ranks, testing::UnorderedElementsAre(0, 1, 2, 3));
  const JobRecord record = job.table.Record();
  EXPECT_EQ(record.total_excluded, 1);
  ASSERT_EQ(record.excluded.size(), 1u);
  EXPECT_THAT(record.excluded[0], testing::HasSubstr("node2: processor 9 ms"));
  Outcome enough;
  enough.exit_code = 1;
  job.table.End(enough, job.now);
  EXPECT_EQ(job.Told(0).outcome.excluded, record.excluded);
}

TEST(RoundTable, ANodeThatWasSlowOnceStays) {
  Job job(WithPreflight(3, 3));
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Measured(1, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(1, 9)).ok());
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Measured(2, 3)).ok());
  for (int i : {0, 1, 2}) EXPECT_EQ(job.Told(i).kind, Kind::kRun);
  EXPECT_EQ(job.Told(0).assignment.notice, "");
}

TEST(RoundTable, ABadNodeThatIsNeededRunsAndNodeRankZeroIsTold) {
  Job job(WithPreflight(2, 2));
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  NodeUpdate faulty = Says(1, Phase::kPrepared);
  faulty.health.fault = "devices: 7 of the 8 hpu devices asked for work";
  ASSERT_TRUE(job.Say(1, faulty).ok());
  for (int i : {0, 1}) EXPECT_EQ(job.Told(i).kind, Kind::kRun);
  EXPECT_THAT(job.Told(0).assignment.notice, testing::HasSubstr("node1: devices: 7 of the 8"));
  EXPECT_EQ(job.Told(1).assignment.notice, "");
}

TEST(RoundTable, ExcludesNoMoreOfTheBadThanItsShareHoweverManyRoundsItTakes) {
  Job job(WithPreflight(1, 4));
  for (int i : {0, 1, 2, 3}) ASSERT_TRUE(job.Join(i).ok());
  NodeUpdate faulty = Says(1, Phase::kPrepared);
  faulty.health.fault = "heat";
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(3, faulty).ok());
  EXPECT_EQ(job.table.TakeEnded().size(), 1u);
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(30), {0, 1, 2});
  faulty.round = 2;
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(2, faulty).ok());
  EXPECT_TRUE(job.table.TakeEnded().empty());
  EXPECT_EQ(job.Told(2).kind, Kind::kRun);
}

TEST(RoundTable, ANodeThatDoesNotAnswerThePreflightIsExcluded) {
  Job job(WithPreflight(1, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  job.Pass(seconds(14), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kPrepare);
  job.Pass(seconds(1), {0, 1});
  EXPECT_EQ(job.Told(0).reason, "round 1 cannot start: node1 did not answer");
}

TEST(RoundTable, AnUnfitNodeThatComesBackStopsNoRound) {
  Job job(WithPreflight(2, 3));
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(2, Unfit(1, "no route")).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(30), {0, 1});
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(0).assignment.round, 2);
  NodeInfo again = job.Info(2);
  again.incarnation = 50;
  ASSERT_TRUE(job.Join(again).ok());
  for (int second = 0; second < 40; ++second) {
    job.Pass(seconds(1), {0, 1});
    job.table.Heard("id2", 50, job.now);
  }
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Join(4).ok());  // A fit one does.
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
}

TEST(RoundTable, ANodeLostInPreflightIsNotCharged) {
  Job job(WithPreflight(2, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).reason,
            "waiting for 1 of 2 nodes; here: node0 (node node1 was lost: power)");
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kPrepare);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 0);
}

TEST(RoundTable, ALoneNodeHasNothingToCheck) {
  Job job(WithPreflight(1, 1));
  ASSERT_TRUE(job.Join(0).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

// ---- What survives a restart of the rendezvous.

TEST(RoundTable, ARunningRoundGoesOnAfterARestart) {
  Job before(2, 2, 1);
  before.Run(2);
  Job job(before, seconds(20));
  EXPECT_EQ(job.table.Explain(job.now),
            "round 1 runs with 2 nodes and 4 workers; not heard of: node0 (silent for 0 s), node1 "
            "(silent for 0 s)");
  job.Pass(seconds(39));  // Nobody is lost before loss limit and margin.
  for (int i : {0, 1}) {
    ASSERT_TRUE(job.table.Join(job.Info(i), Says(1, Phase::kRunning), false, job.now).ok());
    EXPECT_EQ(job.Told(i).kind, Kind::kRun);
    EXPECT_EQ(job.Told(i).assignment.node_rank, i);
    EXPECT_EQ(job.Told(i).assignment.master_addr, "10.0.0.1");
  }
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.round, 2);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1);
}

TEST(RoundTable, ARestartThatWasChargedStaysCharged) {
  Job before(2, 2, 1);
  before.Run(2);
  ASSERT_TRUE(before.Say(1, Failed(1, Failure(2, 7))).ok());
  ASSERT_TRUE(before.Say(1, Says(1, Phase::kReady)).ok());
  Job job(before, seconds(1));
  NodeUpdate ready = Says(1, Phase::kReady);
  ready.failures = {Failure(2, 7)};
  ASSERT_TRUE(job.table.Join(job.Info(1), ready, false, job.now).ok());
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kRunning), false, job.now).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_THAT(job.Told(0).reason, HasSubstr("exited with 7; restart 1 of 1"));
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1);
  ASSERT_TRUE(job.Say(0, Failed(2, Failure(0, 9))).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 9);
}

TEST(RoundTable, WhatHappenedWhileNobodyListenedIsToldAfterTheRestart) {
  Job before(2, 2);
  before.Run(2);
  ASSERT_TRUE(before.Say(0, Says(1, Phase::kSucceeded)).ok());  // Not worth a record.
  const uint64_t version = before.table.durable_version();
  Job job(before, seconds(1));
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kSucceeded), false, job.now).ok());
  ASSERT_TRUE(job.table.Join(job.Info(1), Says(1, Phase::kSucceeded), false, job.now).ok());
  EXPECT_EQ(job.Told(1).outcome.exit_code, 0);
  EXPECT_EQ(before.table.durable_version(), version);
}

TEST(RoundTable, AGhostIsStillAGhostAfterARestart) {
  Job before(2, 2, 1);
  before.Run(2);
  before.Detach(1);
  NodeInfo elsewhere = before.Info(1);
  elsewhere.incarnation = 50;
  elsewhere.host = "other";
  ASSERT_TRUE(before.Join(elsewhere).ok());
  Job job(before, seconds(10));
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kReady), false, job.now).ok());
  ASSERT_TRUE(job.Join(elsewhere).ok());
  EXPECT_THAT(job.Told(0).reason, HasSubstr("waiting until node1 (pid 101) must have stopped"));
}

TEST(RoundTable, AnOutcomeIsToldAfterARestart) {
  Job before(2, 2);
  before.Run(2);
  ASSERT_TRUE(before.Say(1, Failed(1, Failure(2, 7))).ok());
  Job job(before, seconds(1));
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kRunning), false, job.now).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 7);
  EXPECT_FALSE(job.table.AllFinished());
  EXPECT_EQ(job.Join(5).code(), StatusCode::kFailedPrecondition);
}

TEST(RoundTable, EveryDecisionChangesTheDurableVersion) {
  Job job(WithPreflight(2, 2));
  uint64_t version = job.table.durable_version();
  const auto changed = [&] {
    return std::exchange(version, job.table.durable_version()) != version;
  };
  ASSERT_TRUE(job.Join(0).ok());
  EXPECT_FALSE(changed());
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_TRUE(changed());  // Proposed.
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kPrepared)).ok());
  EXPECT_TRUE(changed());  // Running.
  job.Beat(0);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  EXPECT_FALSE(changed());
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  EXPECT_TRUE(changed());  // Over.
}

TEST(RoundTable, WhoHasHeardTheEndIsNotAwaitedAfterARestart) {
  Job job(2, 2);
  job.Run(2);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.table.Record().members.size(), 2u);
  const uint64_t over = job.table.durable_version();
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kFinished)).ok());
  EXPECT_EQ(job.table.durable_version(), over);  // One more record for a job, not one for a node.
  EXPECT_EQ(job.table.Record().members.size(), 1u);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kFinished)).ok());
  EXPECT_GT(job.table.durable_version(), over);
  EXPECT_THAT(job.table.Record().members, IsEmpty());
  const uint64_t finished = job.table.durable_version();
  job.Pass(seconds(50));  // They are gone.
  EXPECT_EQ(job.table.durable_version(), finished);
}

// ---- Who reports.

TEST(RoundTable, OneNodeIsToldTheWholeReportAndTheOthersTheFirstCause) {
  Job job(2, 2);
  job.Run(2);
  WorkerFailure failure = Failure(2, 7);
  failure.log_tail = "Traceback";
  NodeUpdate failed = Failed(1, failure);
  failed.failures.push_back(Failure(3, 1));
  ASSERT_TRUE(job.Say(1, failed).ok());
  const Outcome whole = job.Told(0).outcome, part = job.Told(1).outcome;
  EXPECT_TRUE(whole.report);
  EXPECT_EQ(whole.failures.size(), 2u);
  EXPECT_EQ(whole.failures[0].log_tail, "Traceback");
  EXPECT_FALSE(part.report);
  ASSERT_EQ(part.failures.size(), 1u);
  EXPECT_EQ(part.failures[0].exit_code, 7);
  EXPECT_EQ(part.failures[0].log_tail, "");
  EXPECT_EQ(part.total_failures, 2);
}

TEST(RoundTable, StatusListsWhoIsAwaitedFirst) {
  Job job(3, 3);
  job.Run(3);
  ASSERT_TRUE(job.Join(3).ok());
  job.Detach(1);
  job.Pass(seconds(7), {0, 2, 3});
  const JobStatus status = job.table.Status(job.now);
  EXPECT_EQ(status.state, JobState::kRunning);
  EXPECT_EQ(status.total_nodes, 4);
  std::vector<std::string> lines;
  for (const NodeStatus& node : status.nodes) {
    lines.push_back(absl::StrCat(node.node_rank, " ", node.host, " ", node.state));
  }
  EXPECT_THAT(lines, ElementsAre("1 node1 not connected for 7 s", "0 node0 running",
                                 "2 node2 running", "-1 node3 spare"));
}

// ---- Who holds a place.

TEST(RoundTable, ALiveHolderOfAPlaceIsAskedAndKeepsIt) {
  Job job(2, 2);
  job.Run(2);
  NodeInfo young = job.Info(1);
  young.incarnation = 50;
  EXPECT_EQ(job.Join(young).code(), StatusCode::kUnavailable);
  EXPECT_THAT(job.table.TakeAsked(), ElementsAre("id1"));
  EXPECT_EQ(job.Join(young).code(), StatusCode::kUnavailable);
  EXPECT_THAT(job.table.TakeAsked(), IsEmpty());  // Once is enough.
  job.now += milliseconds(100);
  job.Beat(1);
  const absl::Status status = job.Join(young);
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is held by node1 (pid 101): stop that one first"));
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
}

TEST(RoundTable, AHolderThatDoesNotAnswerIsReplaced) {
  Job job(2, 2, 1);
  job.Run(2);
  NodeInfo young = job.Info(1);
  young.incarnation = 50;
  EXPECT_EQ(job.Join(young).code(), StatusCode::kUnavailable);
  job.Pass(seconds(1), {0});
  ASSERT_TRUE(job.Join(young).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
}

TEST(RoundTable, AReplacementMayWaitForASilentNodeToBeLost) {
  Job job(2, 2, 1);
  job.Run(2);
  job.Detach(1);
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_THAT(job.Told(2).reason, HasSubstr("this node stands by as a spare"));
  job.Pass(seconds(39), {0, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(seconds(1), {0, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.node_rank, 0);
  EXPECT_EQ(job.Told(2).assignment.node_rank, 1);
}

TEST(RoundTable, ABrokenStreamIsNotDeath) {
  Job job(2, 2);
  job.Run(2);
  job.Detach(1);
  job.Pass(seconds(39), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_THAT(job.table.Explain(job.now), HasSubstr("not heard of: node1 (silent for 39 s)"));
  ASSERT_TRUE(job.table.Join(job.Info(1), Says(1, Phase::kRunning), false, job.now).ok());
  job.Pass(seconds(39), {0});
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
  EXPECT_EQ(job.Told(1).assignment.node_rank, 1);
}

TEST(RoundTable, SilenceBeyondLossLimitAndMarginIsLoss) {
  Job job(2, 2);
  job.Run(2);
  job.Pass(seconds(40), {0});
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
  EXPECT_EQ(job.Told(0).outcome.reason, "node node1 was lost: it was not heard of for 40 s");
  const auto ended = job.table.TakeEnded();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].node_id, "id1");
  EXPECT_EQ(ended[0].status.code(), StatusCode::kAborted);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kFinished)).ok());
  EXPECT_TRUE(job.table.AllFinished());
}

TEST(RoundTable, ANodeThatWasGivenUpIsAborted) {
  Job job(2, 2, 1);
  job.Run(2);
  job.Pass(seconds(40), {0});
  EXPECT_EQ(job.Say(1, Says(1, Phase::kRunning)).code(), StatusCode::kAborted);
  for (Round round : {0, 1}) {
    const absl::Status status =
        job.table.Join(job.Info(1), Says(round, Phase::kReady), false, job.now);
    EXPECT_EQ(status.code(), StatusCode::kAborted);
    EXPECT_EQ(std::string(status.message()),
              "the job gave up node node1 (pid 101): it was not heard of for 40 s");
  }
  NodeInfo stranger = job.Info(3);
  EXPECT_EQ(job.table.Join(stranger, Says(5, Phase::kRunning), false, job.now).code(),
            StatusCode::kAborted);
}

TEST(RoundTable, ALargeJobRemembersEveryoneItGaveUp) {
  constexpr int kNodes = 2000;
  Job job(1, kNodes);
  for (int i = 0; i + 1 < kNodes; ++i) ASSERT_TRUE(job.Join(i).ok());
  for (int i = 0; i + 1 < kNodes; ++i) {
    ASSERT_TRUE(job.table.NodeDied(absl::StrCat("id", i), i + 1, "power", job.now).ok());
  }
  EXPECT_EQ(job.Join(0).code(), StatusCode::kAborted);
}

TEST(RoundTable, AProvenDeathIsLossAtOnce) {
  Job job(2, 2);
  job.Run(2);
  EXPECT_EQ(job.table.NodeDied("id1", 77, "?", job.now).code(), StatusCode::kAborted);
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "its agent was killed by signal 9", job.now).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
  EXPECT_THAT(job.Told(0).outcome.reason, HasSubstr("its agent was killed by signal 9"));
}

TEST(RoundTable, ALossWithBudgetWaitsForAReplacementAndSaysSo) {
  Job job(2, 2, 1);
  job.Run(2);
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  EXPECT_EQ(job.Told(0).reason,
            "waiting for 1 of 2 nodes; here: node0 (node node1 was lost: power; restart 1 of 1)");
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(2).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 1);
}

TEST(RoundTable, ALossAfterSuccessIsNoFailure) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kSucceeded)).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 0);
}

TEST(RoundTable, LeavingEndsTheJobOrAsksForAReplacement) {
  for (int max_restarts : {0, 1}) {
    Job job(2, 2, max_restarts);
    job.Run(2);
    ASSERT_TRUE(job.Say(1, Says(1, Phase::kLeft)).ok());
    EXPECT_EQ(job.Told(1).kind, Kind::kFinish);
    EXPECT_EQ(job.Told(1).outcome.exit_code, 130);
    EXPECT_EQ(job.Told(0).kind, max_restarts == 0 ? Kind::kFinish : Kind::kStop);
    ASSERT_TRUE(job.Say(1, Says(1, Phase::kFinished)).ok());
    EXPECT_EQ(job.Told(0).outcome.exit_code, max_restarts == 0 ? 130 : 0);
  }
}

TEST(RoundTable, LeavingBeforeTheRoundOnlyFreesThePlace) {
  Job job(2, 2);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Say(0, Says(0, Phase::kLeft)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(1).reason, "waiting for 1 of 2 nodes; here: node1");
  NodeInfo again = job.Info(0);
  again.incarnation = 50;
  ASSERT_TRUE(job.Join(again).ok());
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
}

TEST(RoundTable, TheRendezvousHostsOwnNodeTakesTheJobWithIt) {
  Job job(2, 2, 3);
  ASSERT_TRUE(job.Join(job.Info(0), /*local=*/true).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Says(0, Phase::kLeft)).ok());
  EXPECT_EQ(job.Told(1).outcome.exit_code, 130);
  EXPECT_EQ(job.Told(1).outcome.reason, "node node0 left: SIGINT");
}

TEST(RoundTable, ALocalNodeNeedsNoSignOfLife) {
  Job job(1, 1);
  ASSERT_TRUE(job.Join(job.Info(0), /*local=*/true).ok());
  EXPECT_EQ(job.table.NextDeadline(), std::nullopt);
  job.Pass(seconds(1000));
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(RoundTable, ARestartedAgentReplacesItsOldSelf) {
  Job job(2, 2, 1);
  job.Run(2);
  NodeInfo young = job.Info(1);
  young.incarnation = 50;
  young.pid = 999;
  job.Detach(1);
  ASSERT_TRUE(job.Join(young).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_THAT(job.Told(0).reason, HasSubstr("its place was taken by node1 (pid 999)"));
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).assignment.round, 2);
  EXPECT_EQ(job.Told(1).assignment.node_rank, 1);
  EXPECT_EQ(job.Join(job.Info(1)).code(), StatusCode::kAborted);
}

// A cable that is cut may hold the join of an agent that has been killed and replaced meanwhile.
TEST(RoundTable, ALateWordOfADeadAgentTakesNoPlaceFromItsSuccessor) {
  Job job(2, 2, 1);
  NodeInfo young = job.Info(1);
  young.incarnation = 50;
  young.pid = 999;
  young.started_ms = 7000;
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(young).ok());
  job.table.Disconnected(young.node_id, young.incarnation, job.now);
  NodeInfo dead = job.Info(1);
  dead.started_ms = 6999;
  const absl::Status status = job.Join(dead);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("held by node1 (pid 999), which started later on this host"));
  ASSERT_TRUE(job.Join(young).ok());
  EXPECT_EQ(job.Told(0).assignment.round, 1);
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(RoundTable, ARestartWithoutBudgetEndsTheJob) {
  Job job(2, 2);
  job.Run(2);
  job.Detach(1);
  NodeInfo young = job.Info(1);
  young.incarnation = 50;
  const absl::Status status = job.Join(young);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job job is over: node node1 was lost"));
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
}

TEST(RoundTable, APlaceTakenFromAnotherHostWaitsUntilTheOldWorkersMustBeDead) {
  Job job(2, 2, 1);
  job.Run(2);
  job.Detach(1);
  NodeInfo elsewhere = job.Info(1);
  elsewhere.incarnation = 50;
  elsewhere.host = "other";
  ASSERT_TRUE(job.Join(elsewhere).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_THAT(job.Told(0).reason, HasSubstr("waiting until node1 (pid 101) must have stopped"));
  for (int second = 0; second < 39; ++second) {
    job.now += seconds(1);
    job.Beat(0);
    job.table.Heard("id1", 50, job.now);
    job.table.Tick(job.now);
    EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  }
  ASSERT_TRUE(
      job.table.NodeDied("id1", 2, "power", job.now).ok());  // Or proof, or one second more.
  EXPECT_EQ(job.Told(0).assignment.round, 2);
}

TEST(RoundTable, GivesUpWhenNodesDoNotComeAndNamesThem) {
  Job job(2, 2);
  NodeInfo first = job.Info(0);
  first.node_rank = 0;
  ASSERT_TRUE(job.Join(first).ok());
  job.Pass(seconds(599), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  job.Pass(seconds(1), {0});
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitJoinTimeout);
  EXPECT_EQ(
      job.Told(0).outcome.reason,
      "gave up after 600 s: waiting for 1 of 2 nodes: node rank 1 has not joined; here: node0");
  EXPECT_EQ(job.Join(1).code(), StatusCode::kFailedPrecondition);
}

TEST(RoundTable, StartsBelowMaxAfterTheLastCall) {
  Job job(1, 3);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(29), {0});
  EXPECT_EQ(job.Told(0).reason, "last call: 1 of 1 to 3 nodes may start; here: node0");
  job.Pass(seconds(1), {0});
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 1);
}

TEST(RoundTable, ASilentNodeBeginsNoRound) {
  Job job(2, 2);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(5));
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(1).reason, "waiting for 1 of 2 nodes; here: node1; not heard of: node0");
  job.Beat(0);
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
}

TEST(RoundTable, ItsOwnPauseIsNobodysSilence) {
  Job job(2, 2);
  job.Run(2);
  job.Pass(seconds(30), {0, 1});
  job.now += seconds(3600);  // Stopped.
  job.table.Tick(job.now);
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(seconds(38), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(seconds(2), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
}

TEST(RoundTable, EndIsAnOutcomeLikeAnyOther) {
  Job job(2, 2, 3);
  job.Run(2);
  job.table.End({.exit_code = 143, .reason = "SIGTERM", .failures = {}}, job.now);
  job.table.End({.exit_code = 1, .reason = "later", .failures = {}}, job.now);
  EXPECT_EQ(job.Told(1).outcome.exit_code, 143);
  EXPECT_EQ(job.Told(1).outcome.reason, "SIGTERM");
}

TEST(RoundTable, ALargeJobIsToldTheReasonOnceASecond) {
  constexpr int kNodes = 2000;
  Job job(kNodes, kNodes);
  size_t told = 0;
  for (int i = 0; i < kNodes; ++i) {
    ASSERT_TRUE(job.Join(i).ok());
    told += job.table.TakeChanged().size();
  }
  EXPECT_LT(told, 4u * kNodes + 64 * 64);  // Its own word each, the start, and the first 64.
  EXPECT_EQ(job.Told(kNodes - 1).assignment.node_rank, kNodes - 1);
  EXPECT_EQ(job.Told(7).assignment.world_size, 2 * kNodes);
}

TEST(RoundTable, AwaitsNothingOnceTheNodesThatWouldHaveGrownTheRoundAreGone) {
  Job job(1, 3);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(30), {0});
  ASSERT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "killed", job.now).ok());
  job.Pass(seconds(35), {0});
  EXPECT_GT(job.table.NextDeadline(), job.now);  // Else its thread spins and time stands still.
  job.Pass(seconds(40));
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  EXPECT_EQ(job.table.state(), JobState::kOver);
}

TEST(RoundTable, JudgesAFailureInTimeThoughGrowthIsDueMeanwhile) {
  Job job(2, 4);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  job.Pass(seconds(30), {0, 1});
  ASSERT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Join(2).ok());  // The last call for others ends in 30 s.
  job.Pass(milliseconds(29500), {0, 1, 2});
  const std::string timed_out = "RuntimeError: Socket Timeout";
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(0, 1), timed_out))).ok());
  job.Pass(milliseconds(600), {1, 2});
  EXPECT_EQ(job.table.state(), JobState::kRunning);
  EXPECT_GT(job.table.NextDeadline(), job.now);  // Else its thread spins and time stands still.
  for (int i = 0; i < 40; ++i) job.Pass(milliseconds(100), {1, 2});
  EXPECT_EQ(job.table.state(), JobState::kOver);
}

TEST(RoundTable, ANodeIsInTheRoundThatItsComingBackMakesPossible) {
  Job job(2, 2, 1);
  job.Run(2);
  ASSERT_TRUE(job.Join(2).ok());  // A spare.
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  job.Detach(1);
  NodeInfo again = job.Info(1);
  again.incarnation = 77;
  ASSERT_TRUE(job.Join(again).ok());  // The one that it replaces was the last to stop.
  ASSERT_EQ(job.table.round(), 2);
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
  EXPECT_EQ(job.Told(1).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(2).kind, Kind::kWait);
}

TEST(RoundTable, AFailureThatIsToldAgainAfterARestartCountsOnce) {
  Job before(2, 2);
  before.Run(2);
  const NodeUpdate failed = Failed(1, Failure(2, 7));
  ASSERT_TRUE(before.Say(1, failed).ok());
  Job job(before, seconds(3));
  ASSERT_TRUE(job.table.Join(job.Info(1), failed, false, job.now).ok());
  EXPECT_EQ(job.Told(1).outcome.total_failures, 1);
  EXPECT_EQ(job.Told(1).outcome.failures.size(), 1U);
}

TEST(RoundTable, ANodeThatWasGivenUpIsRefusedAfterARestartToo) {
  Job before(1, 2, 1);
  before.Run(2);
  before.Pass(seconds(40), {0});
  Job job(before, seconds(3));
  // It was told round 1 and has not read that yet: a word it may still obey.
  EXPECT_EQ(job.Join(1).code(), StatusCode::kAborted);
}

TEST(RoundTable, ALargeJobLooksForGrowthAtMostOnceASecond) {
  JobPolicy policy = Policy(1, 200);
  policy.last_call = seconds(10);
  Job job(policy);
  std::vector<int> all;
  for (int i = 0; i < 180; ++i) all.push_back(i);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(job.Join(i).ok());
  job.Pass(seconds(11), std::vector<int>(all.begin(), all.begin() + 100));
  ASSERT_EQ(job.table.state(), JobState::kRunning);
  job.table.TakeChanged();
  size_t told = 0;
  for (int i = 100; i < 180; ++i) {
    job.now += milliseconds(10);
    ASSERT_TRUE(job.Join(i).ok());
    told += job.table.TakeChanged().size();
  }
  EXPECT_LE(told, 2 * 80U);  // Not each of them for each of them.
  job.Pass(seconds(12), all);
  EXPECT_EQ(job.Told(179).reason,
            "waiting for 100 of 100 nodes to stop: node100, node101, node102 "
            "and 77 more joined: from 100 to 180 nodes");
}

}  // namespace
}  // namespace hlaunch
