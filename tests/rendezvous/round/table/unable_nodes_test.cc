// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = Directive::Kind;

// Node `i` joins only to say that it cannot start.
absl::Status CannotStart(TableJob& job, const NodeInfo& info, int exit_code = kExitNotFound) {
  NodeUpdate left = Says(0, NodePhase::kLeft);
  left.store_port = 0;
  left.left_reason = "no script t.py";
  left.left_exit_code = exit_code;
  return job.table.Join(info, left, false, job.now);
}

TEST(UnableNodes, AJobOfAFixedNumberOfNodesEndsAtOnceWithTheCause) {
  TableJob job(2, 2);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(CannotStart(job, job.Info(1)).ok());
  const Directive told = job.Told(0);
  ASSERT_EQ(told.kind, Kind::kFinish);
  EXPECT_EQ(told.outcome.exit_code, kExitNotFound);
  EXPECT_EQ(told.outcome.reason, "node1 cannot start: no script t.py");
}

TEST(UnableNodes, WhoComesLaterHearsItToo) {
  TableJob job(2, 2);
  ASSERT_TRUE(CannotStart(job, job.Info(1)).ok());
  ASSERT_TRUE(job.Join(0).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
}

TEST(UnableNodes, ANodeIsNamedAndTheJobGoesOnWhereThatMayHelp) {
  struct Case {
    const char* name;
    JobPolicy policy;
    int exit_code;
    bool on_host_of_node0 = false;
  };
  JobPolicy spare = Policy(2, 2);
  spare.spares = 1;
  for (const Case& c : {Case{"others may come", Policy(2, 3), kExitNotFound},
                        Case{"a spare may come", spare, kExitNotFound},
                        Case{"a device may be let go", Policy(2, 2), kExitNoResources},
                        Case{"a second one of a host", Policy(3, 3), kExitNotFound, true}}) {
    TableJob job(c.policy);
    ASSERT_TRUE(job.Join(0).ok());
    NodeInfo info = job.Info(1);
    if (c.on_host_of_node0) {
      info.host = job.Info(0).host;
      info.address = job.Info(0).address;
    }
    ASSERT_TRUE(CannotStart(job, info, c.exit_code).ok());
    const Directive told = job.Told(0);
    EXPECT_EQ(told.kind, Kind::kWait) << c.name;
    ASSERT_THAT(told.news, SizeIs(1)) << c.name;
    EXPECT_THAT(told.news[0].text, HasSubstr(" cannot start: no script t.py")) << c.name;
  }
}

TEST(UnableNodes, ANodeThatAPersonStoppedIsNoneOfThem) {
  TableJob job(2, 2);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(CannotStart(job, job.Info(1), 130).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  EXPECT_THAT(job.Told(0).news, IsEmpty());
}

TEST(UnableNodes, ASpareTooFewEndsTheJob) {
  JobPolicy policy = Policy(2, 2);
  policy.spares = 1;
  TableJob job(policy);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(CannotStart(job, job.Info(1)).ok());
  ASSERT_TRUE(CannotStart(job, job.Info(2)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
}

TEST(UnableNodes, ARefusedNodeIsNamedToThoseWhoWait) {
  TableJob job(2, 2);
  ASSERT_TRUE(job.Join(0).ok());
  NodeInfo info = job.Info(1);
  info.policy.min_nodes = info.policy.max_nodes = 3;
  EXPECT_TRUE(absl::IsFailedPrecondition(job.Join(info)));
  ASSERT_THAT(job.Told(0).news, SizeIs(1));
  EXPECT_THAT(job.Told(0).news[0].text, HasSubstr("node1 was refused: "));
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(UnableNodes, ARefusedNodeIsNamedToThoseWhoWaitedInVain) {
  TableJob job(2, 2);
  ASSERT_TRUE(job.Join(0).ok());
  NodeInfo info = job.Info(1);
  info.policy.min_nodes = info.policy.max_nodes = 3;
  EXPECT_TRUE(absl::IsFailedPrecondition(job.Join(info)));
  job.Pass(seconds(600), {0});
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitJoinTimeout);
  EXPECT_TRUE(job.Told(0).outcome.refused);
  EXPECT_THAT(job.Told(0).outcome.reason, HasSubstr("; node1 was refused: "));
}

TEST(UnableNodes, ARefusalInARunningRoundIsNobodysNews) {
  TableJob job(2, 2);
  job.Run(2);
  NodeInfo info = job.Info(2);
  info.policy.min_nodes = info.policy.max_nodes = 3;
  EXPECT_TRUE(absl::IsFailedPrecondition(job.Join(info)));
  EXPECT_THAT(job.Told(0).news, IsEmpty());
}

}  // namespace
}  // namespace hlaunch
