// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/job_words.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

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
  const JobStatus status = job.table.Status(job.now, 0);
  EXPECT_EQ(status.state, JobState::kRunning);
  EXPECT_EQ(status.total_nodes, 4);
  std::vector<std::string> lines;
  for (const NodeStatus& node : status.nodes) {
    lines.push_back(absl::StrCat(node.node_rank, " ", node.host, " ", node.state));
  }
  EXPECT_EQ(status.nodes[0].standing, NodeStanding::kNotConnected);
  EXPECT_EQ(status.nodes[3].standing, NodeStanding::kSpare);
  EXPECT_THAT(lines, ElementsAre("1 node1 not connected for 7 s", "0 node0 running",
                                 "2 node2 running", "-1 node3 spare"));
}

}  // namespace
}  // namespace hlaunch
