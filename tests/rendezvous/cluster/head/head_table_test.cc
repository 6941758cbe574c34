// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/head_table.h"

#include <csignal>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/cluster/head/head_world.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

PartTold Told(uint64_t job, PartState state, std::optional<int> code = std::nullopt) {
  PartTold told;
  told.job = job;
  told.state = state;
  told.exit_code = code;
  return told;
}

class HeadTableTest : public testing::Test {
 protected:
  // A job of two nodes that runs.
  uint64_t RunTwoNodes() {
    world.Come("node1", FactsOf(8));
    world.Come("node2", FactsOf(8));
    const uint64_t job = world.Submit(RequestOf(2));
    world.Tell("node1", job, PartState::kStarting, "node1:5000");
    world.Tell("node2", job, PartState::kRunning);
    world.Tell("node1", job, PartState::kRunning, "node1:5000");
    world.Orders();
    EXPECT_EQ(world.State(job), ClusterJobState::kRunning);
    return job;
  }

  // The reasons of the orders to leave since the last call, empty for orders to stay. Each order
  // gets `answer`.
  std::vector<std::string> LeaveOrders(const absl::Status& answer = absl::UnavailableError("")) {
    std::vector<std::string> reasons;
    world.Write();
    for (const HeadOrder& order : world.table->TakeOrders()) {
      const auto* leave = std::get_if<LeaveOrder>(&order.what);
      if (leave != nullptr) reasons.push_back(leave->reason);
      world.table->TakeAnswer(order, answer, world.t());
    }
    return reasons;
  }

  HeadWorld world;
};

TEST_F(HeadTableTest, StartsNode0FirstAndTheOthersOnceItHosts) {
  world.Come("node2", FactsOf(8));
  world.Come("node1", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(2));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 start 1"));
  EXPECT_EQ(world.Why(job), "waits for node 0 (node1) to host its rendezvous");
  world.Tell("node1", job, PartState::kStarting, "node1:5000");
  EXPECT_THAT(world.Orders(), ElementsAre("node2 start 1"));
  world.Tell("node1", job, PartState::kRunning, "node1:5000");
  EXPECT_EQ(world.State(job), ClusterJobState::kRunning);
}

TEST_F(HeadTableTest, OrdersWhatThePartNeeds) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(2, 4));
  world.table->TakeOrders();
  world.Tell("node1", job, PartState::kStarting, "node1:5000");
  const std::vector<HeadOrder> orders = world.table->TakeOrders();
  ASSERT_EQ(orders.size(), 1u);
  const PartOrder& order = std::get<PartOrder>(orders[0].what);
  EXPECT_EQ(order.meeting, "node1:5000");
  EXPECT_EQ(order.token, "token1");
  EXPECT_THAT(order.devices, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(order.node_rank, 1);
  EXPECT_EQ(order.workers, 4);
  EXPECT_EQ(order.uid, 1001u);
}

TEST_F(HeadTableTest, EndsAJobWithTheCodeOfItsLowestNode) {
  const uint64_t job = RunTwoNodes();
  world.Tell("node2", job, PartState::kEnded, "", 9);
  world.Tell("node1", job, PartState::kEnded, "", 3);
  EXPECT_THAT(world.Orders(), ElementsAre("node2 forget 1", "node1 forget 1"));
  EXPECT_EQ(world.State(job), ClusterJobState::kEnded);
  EXPECT_EQ(world.View(job).exit_code, 3);
  EXPECT_EQ(world.Why(job), "ended with exit code 3");
}

TEST_F(HeadTableTest, AStoppedJobHasTheCodeOfTheSignalWhicheverNodeHeardOfTheOtherFirst) {
  for (const int heard : {kExitNodeStopped, kExitNodeLost, kExitRendezvousLost, 143}) {
    const uint64_t job = RunTwoNodes();
    ASSERT_TRUE(world.table->Stop(job, "alice", SIGTERM, -1, world.t()).ok());
    world.Tell("node2", job, PartState::kEnded, "", 143);
    world.Tell("node1", job, PartState::kEnded, "", heard);
    EXPECT_EQ(world.View(job).exit_code, 143) << heard;
  }
}

TEST_F(HeadTableTest, AJobThatFailsWhileItIsStoppedKeepsItsCode) {
  const uint64_t job = RunTwoNodes();
  ASSERT_TRUE(world.table->Stop(job, "alice", SIGTERM, -1, world.t()).ok());
  world.Tell("node2", job, PartState::kEnded, "", kExitNodeStopped);
  world.Tell("node1", job, PartState::kEnded, "", 3);
  EXPECT_EQ(world.View(job).exit_code, 3);
}

TEST_F(HeadTableTest, EndsAJobWhoseNode0EndsWithoutAMeeting) {
  for (const char* host : {"node1", "node2", "node3"}) world.Come(host, FactsOf(8));
  JobRequest request = RequestOf(1);
  request.spares = 2;
  const uint64_t job = world.Submit(request);
  world.Tell("node1", job, PartState::kRunning);
  EXPECT_EQ(world.State(job), ClusterJobState::kRunning);
  world.Tell("node1", job, PartState::kEnded, "", 3);
  EXPECT_THAT(world.Orders(), ElementsAre("node1 start 1", "node1 forget 1"));
  EXPECT_EQ(world.State(job), ClusterJobState::kEnded);
  EXPECT_EQ(world.Why(job), "ended with exit code 3");
  EXPECT_EQ(world.View(job).parts[1].state, "ended: was not started");
}

TEST_F(HeadTableTest, ForgetsSecretsOfAJobThatHasEnded) {
  const uint64_t job = RunTwoNodes();
  world.Tell("node2", job, PartState::kEnded, "", 0);
  world.Tell("node1", job, PartState::kEnded, "", 0);
  world.Write();
  const std::string kept = world.kept_jobs[job].dump();
  EXPECT_THAT(kept, testing::Not(HasSubstr("SECRET")));
  EXPECT_THAT(kept, testing::Not(HasSubstr("token1")));
}

TEST_F(HeadTableTest, StartsJobsInTheOrderOfTheirNumbers) {
  world.Come("node1", FactsOf(8));
  const uint64_t first = world.Submit(RequestOf(1, 6));
  const uint64_t second = world.Submit(RequestOf(1, 8));
  const uint64_t third = world.Submit(RequestOf(1, 1), kBob);
  EXPECT_EQ(world.State(second), ClusterJobState::kWaiting);
  EXPECT_EQ(world.State(third), ClusterJobState::kWaiting);
  EXPECT_EQ(world.Why(third),
            "waits behind job 2, which needs 1 node with 8 free hpu; none have them, node1 has 2 "
            "free");
  world.Tell("node1", first, PartState::kEnded, "", 0);
  EXPECT_EQ(world.State(second), ClusterJobState::kStarting);
  EXPECT_EQ(world.State(third), ClusterJobState::kWaiting);
}

// Holds for any number of turns of the loop.
TEST_F(HeadTableTest, PlacesAFewJobsATurnAndAllInTheirOrder) {
  HostFacts facts = FactsOf(0);
  facts.slots = 200;
  world.Come("node1", facts);
  for (int i = 0; i < 300; ++i) {
    JobRequest request = RequestOf(1, i % 3 == 0 ? 1000 : 1);  // No host has a thousand.
    request.devices = "none";
    ASSERT_TRUE(
        world.table
            ->Submit({"user" + std::to_string(i % 2), 1001, false, false}, request, world.t())
            .ok());
  }
  EXPECT_TRUE(world.table->PlaceSome(world.t()));
  EXPECT_EQ(world.State(HeadTable::kTries - 1), ClusterJobState::kStarting);
  EXPECT_EQ(world.State(HeadTable::kTries + 1), ClusterJobState::kWaiting);
  EXPECT_EQ(world.table->jobs().placed().size(), 42u);
  world.Place();
  EXPECT_EQ(world.turns, 3);
  EXPECT_EQ(world.table->jobs().placed().size(), 200u);
  EXPECT_EQ(*world.table->jobs().placed().rbegin(), 300u);
  EXPECT_THAT(world.Why(298), HasSubstr("jobs behind it go first"));
}

TEST_F(HeadTableTest, TriesAgainFromTheFrontWhatCameFreeInBetween) {
  world.Come("node1", FactsOf(8));
  const uint64_t running = world.Submit(RequestOf(1, 8));
  const uint64_t first = world.Submit(RequestOf(1, 8));
  const uint64_t second = world.Submit(RequestOf(1, 1));
  world.table->TakePart("node1", Told(running, PartState::kEnded, 0), world.t());
  ASSERT_TRUE(world.table->Submit(kBob, RequestOf(1, 1), world.t()).ok());
  EXPECT_FALSE(world.table->PlaceSome(world.t()));
  EXPECT_EQ(world.State(first), ClusterJobState::kStarting);
  EXPECT_EQ(world.State(second), ClusterJobState::kWaiting);
  EXPECT_THAT(world.Why(second + 1), HasSubstr("waits behind job 3, which needs 1 node"));
}

// A job submitted later waits behind the same job as those before it.
TEST_F(HeadTableTest, SaysWhomAJobWaitsBehindWhoeverThatIsNow) {
  world.Come("node1", FactsOf(8));
  const uint64_t running = world.Submit(RequestOf(1, 8));
  const uint64_t first = world.Submit(RequestOf(1, 8));
  const uint64_t second = world.Submit(RequestOf(1, 8));
  const uint64_t third = world.Submit(RequestOf(1, 8));
  EXPECT_THAT(world.Why(third), HasSubstr("waits behind job 2,"));
  world.Tell("node1", running, PartState::kEnded, "", 0);
  const uint64_t fourth = world.Submit(RequestOf(1, 8));
  EXPECT_EQ(world.State(first), ClusterJobState::kStarting);
  for (const uint64_t job : {third, fourth}) {
    EXPECT_THAT(world.Why(job), HasSubstr("waits behind job 3,"));
  }
  EXPECT_TRUE(world.table->Stop(second, "alice", SIGTERM, -1, world.t()).ok());
  world.Place();
  EXPECT_THAT(world.Why(fourth), HasSubstr("waits behind job 4,"));
}

TEST_F(HeadTableTest, LetsJobsPassOneThatCannotEverStart) {
  world.Come("node1", FactsOf(8));
  const uint64_t huge = world.Submit(RequestOf(1, 9));
  const uint64_t small = world.Submit(RequestOf(1, 1));
  EXPECT_EQ(world.State(small), ClusterJobState::kStarting);
  EXPECT_THAT(world.Why(huge), HasSubstr("jobs behind it go first"));
  world.Come("node2", FactsOf(16));
  EXPECT_EQ(world.State(huge), ClusterJobState::kStarting);
}

// The job before it first waited for its user's limit, and so held up no job.
TEST_F(HeadTableTest, SaysOfAJobThatCannotStartWhyThatIsWhoeverIsBeforeIt) {
  world.limits.max_running = 1;
  world.Restart();
  world.Come("node1", FactsOf(8));
  const uint64_t alices = world.Submit(RequestOf(1, 4));
  const uint64_t bobs = world.Submit(RequestOf(1, 4), kBob);
  const uint64_t next = world.Submit(RequestOf(1, 8));
  const uint64_t huge = world.Submit(RequestOf(1, 9), kRoot);
  world.Tell("node1", alices, PartState::kEnded, "", 0);
  EXPECT_THAT(world.Why(next), HasSubstr("needs 1 node with 8 free hpu"));
  EXPECT_THAT(world.Why(huge), HasSubstr("jobs behind it go first"));
  world.Come("node2", FactsOf(1));  // Its turn finds out whether it can start now.
  EXPECT_THAT(world.Why(huge), HasSubstr("waits behind job 3"));
  world.Tell("node1", bobs, PartState::kEnded, "", 0);
  EXPECT_EQ(world.State(next), ClusterJobState::kStarting);
  EXPECT_THAT(world.Why(huge), HasSubstr("jobs behind it go first"));
}

TEST_F(HeadTableTest, EndsAWaitingJobAtOnce) {
  world.Come("node1", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(2));
  EXPECT_TRUE(world.table->Stop(job, "alice", SIGTERM, -1, world.t()).ok());
  EXPECT_EQ(world.State(job), ClusterJobState::kEnded);
  EXPECT_EQ(world.Why(job), "stopped by alice");
  EXPECT_THAT(world.Orders(), IsEmpty());
}

TEST_F(HeadTableTest, KillsWhatDoesNotEndInTime) {
  const uint64_t job = RunTwoNodes();
  ASSERT_TRUE(world.table->Stop(job, "alice", SIGTERM, -1, world.t()).ok());
  EXPECT_THAT(world.Orders(), ElementsAre("node1 signal 1 15", "node2 signal 1 15"));
  EXPECT_EQ(world.State(job), ClusterJobState::kEnding);
  world.Tell("node2", job, PartState::kEnded, "", 143);
  world.Orders();
  // Its agents kill its workers after 30 s and then report that.
  world.Pass(seconds(39));
  EXPECT_THAT(world.Orders(), IsEmpty());
  world.Pass(seconds(2));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 signal 1 9"));
}

TEST_F(HeadTableTest, KillsAfterTheTimeThatAUserNamed) {
  const uint64_t job = RunTwoNodes();
  ASSERT_TRUE(world.table->Stop(job, "alice", SIGTERM, 5, world.t()).ok());
  world.Orders();
  world.Pass(seconds(4));
  EXPECT_THAT(world.Orders(), IsEmpty());
  world.Pass(seconds(1));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 signal 1 9", "node2 signal 1 9"));
}

TEST_F(HeadTableTest, StopsAJobBeforeItsOtherNodesStart) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(2));
  world.Orders();
  ASSERT_TRUE(world.table->Stop(job, "alice", SIGTERM, -1, world.t()).ok());
  EXPECT_THAT(world.Orders(), ElementsAre("node1 signal 1 15"));
  world.Tell("node1", job, PartState::kStarting, "node1:5000");
  EXPECT_THAT(world.Orders(), IsEmpty());
  world.Tell("node1", job, PartState::kEnded, "", 143);
  EXPECT_EQ(world.State(job), ClusterJobState::kEnded);
}

TEST_F(HeadTableTest, AJobThatIsOverAtOnceHasEndedWell) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(2));
  world.Tell("node1", job, PartState::kStarting, "node1:5000");
  world.Orders();
  world.Tell("node1", job, PartState::kEnded, "", 0);
  EXPECT_THAT(world.Orders(), ElementsAre("node1 forget 1"));  // No part is told to stop.
  world.Tell("node2", job, PartState::kEnded, "", 0);
  EXPECT_EQ(world.Why(job), "ended with exit code 0");
}

TEST_F(HeadTableTest, ANodeThatIsNoLongerThereIsNoPlaceToMeet) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  world.Come("node3", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(3));
  world.Orders();
  world.Tell("node1", job, PartState::kEnded, "node1:5000", 0);
  EXPECT_THAT(world.Orders(), ElementsAre("node1 forget 1"));
  EXPECT_EQ(world.State(job), ClusterJobState::kEnded);
  EXPECT_EQ(world.Why(job), "ended with exit code 0");
}

TEST_F(HeadTableTest, APartThatStartsOnADrainedHostIsToldToLeaveToo) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(2));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 start 1"));
  world.Drain("node2", "new disks", 600);
  world.Orders();
  world.Tell("node1", job, PartState::kStarting, "node1:5000");
  EXPECT_THAT(world.Orders(), ElementsAre("node2 start 1", "node2 drain 1"));
}

TEST_F(HeadTableTest, EndsAJobOfWhichAPartDoesNotStart) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(2));
  world.Tell("node1", job, PartState::kStarting, "node1:5000");
  world.Orders();
  PartTold told = Told(job, PartState::kFailed);
  told.trouble = "no user alice here";
  world.table->TakePart("node2", told, world.t());
  EXPECT_THAT(world.Orders(), ElementsAre("node2 forget 1", "node1 signal 1 15"));
  world.Tell("node1", job, PartState::kEnded, "", 143);
  EXPECT_EQ(world.Why(job), "node 1 (node2) ended before the job ran: no user alice here");
  EXPECT_EQ(world.View(job).exit_code, kExitNotStarted);
}

TEST_F(HeadTableTest, TakesARefusedStartForAFailure) {
  world.Come("node1", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(1));
  const std::vector<HeadOrder> orders = world.table->TakeOrders();
  world.table->TakeAnswer(orders.at(0), absl::PermissionDeniedError("no root here"), world.t());
  EXPECT_EQ(world.State(job), ClusterJobState::kEnded);
  EXPECT_EQ(world.Why(job), "node1: no root here");
}

TEST_F(HeadTableTest, KeepsWhatIsAway) {
  const uint64_t job = RunTwoNodes();
  const uint64_t seen = world.View(job).version;
  world.table->Left("node2", world.t());
  EXPECT_GT(world.View(job).version, seen);
  EXPECT_EQ(world.Why(job), "node2 is away");
  EXPECT_EQ(world.View(job).parts[1].state, "running, away since 2027-01-15T08:00:00.000Z");
  world.Pass(std::chrono::hours(48));
  EXPECT_EQ(world.State(job), ClusterJobState::kRunning);
  world.Come("node2", FactsOf(8), {Told(job, PartState::kRunning)});
  EXPECT_EQ(world.Why(job), "");
  EXPECT_THAT(world.Orders(), IsEmpty());
}

TEST_F(HeadTableTest, LosesWhatWasOnAHostThatWasStartedAnew) {
  const uint64_t job = RunTwoNodes();
  world.table->Left("node2", world.t());
  world.Come("node2", FactsOf(8, "boot2"));
  EXPECT_EQ(world.State(job), ClusterJobState::kRunning);
  EXPECT_EQ(world.View(job).parts[1].state, "lost: its host was started anew");
  world.Tell("node1", job, PartState::kEnded, "", 1);
  EXPECT_EQ(world.State(job), ClusterJobState::kEnded);
}

TEST_F(HeadTableTest, LosesWhatItsHostDoesNotHaveAnyMore) {
  const uint64_t job = RunTwoNodes();
  world.table->Left("node2", world.t());
  world.Come("node2", FactsOf(8));
  EXPECT_EQ(world.View(job).parts[1].state, "lost: its host does not have it any more");
}

TEST_F(HeadTableTest, OrdersAgainWhatNeverReachedItsHost) {
  world.Come("node1", FactsOf(8));
  world.Submit(RequestOf(1));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 start 1"));
  world.table->Left("node1", world.t());
  world.Come("node1", FactsOf(8));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 start 1"));
}

TEST_F(HeadTableTest, SignalsAgainOnlyWhatWasNotTaken) {
  const uint64_t job = RunTwoNodes();
  world.table->Stop(job, "alice", SIGTERM, -1, world.t()).IgnoreError();
  world.Write();
  for (const HeadOrder& order : world.table->TakeOrders()) {
    if (order.host == "node1") world.table->TakeAnswer(order, absl::OkStatus(), world.t());
  }
  world.Restart();
  world.Come("node1", FactsOf(8), {Told(job, PartState::kRunning)});
  world.Come("node2", FactsOf(8), {Told(job, PartState::kRunning)});
  EXPECT_THAT(world.Orders(), ElementsAre("node2 signal 1 15"));
}

TEST_F(HeadTableTest, GoesOnAfterARestart) {
  const uint64_t job = RunTwoNodes();
  const uint64_t seen = world.View(job).version;
  const uint64_t next = world.Submit(RequestOf(1), kBob);
  world.Pass(seconds(1));
  world.Restart();
  EXPECT_GT(world.View(job).version, seen);
  world.Come("node1", FactsOf(8), {Told(job, PartState::kRunning)});
  EXPECT_EQ(world.State(next), ClusterJobState::kWaiting);
  world.Come("node2", FactsOf(8), {Told(job, PartState::kEnded, 0)});
  EXPECT_THAT(world.Orders(), ElementsAre("node2 forget 1", "node2 start 2"));
  EXPECT_EQ(world.State(job), ClusterJobState::kRunning);
}

TEST_F(HeadTableTest, AHostThatOnlyAJobsFileNamesIsAwaySinceTheRestart) {
  const uint64_t job = RunTwoNodes();
  world.kept_hosts = nlohmann::json::object();  // The power failed before they were on the disk.
  world.Restart();
  EXPECT_EQ(world.View(job).parts[1].state, "running, away since 2027-01-15T08:00:00.000Z");
}

TEST_F(HeadTableTest, StartsAJobThatWasPlacedJustBeforeARestart) {
  world.Come("node1", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(1));
  world.Restart();  // The order has not left.
  EXPECT_EQ(world.State(job), ClusterJobState::kStarting);
  world.Come("node1", FactsOf(8));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 start 1"));
}

TEST_F(HeadTableTest, WaitsForItsHostsAfterARestartButNotForEver) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  world.Pass(seconds(1));
  world.Restart();
  world.Come("node1", FactsOf(8));
  const uint64_t job = world.Submit(RequestOf(1));
  EXPECT_EQ(world.State(job), ClusterJobState::kWaiting);
  world.Pass(seconds(11));
  EXPECT_EQ(world.State(job), ClusterJobState::kStarting);
}

TEST_F(HeadTableTest, PlacesNothingOnADrainedHost) {
  world.Come("node1", FactsOf(8));
  world.Drain("node1", "ECC");
  const uint64_t job = world.Submit(RequestOf(1));
  EXPECT_THAT(world.Why(job), HasSubstr("node1 is drained: ECC"));
  world.Pass(seconds(1));
  world.Restart();
  world.Come("node1", FactsOf(8));
  EXPECT_THAT(world.Why(job), HasSubstr("node1 is drained: ECC"));
  world.Drain("node1", "");
  EXPECT_EQ(world.State(job), ClusterJobState::kStarting);
}

TEST_F(HeadTableTest, TellsJobsToLeaveADrainedHost) {
  RunTwoNodes();
  world.Drain("node2", "ECC", 60);
  EXPECT_THAT(world.Orders(), ElementsAre("node2 drain 1"));
  const HostView view = world.table->hosts().Views().at(1);
  EXPECT_EQ(view.stop_ms, world.wall_ms + 60'000);
  EXPECT_EQ(view.why, "ECC; what still runs there at 2027-01-15T08:01:00.000Z is stopped");
}

TEST_F(HeadTableTest, TellsAHostThatWasAwayThatItsJobsAreToLeaveOrMayStay) {
  const uint64_t job = RunTwoNodes();
  const auto told = Told(job, PartState::kRunning);
  world.table->Left("node2", world.t());
  world.Drain("node2", "ECC", 600);
  EXPECT_THAT(LeaveOrders(), IsEmpty());
  world.Restart();
  world.Come("node1", FactsOf(8), {told});
  world.Come("node2", FactsOf(8), {told});
  EXPECT_THAT(LeaveOrders(), ElementsAre("ECC"));
  world.table->Left("node2", world.t());
  world.Drain("node2", "");
  EXPECT_THAT(LeaveOrders(), IsEmpty());
  world.Restart();
  world.Come("node2", FactsOf(8), {told});
  EXPECT_THAT(LeaveOrders(), ElementsAre(""));
}

TEST_F(HeadTableTest, TellsAHostThatItsJobsMayStayUntilItHasTakenThat) {
  const auto told = Told(RunTwoNodes(), PartState::kRunning);
  world.Drain("node2", "ECC", 600);
  LeaveOrders(absl::OkStatus());
  world.Drain("node2", "");
  EXPECT_THAT(LeaveOrders(absl::UnavailableError("cut off")), ElementsAre(""));
  world.Restart();
  world.Come("node1", FactsOf(8), {told});
  world.Come("node2", FactsOf(8), {told});
  EXPECT_THAT(LeaveOrders(absl::InternalError("no room on the disk")), ElementsAre(""));
  for (const char* order : {"", "none"}) {
    world.table->Left("node2", world.t());
    world.Come("node2", FactsOf(8), {told});
    const std::vector<std::string> orders = LeaveOrders(absl::OkStatus());
    EXPECT_EQ(orders.empty() ? "none" : orders.at(0), order);
  }
}

TEST_F(HeadTableTest, AnAnswerToAnEarlierDrainSaysNothingOfALaterOne) {
  const auto told = Told(RunTwoNodes(), PartState::kRunning);
  world.Drain("node2", "ECC", 600);
  world.Drain("node2", "");
  const std::vector<HeadOrder> before = world.table->TakeOrders();
  world.Drain("node2", "ECC", 600);
  world.Drain("node2", "");
  for (const HeadOrder& order : before) world.table->TakeAnswer(order, absl::OkStatus(), world.t());
  LeaveOrders(absl::UnavailableError("cut off"));
  world.table->Left("node2", world.t());
  world.Come("node2", FactsOf(8), {told});
  EXPECT_THAT(LeaveOrders(), ElementsAre(""));
}

TEST_F(HeadTableTest, StopsWhatStillRunsOnADrainedHostAtItsDeadline) {
  const uint64_t job = RunTwoNodes();
  world.Come("node3", FactsOf(8));
  const uint64_t elsewhere = world.Submit(RequestOf(1));
  world.Drain("node2", "new disks", 60);
  world.Orders();
  world.Pass(seconds(30));
  world.Write();
  world.Restart();
  for (const char* host : {"node1", "node2"}) {
    world.Come(host, FactsOf(8), {Told(job, PartState::kRunning)});
  }
  world.Come("node3", FactsOf(8), {Told(elsewhere, PartState::kRunning)});
  world.Pass(seconds(29));
  EXPECT_EQ(world.State(job), ClusterJobState::kRunning);
  world.Orders();
  world.Pass(seconds(2));
  EXPECT_THAT(world.Orders(), ElementsAre("node1 signal 1 15", "node2 signal 1 15"));
  EXPECT_EQ(world.Why(job),
            "node2 is drained: new disks; its deadline of 2027-01-15T08:01:00.000Z has passed");
  EXPECT_EQ(world.State(elsewhere), ClusterJobState::kRunning);
  world.Pass(seconds(5));
  EXPECT_THAT(world.Orders(), IsEmpty());
}

TEST_F(HeadTableTest, SignalsAPartThatWasToldBeforeTheStopAndWhoseHostWasStillTelling) {
  const uint64_t job = RunTwoNodes();
  world.table->Left("node2", world.t());
  ASSERT_TRUE(world.table->Came("node2", world.t()).ok());
  world.table->TakeFacts("node2", FactsOf(8));
  world.Tell("node2", job, PartState::kRunning);
  ASSERT_TRUE(world.table->Stop(job, "alice", SIGTERM, -1, world.t()).ok());
  EXPECT_THAT(world.Orders(), ElementsAre("node1 signal 1 15"));
  world.table->TakeAllTold("node2", world.t());
  EXPECT_THAT(world.Orders(), ElementsAre("node2 signal 1 15"));
}

TEST_F(HeadTableTest, LosesWhatWasOnAHostThatIsThrownOut) {
  const uint64_t job = RunTwoNodes();
  ASSERT_TRUE(world.table->ThrowOut("node2", "ada", world.t()).ok());
  EXPECT_EQ(world.View(job).parts[1].state, "lost: its host was thrown out by ada");
  EXPECT_EQ(world.table->hosts().Find("node2"), nullptr);
}

TEST_F(HeadTableTest, PlacesNothingBesideAPartThatItHasGivenUp) {
  world.Come("node1", FactsOf(8), {Told(77, PartState::kRunning)});
  EXPECT_THAT(world.Orders(), ElementsAre("node1 signal 77 15"));
  const uint64_t job = world.Submit(RequestOf(1));
  EXPECT_THAT(world.Why(job), HasSubstr("still has a part of job 77, which is given up"));
  world.Tell("node1", 77, PartState::kEnded, "", 143);
  EXPECT_THAT(world.Orders(), ElementsAre("node1 forget 77", "node1 start 1"));
}

TEST_F(HeadTableTest, PlacesNothingOnAnUnfitHost) {
  HostFacts facts = FactsOf(8);
  facts.trouble = "no space in /var/lib/hlaunch";
  world.Come("node1", facts);
  const uint64_t job = world.Submit(RequestOf(1));
  EXPECT_THAT(world.Why(job), HasSubstr("node1 is unfit: no space in /var/lib/hlaunch"));
  EXPECT_EQ(world.table->hosts().Views().at(0).state, "unfit");
}

TEST_F(HeadTableTest, PlacesNothingOnAHostOfADistantRelease) {
  HostFacts facts = FactsOf(8);
  facts.version = "99.0.0+4e92d20";
  world.Come("node1", facts);
  const uint64_t job = world.Submit(RequestOf(1));
  EXPECT_THAT(world.Why(job), HasSubstr("node1 is unfit: has hlaunch 99.0.0, the head has "));
  EXPECT_THAT(world.Why(job), HasSubstr("update the older one"));
}

TEST_F(HeadTableTest, DoesNotGiveAwayAFaultyDevice) {
  HostFacts facts = FactsOf(8);
  facts.devices[3].fault = "ECC";
  world.Come("node1", facts);
  const uint64_t job = world.Submit(RequestOf(1, 7));
  EXPECT_THAT(world.View(job).parts.at(0).devices, ElementsAre(0, 1, 2, 4, 5, 6, 7));
}

TEST_F(HeadTableTest, KeepsAUserToHisLimits) {
  world.limits.max_waiting = 2;
  world.limits.max_running = 1;
  world.Restart();
  world.Come("node1", FactsOf(8));
  world.Submit(RequestOf(1, 1));
  const uint64_t second = world.Submit(RequestOf(1, 1));
  const uint64_t others = world.Submit(RequestOf(1, 1), kBob);
  EXPECT_EQ(world.Why(second),
            "waits for another job of its user to end: a user may have 1 running");
  EXPECT_EQ(world.State(others), ClusterJobState::kStarting);
  world.Submit(RequestOf(1, 1));
  EXPECT_EQ(world.table->Submit(kAlice, RequestOf(1), world.t()).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(HeadTableTest, KeepsAUserToHisNodes) {
  world.limits.max_nodes = 2;
  world.Restart();
  for (const char* host : {"node1", "node2", "node3"}) world.Come(host, FactsOf(8));
  JobRequest request = RequestOf(1);
  request.max_nodes = 3;
  const uint64_t job = world.Submit(request);
  EXPECT_EQ(world.View(job).parts.size(), 2u);
}

TEST_F(HeadTableTest, ForgetsOldJobsButNoNumber) {
  world.Come("node1", FactsOf(8));
  for (int i = 0; i < 1100; ++i) {
    const uint64_t job = world.Submit(RequestOf(1));
    world.Tell("node1", job, PartState::kEnded, "", 0);
  }
  world.Pass(seconds(1));
  world.Write();
  EXPECT_EQ(world.kept_jobs.size(), 1000u);
  world.Pass(std::chrono::hours(24 * 8));
  world.Restart();
  EXPECT_EQ(world.kept_jobs.size(), 0u);
  world.Come("node1", FactsOf(8));
  EXPECT_EQ(world.Submit(RequestOf(1)), 1101u);
}

TEST_F(HeadTableTest, WritesNoHostsAgainBecauseAJobIsForgotten) {
  world.Come("node1", FactsOf(8));
  for (int i = 0; i < 1001; ++i) {
    world.Tell("node1", world.Submit(RequestOf(1)), PartState::kEnded, "", 0);
  }
  world.Write();
  world.table->Tick(world.t());
  const HeadChanges changes = world.table->TakeChanges();
  EXPECT_THAT(changes.forgotten, ElementsAre(1));
  EXPECT_FALSE(changes.hosts);
}

TEST_F(HeadTableTest, KeepsLittleOfWhatAHostTellsOfJobsThatNeverWere) {
  world.Come("node1", FactsOf(8));
  for (uint64_t job = 1; job <= 100'000; ++job) {
    world.table->TakePart("node1", Told(job, PartState::kRunning), world.t());
    world.table->TakeOrders();
  }
  const HeadHost& host = *world.table->hosts().Find("node1");
  EXPECT_EQ(host.told.size(), 0u);
  EXPECT_EQ(host.unwanted.size(), 1024u);
  EXPECT_TRUE(world.table->TakeChanges().jobs.empty());
}

TEST_F(HeadTableTest, TakesNoJobThatItsHostsCouldNeverHave) {
  world.Come("node1", FactsOf(8));
  world.Come("node2", FactsOf(8));
  world.table->Left("node2", world.t());
  const auto submit = [this](int nodes) {
    return AnswerUser(*world.table, kAlice, "submit", ToJson(RequestOf(nodes)), world.t()).status();
  };
  EXPECT_TRUE(submit(2).ok());
  EXPECT_EQ(submit(3),
            absl::FailedPreconditionError("needs 3 nodes with 8 hpu; 2 could have them"));
}

TEST_F(HeadTableTest, TakesNoJobWhoseStartWouldFillItsMemory) {
  JobRequest request = RequestOf(300);
  request.environment.assign(10, "A=" + std::string(100'000, 'a'));
  const auto submit = [&] {
    return AnswerUser(*world.table, kAlice, "submit", ToJson(request), world.t()).status();
  };
  EXPECT_EQ(submit().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(submit().message()), HasSubstr("too many for 300 nodes; --export"));
  request.min_nodes = request.max_nodes = 1;
  EXPECT_NE(submit().code(), absl::StatusCode::kInvalidArgument);
  request.environment.resize(40, request.environment[0]);
  EXPECT_THAT(std::string(submit().message()), HasSubstr("too many for 1 node;"));
}

TEST_F(HeadTableTest, TakesNoJobWhoseStartIsTooLongToBeSent) {
  JobRequest request = RequestOf(1);
  request.environment.assign(7, "A=" + std::string(100'000, '\x01'));  // JSON writes it as \u0001.
  const auto answer = AnswerUser(*world.table, kAlice, "submit", ToJson(request), world.t());
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("too many for 1 node;"));
}

TEST_F(HeadTableTest, ListsAsManyHostsAsFitInAnAnswer) {
  HostFacts facts = FactsOf(1);
  facts.labels.assign(64, std::string(256, 'a'));
  for (int i = 0; i < 250; ++i) world.Come("node" + std::to_string(i), facts);
  const auto nodes =
      AnswerUser(*world.table, kAlice, "nodes", nlohmann::json::object(), world.t()).value();
  EXPECT_GT(nodes.at("left_out"), 0);
  EXPECT_EQ(nodes.at("hosts").size() + nodes.at("left_out").get<size_t>(), 250u);
  EXPECT_LT(nodes.dump().size(), size_t{4} << 20);
}

TEST_F(HeadTableTest, AnswersOthersWithoutTheCommandLine) {
  const uint64_t job = RunTwoNodes();
  const nlohmann::json question = {{"job", job}};
  const auto own = AnswerUser(*world.table, kAlice, "job", question, world.t());
  const auto others = AnswerUser(*world.table, kBob, "job", question, world.t());
  EXPECT_EQ(own->at("words").size(), 1u);
  EXPECT_TRUE(!others->contains("words") || others->at("words").empty());
  EXPECT_EQ(AnswerUser(*world.table, kBob, "meeting", question, world.t()).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(AnswerUser(*world.table, kAlice, "meeting", question, world.t())->at("token"),
            "token1");
}

TEST_F(HeadTableTest, ListsJobsOfOneUserOrOfAll) {
  world.Come("node1", FactsOf(8));
  world.Submit(RequestOf(1, 1));
  world.Submit(RequestOf(1, 1), kBob);
  const auto list = [this](bool all) {
    return AnswerUser(*world.table, kBob, "jobs", {{"all", all}}, world.t())->at("jobs").size();
  };
  EXPECT_EQ(list(false), 1u);
  EXPECT_EQ(list(true), 2u);
}

TEST_F(HeadTableTest, SaysAtOnceThatALogIsOnAHostThatIsAway) {
  const uint64_t job = RunTwoNodes();
  LogQuestion question;
  question.job = job;
  question.node_rank = 1;
  EXPECT_EQ(HostOfLog(*world.table, kAlice, question).value(), "node2");
  world.table->Left("node2", world.t());
  const auto away = HostOfLog(*world.table, kAlice, question);
  EXPECT_EQ(away.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(away.status().message()), HasSubstr("away since 2027-01-15T08:00:00"));
}

}  // namespace
}  // namespace hlaunch
