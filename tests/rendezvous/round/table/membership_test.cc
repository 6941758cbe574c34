// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/membership.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

TEST(Membership, CountsWhoIsUsableWithoutALookAtEachSeat) {
  DurableRecord record{JobRecord()};
  Membership membership(record);
  const Duration lease = record->policy.lease.lease;
  Instant t = Instant() + seconds(1000);
  const auto at_each = [&] {
    int usable = 0;
    for (const auto& [id, seat] : membership.seats()) {
      if (!seat.left && !seat.finished && !membership.Suspect(seat, t)) ++usable;
    }
    return usable;
  };
  std::vector<Seat*> seats;
  for (uint64_t i = 0; i < 8; ++i) {
    MemberRecord member;
    member.info.node_id = absl::StrCat("id", i);
    member.info.incarnation = i + 1;
    seats.push_back(&membership.Insert(member, /*local=*/i == 0, t));
  }
  EXPECT_EQ(membership.Usable(t), 8);
  membership.Detach(*seats[0], t);  // A local node needs no stream.
  membership.SetLeft(*seats[1]);
  membership.SetFinished(*seats[2]);
  membership.Detach(*seats[3], t);
  membership.Detach(*seats[4], t);
  membership.SetAttached(*seats[4], true);
  EXPECT_EQ(membership.Usable(t), at_each());
  EXPECT_EQ(membership.Usable(t), 5);
  t += lease;  // All but the local node have been silent for the lease.
  EXPECT_EQ(membership.Usable(t), 1);
  for (const int i : {2, 3, 5, 6}) membership.Touch(*seats[i], t);
  EXPECT_EQ(membership.Usable(t), at_each());
  EXPECT_EQ(membership.Usable(t), 3);
  membership.Remove(*seats[5], absl::AbortedError("lost"));
  membership.Remove(*seats[7], absl::AbortedError("lost"));
  EXPECT_EQ(membership.Usable(t), 2);
}

TEST(Membership, KeepsInTheRecordWhoWasToldARoundAndIsStillHere) {
  DurableRecord record{JobRecord()};
  Membership membership(record);
  std::vector<Seat*> seats;
  for (uint64_t i = 0; i < 4; ++i) {
    MemberRecord member;
    member.info.node_id = absl::StrCat("id", i);
    member.info.incarnation = i + 1;
    member.told = i == 0 ? 0 : 3;
    seats.push_back(&membership.Insert(member, /*local=*/false, Instant()));
  }
  membership.SetLeft(*seats[1]);
  membership.SetFinished(*seats[2]);
  const std::vector<MemberRecord> kept = membership.Durable();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].info.node_id, "id3");
}

TEST(Membership, RemembersOnceWhomItGaveUpTwice) {
  DurableRecord record{JobRecord()};
  Membership membership(record);
  for (const char* id : {"a", "b"}) {
    MemberRecord member;
    member.info.node_id = id;
    member.info.incarnation = 7;
    membership.Remove(membership.Insert(member, /*local=*/false, Instant()),
                      absl::AbortedError(id));
  }
  EXPECT_THAT(record->given_up, ElementsAre(7U));
  EXPECT_EQ(*membership.WhyGivenUp(7), "a");
}

TEST(Membership, RemembersThoseItGaveUpLast) {
  constexpr Incarnation kMost = 1024;  // In a job of few nodes.
  DurableRecord record{JobRecord()};
  Membership membership(record);
  const auto give_up = [&membership](Incarnation incarnation) {
    MemberRecord member;
    member.info.node_id = "id";
    member.info.incarnation = incarnation;
    Seat& seat = membership.Insert(member, /*local=*/false, Instant());
    membership.Remove(seat, absl::AbortedError("lost"));
  };
  for (Incarnation i = 1; i <= kMost; ++i) give_up(i);
  EXPECT_NE(membership.WhyGivenUp(1), nullptr);
  give_up(kMost + 1);
  EXPECT_EQ(membership.WhyGivenUp(1), nullptr);
  EXPECT_NE(membership.WhyGivenUp(2), nullptr);
}

TEST(Membership, TheRankOfOneThatIsRemovedIsFreeAndAnothersStays) {
  DurableRecord record{JobRecord()};
  Membership membership(record);
  const auto ranked = [](uint64_t i, int rank) {
    MemberRecord member;
    member.info.node_id = absl::StrCat("id", i);
    member.info.incarnation = i;
    member.info.node_rank = rank;
    return member;
  };
  Seat& first = membership.Insert(ranked(1, 4), /*local=*/false, Instant());
  const Seat& other = membership.Insert(ranked(2, 5), /*local=*/false, Instant());
  membership.Remove(first, absl::AbortedError("lost"));
  EXPECT_EQ(membership.HolderOf(ranked(3, 4).info), nullptr);
  EXPECT_EQ(membership.HolderOf(ranked(3, 5).info), &other);
}

// The first loss is due first, be it that of a seat or of a node whose place was taken.
TEST(Membership, TheNextLossIsThatOfWhoeverIsSilentForTheLongestTime) {
  for (const int age : {-7, 7}) {
    DurableRecord record{JobRecord()};
    Membership membership(record);
    const Duration loss = record->policy.lease.loss_limit + record->policy.lease.margin;
    const Instant t = Instant() + seconds(1000);
    MemberRecord member;
    member.info.node_id = "id1";
    member.info.incarnation = 1;
    Seat gone;
    static_cast<MemberRecord&>(gone) = member;
    gone.heard = t - seconds(age);
    membership.AddGhost(gone);
    EXPECT_EQ(membership.NextLoss(), gone.heard + loss);
    member.info.incarnation = 2;
    membership.Insert(member, /*local=*/false, t);
    EXPECT_EQ(membership.NextLoss(), std::min(gone.heard, t) + loss);
  }
}

TEST(RoundTable, ALiveHolderOfAPlaceIsAskedAndKeepsIt) {
  Job job(2, 2);
  job.Run(2);
  NodeInfo young = job.Info(1);
  young.incarnation = 50;
  EXPECT_EQ(job.Join(young).code(), StatusCode::kUnavailable);
  EXPECT_THAT(job.table.TakeAsked(), ElementsAre("id1"));
  EXPECT_EQ(job.Join(young).code(), StatusCode::kUnavailable);
  EXPECT_THAT(job.table.TakeAsked(), IsEmpty());  // One question is enough.
  job.now += milliseconds(100);
  job.Beat(1);
  const absl::Status status = job.Join(young);
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is held by node1 (pid 101): stop that one first"));
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
}

TEST(RoundTable, AnAnswerIsForOneWhoWantsThePlaceAndForAWhile) {
  Job job(2, 2);
  job.Run(2);
  NodeInfo one = job.Info(1), another = job.Info(1);
  one.incarnation = 50;
  another.incarnation = 60;
  for (const NodeInfo& claimant : {one, another}) {
    EXPECT_EQ(job.Join(claimant).code(), StatusCode::kUnavailable);
    EXPECT_THAT(job.table.TakeAsked(), ElementsAre("id1"));
    job.Pass(milliseconds(100), {0, 1});
    EXPECT_EQ(job.Join(claimant).code(), StatusCode::kAlreadyExists);
  }
  job.Pass(seconds(9), {0, 1});
  EXPECT_EQ(job.Join(another).code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(job.table.TakeAsked(), IsEmpty());
  job.Pass(seconds(1), {0, 1});
  EXPECT_EQ(job.Join(another).code(), StatusCode::kUnavailable);
  EXPECT_THAT(job.table.TakeAsked(), ElementsAre("id1"));
}

// This happens while a record waits to be kept in etcd.
TEST(RoundTable, AnAnswerIsLaterThanItsQuestionThoughNobodyTellsTheTableTheTime) {
  for (int tenths = 50; tenths < 150; ++tenths) {
    Job job(3, 3);
    job.Run(3);
    const auto pass_a_tenth = [&] {
      job.now += milliseconds(100);
      job.Beat(0);
      job.Beat(1);
    };
    for (int i = 0; i < tenths; ++i) pass_a_tenth();  // Node 2 should be suspect soon.
    NodeInfo young = job.Info(1);
    young.incarnation = 50;
    ASSERT_EQ(job.Join(young).code(), StatusCode::kUnavailable) << tenths;
    pass_a_tenth();
    EXPECT_EQ(job.Join(young).code(), StatusCode::kAlreadyExists) << tenths;
  }
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
  EXPECT_EQ(job.Told(0).outcome.reason,
            "node1 (10.0.0.2) was lost: it was not heard of for 40 s; it ran ranks 2-3");
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
              "the job gave up node1 (pid 101): it was not heard of for 40 s");
  }
  NodeInfo stranger = job.Info(3);
  EXPECT_EQ(job.table.Join(stranger, Says(5, Phase::kRunning), false, job.now).code(),
            StatusCode::kOutOfRange);
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
            "waiting for 1 of 2 nodes; here: node0 (node1 (10.0.0.2) was lost: power; it ran ranks "
            "2-3; restart 1 of 1)");
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
    EXPECT_EQ(job.Told(0).outcome.exit_code, max_restarts == 0 ? kExitNodeStopped : 0);
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
  EXPECT_EQ(job.Told(1).outcome.exit_code, kExitNodeStopped);
  EXPECT_EQ(job.Told(1).outcome.reason, "node0 was stopped by SIGINT");
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

// A broken link may delay the join of an agent that has been killed and replaced meanwhile.
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
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("job job is over: node1 (10.0.0.2) was lost"));
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
}

TEST(RoundTable, APlaceTakenFromAnotherHostWaitsUntilTheOldWorkersMustBeDead) {
  for (const bool proof : {false, true}) {
    Job job(2, 2, 1);
    job.Run(2);
    job.Detach(1);
    NodeInfo elsewhere = job.Info(1);
    elsewhere.incarnation = 50;
    elsewhere.host = "other";
    ASSERT_TRUE(job.Join(elsewhere).ok());
    ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
    EXPECT_THAT(job.Told(0).reason, HasSubstr("waiting until node1 (pid 101) must have stopped"));
    const auto pass_a_second = [&] {
      job.now += seconds(1);
      job.Beat(0);
      job.table.Heard("id1", 50, job.now);
      job.table.Tick(job.now);
    };
    for (int second = 0; second < 39; ++second) {
      pass_a_second();
      EXPECT_EQ(job.Told(0).kind, Kind::kWait);
    }
    if (proof) {
      ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
    } else {
      pass_a_second();
    }
    EXPECT_EQ(job.Told(0).assignment.round, 2);
  }
}

TEST(RoundTable, ItsOwnPauseIsNobodysSilence) {
  Job job(2, 2);
  job.Run(2);
  job.Pass(seconds(30), {0, 1});
  job.now += seconds(3600);  // The rendezvous was stopped.
  job.table.Tick(job.now);
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(seconds(38), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(seconds(2), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
}

// The holder died, and what it said before comes after the question: the one that was started in
// its place must not be sent away for good.
TEST(Membership, AMessageThatMayBeOlderThanTheQuestionIsNoAnswerToIt) {
  for (const bool lives : {false, true}) {
    TableJob job(2, 2, /*max_restarts=*/1);
    job.Run(2);
    NodeInfo claimant = job.Info(1);
    claimant.incarnation = 9;
    job.now += milliseconds(100);
    EXPECT_EQ(job.Join(claimant).code(), StatusCode::kUnavailable);
    job.now += milliseconds(50);
    EXPECT_FALSE(job.table.Counts("id1", 2, milliseconds(80), job.now));
    EXPECT_FALSE(job.table.HeardFromVoter("id1", 2, job.now));
    if (lives && job.table.Counts("id1", 2, milliseconds(20), job.now)) job.Beat(1);
    job.now += seconds(1);
    EXPECT_EQ(job.Join(claimant).code(), lives ? StatusCode::kAlreadyExists : StatusCode::kOk);
  }
}

// A kernel sends what a dead process left once the network is back.
TEST(Membership, AMessageFromBeforeASilenceIsNoSignOfLifeAndTheNodeIsAsked) {
  TableJob job(2, 2);
  job.Run(2);
  job.Pass(seconds(20), {0});
  job.table.TakeAsked();
  EXPECT_FALSE(job.table.Counts("id1", 2, seconds(20), job.now));
  EXPECT_THAT(job.table.TakeAsked(), testing::ElementsAre("id1"));
  ASSERT_TRUE(
      job.table.Update("id1", 2, Says(1, NodePhase::kRunning), job.now, /*counts=*/false).ok());
  job.Pass(seconds(21), {0});
  EXPECT_FALSE(job.table.Holds("id1", 2));  // 40 s after it was heard last.
}

// The others ended by themselves meanwhile.
TEST(Membership, ANodeThatIsLostAfterTheRendezvousStoodStillIsNotTheCause) {
  TableJob job(2, 2);
  ASSERT_TRUE(job.Join(job.Info(0), /*local=*/true).ok());
  ASSERT_TRUE(job.Join(1).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(job.Say(i, Says(1, Phase::kRunning)).ok());
  job.Pass(seconds(5), {1});
  job.now += seconds(50);
  job.Pass(seconds(45));
  EXPECT_THAT(job.Told(0).outcome.reason,
              HasSubstr("node0, which holds the rendezvous, had stood still for 50 s; it was not "
                        "heard of for 40 s since"));
}

TEST(Membership, WhereAllOthersAreSilentTheHostsOwnNetworkIsNamed) {
  for (const bool all : {true, false}) {
    TableJob job(3, 3);
    ASSERT_TRUE(job.Join(job.Info(0), /*local=*/true).ok());
    for (int i = 1; i < 3; ++i) ASSERT_TRUE(job.Join(i).ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(job.Say(i, Says(1, Phase::kRunning)).ok());
    job.Pass(seconds(45), all ? std::vector<int>() : std::vector<int>{2});
    const std::string reason = job.Told(0).outcome.reason;
    EXPECT_THAT(reason, HasSubstr("it was not heard of for 40 s"));
    EXPECT_EQ(absl::StrContains(reason, "nor was any other node: the network of node0"), all);
  }
}

TEST(Membership, AMessageThatAnswersTheQuestionIsASignOfLife) {
  TableJob job(2, 2);
  job.Run(2);
  job.Pass(seconds(20), {0});
  EXPECT_TRUE(job.table.Counts("id1", 2, seconds(1), job.now));
}

TEST(Membership, AnOldMessageWithoutASilenceIsASignOfLife) {
  TableJob job(2, 2);
  job.Run(2);
  job.Pass(seconds(4), {0});
  EXPECT_TRUE(job.table.Counts("id1", 2, seconds(20), job.now));
}

TEST(Membership, AVoterIsHeardForTheLossLimitLongerThanItsNodeSpeaks) {
  TableJob job(2, 2);
  job.Run(2);
  const auto heard = [&] {
    job.Pass(seconds(1), {0});
    return job.table.HeardFromVoter("id1", 2, job.now);
  };
  for (int i = 1; i <= 35; ++i) ASSERT_TRUE(heard()) << i;  // The loss limit and the lease.
  EXPECT_FALSE(heard());
  EXPECT_TRUE(job.table.Holds("id1", 2));
  job.Pass(seconds(40), {0});
  EXPECT_FALSE(job.table.Holds("id1", 2));
  EXPECT_FALSE(job.table.HeardFromVoter("id1", 2, job.now));
}

}  // namespace
}  // namespace hlaunch
