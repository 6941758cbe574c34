// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/failure_judge.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

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

// A rank that raises tells its group at once, and may take seconds to end.
TEST(RoundTable, ARankThatOthersSayHasLeftIsGivenTheTimeToTellOfItself) {
  constexpr char kLeft[] = "hlaunch.RankLost: rank 2 on node1 left the group before all_reduce #9";
  for (const bool tells : {true, false}) {
    Job job(2, 2);
    job.Run(2);
    ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kLeft))).ok());
    job.Pass(milliseconds(2500), {0, 1});
    EXPECT_EQ(job.Told(0).kind, Kind::kRun);
    if (tells) {
      ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 85))).ok());
    }
    job.Pass(milliseconds(1000), {0, 1});
    ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
    EXPECT_EQ(job.Told(0).outcome.failures[0].rank, tells ? 2 : 1);
  }
}

TEST(RoundTable, ARankThatOthersSayHasLeftAndThatHasExitedIsNotWaitedFor) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate exits = Says(1, Phase::kRunning);
  exits.exited = {0};
  ASSERT_TRUE(job.Say(1, exits).ok());
  constexpr char kLeft[] = "hlaunch.RankLost: rank 2 on node1 left the group before all_reduce #9";
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kLeft))).ok());
  job.Pass(milliseconds(1000), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
}

// The table's thread sleeps until NextDeadline. If nothing were decided at that moment, it would
// spin.
TEST(RoundTable, AConsequenceIsJudgedAtTheMomentThatTheTableNames) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), "RuntimeError: Broken pipe"))).ok());
  job.Beat(1);
  const Instant failed = job.now;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(job.Told(0).kind, Kind::kRun);
    job.now = job.table.NextDeadline().value();
    job.table.Tick(job.now);
  }
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.now, failed + milliseconds(900));
}

TEST(RoundTable, FailuresThatAreTooManyToKeepAreNotToldToAllAgain) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate many = Says(1, Phase::kFailed);
  for (int i = 0; i < 16; ++i) many.failures.push_back(Failure(0, 7));
  ASSERT_TRUE(job.Say(0, many).ok());
  job.table.TakeChanged();
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 1))).ok());
  EXPECT_THAT(job.table.TakeChanged(), testing::IsEmpty());
  EXPECT_EQ(job.Told(0).outcome.total_failures, 17);
}

// It has told as many failures as a message may have, so the others of its workers may have failed.
TEST(RoundTable, NobodyIsMissedOnANodeThatMayHaveMoreFailuresThanItTold) {
  for (const int told : {15, 16}) {
    Job job(2, 2);
    NodeInfo large = job.Info(0);
    large.nproc = 18;
    ASSERT_TRUE(job.Join(large).ok());
    ASSERT_TRUE(job.Join(1).ok());
    for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kRunning)).ok());
    NodeUpdate update = Says(1, Phase::kFailed);
    for (Rank rank = 0; rank < told; ++rank) {
      update.failures.push_back(Saying(Failure(rank, 1), "RuntimeError: Broken pipe"));
      update.failures.back().host = "node0";
    }
    NodeUpdate exits = Says(1, Phase::kRunning);
    exits.given_up = {0, 1};
    ASSERT_TRUE(job.Say(1, exits).ok());
    ASSERT_TRUE(job.Say(0, update).ok());
    job.Pass(milliseconds(1000), {0, 1});
    ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
    const std::vector<WorkerPlace>& missed = job.Told(0).outcome.awaited;
    ASSERT_EQ(missed.size(), told == 15 ? 3U : 2U);
    EXPECT_EQ(missed[0].rank, told == 15 ? 15 : 18);
  }
}

TEST(RoundTable, AConsequenceIsTheCauseIfNothingElseComes) {
  Job job(2, 2);
  job.Run(2);
  for (const Rank rank : {2, 3}) {
    NodeUpdate update = Failed(1, Saying(Failure(2, 1), "RuntimeError: Broken pipe"));
    if (rank == 3) update.failures.push_back(Saying(Failure(3, 1), "RuntimeError: Broken pipe"));
    ASSERT_TRUE(job.Say(1, update).ok());
  }
  job.Pass(milliseconds(800), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(milliseconds(200), {0});  // Within the second.
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(outcome.failures[0].rank, 2);
  ASSERT_EQ(outcome.awaited.size(), 2u);
  EXPECT_EQ(outcome.awaited[0].rank, 0);
  EXPECT_EQ(outcome.awaited[1].rank, 1);
  EXPECT_EQ(outcome.awaited[1].local_rank, 1);
  EXPECT_EQ(outcome.awaited[1].host, "node0");
}

TEST(RoundTable, WhoHasGivenUpAndLivesIsNotMissed) {
  for (const bool all : {false, true}) {
    Job job(2, 2);
    job.Run(2);
    NodeUpdate waits = Says(1, Phase::kRunning);
    waits.given_up = all ? std::vector<int>{0, 1} : std::vector<int>{1};
    ASSERT_TRUE(job.Say(1, waits).ok());
    NodeUpdate update = Failed(1, Saying(Failure(0, 1), "RuntimeError: Timed out waiting 3000ms"));
    update.given_up = {1};
    ASSERT_TRUE(job.Say(0, update).ok());
    job.Pass(milliseconds(3100), {0, 1});
    ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
    const Outcome outcome = job.Told(0).outcome;
    ASSERT_EQ(outcome.awaited.size(), all ? 3u : 1u);  // If all, its own rank too.
    EXPECT_EQ(outcome.awaited[0].rank, all ? 1 : 2);
  }
}

TEST(RoundTable, WhereAllWorkersHaveFailedOrExitedNothingIsWaitedFor) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate exits = Says(1, Phase::kSucceeded);
  exits.exited = {0, 1};
  ASSERT_TRUE(job.Say(1, exits).ok());
  NodeUpdate update = Failed(1, Saying(Failure(0, 1), "RuntimeError: Broken pipe"));
  update.failures.push_back(Saying(Failure(1, 1), "RuntimeError: Broken pipe"));
  ASSERT_TRUE(job.Say(0, update).ok());
  ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(0).outcome.awaited.size(), 2u);
}

// A worker whose traceback ends at this line of t.py with `exception`.
WorkerFailure At(Rank rank, int line,
                 const std::string& exception = "RuntimeError: Timed out waiting 3000ms") {
  WorkerFailure failure = Failure(rank, 1);
  failure.traceback = absl::StrCat("Traceback (most recent call last):\n  File \"t.py\", line ",
                                   line, ", in f\n    g()\n", exception);
  return failure;
}

TEST(RoundTable, WhereAllTimedOutTheOneThatStoodElsewhereIsNamed) {
  Job job(1, 1);
  job.Run(1);
  NodeUpdate update = Failed(1, At(1, 27));
  update.failures.push_back(At(0, 37));
  ASSERT_TRUE(job.Say(0, update).ok());
  const Outcome outcome = job.Told(0).outcome;
  ASSERT_EQ(outcome.awaited.size(), 1u);
  EXPECT_EQ(outcome.awaited[0].rank, outcome.failures[0].rank);
  EXPECT_TRUE(absl::StartsWith(outcome.awaited[0].did, "waited in t.py:"));
}

TEST(RoundTable, WhereSomeTimedOutThoseThatDidNotAreNamed) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate update = Failed(1, At(0, 37));
  update.failures.push_back(At(1, 27));
  ASSERT_TRUE(job.Say(0, update).ok());
  job.Pass(milliseconds(3100), {0, 1});
  ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
  const Outcome outcome = job.Told(0).outcome;
  ASSERT_EQ(outcome.awaited.size(), 2U);
  EXPECT_EQ(outcome.awaited[0].rank, 2);
  EXPECT_EQ(outcome.awaited[1].rank, 3);
}

TEST(RoundTable, WhereAllTimedOutTheOneThatTheyNameCountsMoreThanWhereTheyStood) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate exits = Says(1, Phase::kSucceeded);
  exits.exited = {0, 1};
  ASSERT_TRUE(job.Say(1, exits).ok());
  NodeUpdate update = Failed(
      1, At(0, 37, "hlaunch.TimedOut: rank 0 waited in vain for rank 3 on node1 in barrier #2"));
  update.failures.push_back(At(1, 27));
  ASSERT_TRUE(job.Say(0, update).ok());
  ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
  const Outcome outcome = job.Told(0).outcome;
  ASSERT_EQ(outcome.awaited.size(), 1U);
  EXPECT_EQ(outcome.awaited[0].rank, 3);
  EXPECT_TRUE(outcome.awaited[0].exited);
  EXPECT_EQ(outcome.awaited[0].did, "exited with code 0");
}

TEST(RoundTable, WhereTheOneThatTheyNameWaitedItselfTheirPlacesAreCompared) {
  constexpr char kWords[] =
      "hlaunch.TimedOut: rank 0 waited in vain for rank 1 on node0 in all_reduce #4";
  for (const bool late : {false, true}) {  // If it was late, it is what they say of it that counts.
    Job job(2, 2);
    job.Run(2);
    NodeUpdate here = Failed(1, At(1, 37, late ? "hlaunch.PeerLost: rank 0 went away" : kWords));
    here.failures.push_back(At(0, 27, kWords));
    ASSERT_TRUE(job.Say(0, here).ok());
    NodeUpdate there = Failed(1, At(2, 27, kWords));
    there.failures.push_back(At(3, 27, kWords));
    ASSERT_TRUE(job.Say(1, there).ok());
    ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
    const Outcome outcome = job.Told(0).outcome;
    EXPECT_EQ(outcome.awaited.size(), late ? 0U : 1U);
    if (late) continue;
    EXPECT_EQ(outcome.failures[0].rank, 1);
    EXPECT_EQ(outcome.awaited[0].rank, 1);
    EXPECT_TRUE(absl::StrContains(outcome.awaited[0].did, "they called different collectives"));
  }
}

TEST(RoundTable, NobodyIsNamedWhereMoreThanThreeDidNotFail) {
  for (const int nodes : {2, 3}) {
    Job job(nodes, nodes);
    job.Run(nodes);
    ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(0, 1), "RuntimeError: Broken pipe"))).ok());
    job.Pass(milliseconds(1100), {0, 1, 2});
    ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
    EXPECT_EQ(job.Told(0).outcome.awaited.size(), nodes == 2 ? 3U : 0U);
  }
}

TEST(RoundTable, AWorkerThatExitedEarlyIsNamed) {
  for (const bool all : {false, true}) {
    Job job(2, 2);
    job.Run(2);
    NodeUpdate exits = Says(1, all ? Phase::kSucceeded : Phase::kRunning);
    exits.exited = all ? std::vector<int>{1, 0} : std::vector<int>{1};
    ASSERT_TRUE(job.Say(1, exits).ok());
    ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(0, 1), "RuntimeError: Broken pipe"))).ok());
    job.Pass(milliseconds(1100), {0, 1});
    const Outcome outcome = job.Told(0).outcome;
    ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
    ASSERT_EQ(outcome.awaited.size(), all ? 2u : 1u);
    EXPECT_EQ(outcome.awaited.back().rank, 3);
    EXPECT_EQ(outcome.awaited.back().local_rank, 1);
    EXPECT_EQ(outcome.awaited.back().did, "exited with code 0");
  }
}

TEST(RoundTable, AWorkerThatTheFailuresNameIsNamed) {
  Job job(2, 2);
  job.Run(2);
  const std::string left = "hlaunch.RankLost: rank 2 on node1 left the group before barrier #7";
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(0, 1), left))).ok());
  job.Pass(milliseconds(3100), {0, 1});
  const Outcome outcome = job.Told(0).outcome;
  ASSERT_EQ(outcome.awaited.size(), 1u);
  EXPECT_EQ(outcome.awaited[0].rank, 2);
  EXPECT_EQ(outcome.awaited[0].did, "left the group before barrier #7");
  EXPECT_EQ(outcome.reason, "worker rank 0 on node0 (pid 1000) exited with 1: " + left +
                                "; rank 2 on node1 left the group before barrier #7");
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

constexpr char kGone[] = "RuntimeError: Connection closed by peer [10.0.0.2]:4711";

TEST(RoundTable, ASilentNodeIsTheCauseOfWhatItsPeersSay) {
  Job job(2, 2);
  job.Run(2);
  job.Pass(seconds(2), {0, 1});
  job.table.TakeAsked();
  job.Pass(seconds(1), {0});
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kGone))).ok());
  EXPECT_THAT(job.table.TakeAsked(), testing::ElementsAre("id1"));
  job.Pass(milliseconds(3900), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(milliseconds(400), {0});
  ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, kExitNodeLost);
  EXPECT_FALSE(outcome.worker_failed);
  EXPECT_EQ(outcome.reason,
            "node1 (10.0.0.2) was lost: it was not heard of for 5 s; it ran ranks 2-3; rank 1 on "
            "node0 failed of it: RuntimeError: Connection closed by peer [10.0.0.2]:4711");
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].rank, 1);
}

TEST(RoundTable, ANodeWhoseStreamBrokeIsTheCauseWithinASecond) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kGone))).ok());
  job.Detach(1);
  job.Pass(milliseconds(400), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  for (int i = 0; i < 5; ++i) job.Pass(milliseconds(100), {0});
  ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
  EXPECT_THAT(job.Told(0).outcome.reason,
              testing::StartsWith("node1 (10.0.0.2) was lost: its connection broke 0."));
}

TEST(RoundTable, ALostNodeExplainsAFailureOfAnotherNodeOnItsHost) {
  Job job(2, 2);
  NodeInfo beside = job.Info(1);
  beside.host = "node0";
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(beside).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kGone))).ok());
  job.Detach(1);
  for (int i = 0; i < 10; ++i) job.Pass(milliseconds(100), {0});
  ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_THAT(job.Told(0).outcome.reason, testing::StartsWith("node0 (10.0.0.2) was lost: "));
  EXPECT_THAT(job.Told(0).outcome.reason, testing::HasSubstr("; rank 1 on node0 failed of it: "));
}

TEST(RoundTable, ANodeThatComesBackIsNotTheCause) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kGone))).ok());
  job.Detach(1);
  job.Pass(milliseconds(300), {0});
  NodeUpdate failed = Failed(1, Saying(Failure(2, 3), "ValueError: bad batch"));
  ASSERT_TRUE(job.table.Join(job.Info(1), failed, false, job.now).ok());
  ASSERT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(0).outcome.exit_code, 3);
}

TEST(RoundTable, AnAnswerOfAllEndsTheWaitForASilentNode) {
  Job job(2, 2);
  job.Run(2);
  job.Pass(seconds(2), {0});
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kGone))).ok());
  job.Pass(milliseconds(500), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(milliseconds(600), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(0).outcome.exit_code, 1);
}

TEST(RoundTable, ALossThatIsJudgedBeforeItIsProvenCostsOneRestart) {
  Job job(1, 2, 1);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(1, 1), kGone))).ok());
  job.Detach(1);
  job.Pass(seconds(1), {0});
  ASSERT_EQ(job.Told(0).kind, Kind::kStop);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(38), {0});
  EXPECT_EQ(job.table.round(), 1);  // Its workers may live.
  job.Pass(seconds(40), {0});
  EXPECT_EQ(job.table.round(), 2);
  EXPECT_EQ(job.table.Record().restarts, 1);
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

TEST(RoundTable, JudgesAFailureInTimeThoughGrowthIsDueMeanwhile) {
  Job job(2, 4);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  job.Pass(seconds(30), {0, 1});
  ASSERT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Join(2).ok());  // The last call for other nodes ends in 30 s.
  job.Pass(milliseconds(29500), {0, 1, 2});
  const std::string timed_out = "RuntimeError: Socket Timeout";
  ASSERT_TRUE(job.Say(0, Failed(1, Saying(Failure(0, 1), timed_out))).ok());
  job.Pass(milliseconds(600), {1, 2});
  EXPECT_EQ(job.table.state(), JobState::kRunning);
  EXPECT_GT(job.table.NextDeadline(), job.now);  // Otherwise its thread would spin.
  for (int i = 0; i < 40; ++i) job.Pass(milliseconds(100), {1, 2});
  EXPECT_EQ(job.table.state(), JobState::kOver);
}

TEST(RoundTable, ALateUpdateTakesBackNoExit) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate one = Failed(1, Saying(Failure(2, 1), kGone));
  one.exited = {1};
  ASSERT_TRUE(job.Say(1, one).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kRunning)).ok());  // It was sent before the failure.
  NodeUpdate both = Failed(1, Saying(Failure(0, 1), kGone));
  both.failures.push_back(Saying(Failure(1, 1), kGone));
  ASSERT_TRUE(job.Say(0, both).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);  // No worker is left that could report more.
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

TEST(RoundTable, FailuresThatWereTooManyToKeepCountOnceAfterARestartToo) {
  Job before(2, 2);
  before.Run(2);
  NodeUpdate many = Says(1, Phase::kFailed), few = Failed(1, Failure(2, 1));
  for (int i = 0; i < 16; ++i) {
    many.failures.push_back(Failure(0, 7));
    many.failures.back().pid = i;
    many.failures.back().wall_ms = i;
  }
  few.failures.push_back(Failure(3, 1));
  ASSERT_TRUE(before.Say(0, many).ok());
  ASSERT_TRUE(before.Say(1, few).ok());
  ASSERT_EQ(before.Told(1).outcome.total_failures, 18);
  Job job(before, seconds(3));
  for (const auto& [i, update] : {std::pair(1, few), {0, many}}) {
    ASSERT_TRUE(job.table.Join(job.Info(i), update, false, job.now).ok());
    EXPECT_EQ(job.Told(i).outcome.total_failures, 18);
  }
}

TEST(RoundTable, FailuresOfTwoHostsThatHaveAPidAndATimeInCommonBothCountAfterARestart) {
  Job before(2, 2);
  before.Run(2);
  NodeUpdate many = Says(1, Phase::kFailed);
  for (int i = 0; i < 16; ++i) {
    many.failures.push_back(Failure(0, 7));
    many.failures.back().pid = i;
  }
  NodeUpdate few = Failed(1, Failure(2, 1));
  few.failures[0].pid = 5;
  ASSERT_TRUE(before.Say(0, many).ok());
  ASSERT_TRUE(before.Say(1, few).ok());
  ASSERT_EQ(before.Told(1).outcome.total_failures, 17);
  Job job(before, seconds(3));
  few.failures.push_back(Failure(3, 1));
  few.failures[1].pid = 6;
  ASSERT_TRUE(job.table.Join(job.Info(1), few, false, job.now).ok());
  EXPECT_EQ(job.Told(1).outcome.total_failures, 18);
}

// Its agent was cut off, or stood still, and ended the workers; now it is here again.
TEST(RoundTable, ANodeThatLostItsWorkersEndsTheRoundLikeALostNode) {
  NodeUpdate lost = Says(1, Phase::kRunning);
  lost.workers_lost = "its agent ended the workers: nothing heard from the rendezvous for 9 s";
  Job job(2, 2, 1);
  job.Run(2);
  ASSERT_TRUE(job.Say(1, lost).ok());
  for (int i : {0, 1}) {
    EXPECT_EQ(job.Told(i).kind, Kind::kStop);
    EXPECT_EQ(job.Told(i).reason,
              "node1 (10.0.0.2) was lost: its agent ended the workers: nothing heard from the "
              "rendezvous for 9 s; it ran ranks 2-3; restart 1 of 1");
  }
  EXPECT_TRUE(job.table.TakeEnded().empty());  // It stays in the job.
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  for (int i : {0, 1}) EXPECT_EQ(job.Told(i).assignment.round, 2);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(0, lost).ok());  // Of round 1: it was overtaken.
  EXPECT_EQ(job.table.state(), JobState::kRunning);
  lost.round = 2;
  ASSERT_TRUE(job.Say(1, lost).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
}

}  // namespace
}  // namespace hlaunch
