// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/restart_policy.h"

#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;
using Kind = FailureEvent::Kind;

FailureEvent Worker(int exit_code, int signal) {
  FailureEvent event;
  event.worker = Failure(3, exit_code);
  event.worker.signal = signal;
  return event;
}

FailureEvent NodeGone(Kind kind, const std::string& detail, int left_exit_code) {
  FailureEvent event;
  event.kind = kind;
  event.host = "gpu7";
  event.detail = detail;
  event.left_exit_code = left_exit_code;
  return event;
}

constexpr Instant kNow = Instant{} + std::chrono::hours(100);

// The log after `charged` restarts, all of them now.
RestartLog Used(int charged) {
  RestartLog log;
  log.charged.assign(static_cast<size_t>(charged), kNow);
  log.ran_since = kNow;
  return log;
}

JobVerdict After(const JobPolicy& policy, const FailureEvent& event, const RestartLog& log = {}) {
  return AfterFailure(policy, log, event, kNow);
}

TEST(AfterFailure, RestartsWhileTheBudgetLastsAndElseSaysHowTheJobExits) {
  struct Budget {
    int max_restarts, used;
  };
  struct Case {
    Budget budget;
    FailureEvent event;
    bool restart;
    int exit_code;
    std::string reason;
  };
  FailureEvent waited = Worker(1, 0);
  waited.worker.message = "RuntimeError: Timed out waiting 5000ms";
  waited.awaited = {{1, 1, "node0"}, {6, 0, "node3"}};
  const std::string rank3 = "worker rank 3 on node1 (pid 1003) ";
  const Case cases[] = {
      {{0, 0}, Worker(7, 0), false, 7, rank3 + "exited with 7"},
      {{0, 0}, Worker(0, 9), false, 137, rank3 + "was killed by signal 9 (SIGKILL)"},
      {{0, 0}, Worker(0, 35), false, 163, rank3 + "was killed by signal 35"},
      {{3, 0}, Worker(7, 0), true, 7, rank3 + "exited with 7; restart 1 of 3"},
      {{3, 2}, Worker(7, 0), true, 7, rank3 + "exited with 7; restart 3 of 3"},
      {{3, 3}, Worker(7, 0), false, 7, rank3 + "exited with 7; 3 restarts were used"},
      {{1, 1}, Worker(7, 0), false, 7, rank3 + "exited with 7; 1 restart was used"},
      {{0, 0},
       waited,
       false,
       1,
       rank3 +
           "exited with 1: RuntimeError: Timed out waiting 5000ms; rank 1 on node0 and rank 6 on "
           "node3 did not fail"},
      {{0, 0}, Worker(0, 0), false, 1, rank3 + "exited with 0"},
      {{0, 0}, Worker(256, 0), false, 1, rank3 + "exited with 256"},
      {{0, 0},
       NodeGone(Kind::kNodeLost, "silence", 0),
       false,
       kExitNodeLost,
       "gpu7 was lost: silence"},
      {{1, 0},
       NodeGone(Kind::kNodeLost, "silence", 0),
       true,
       kExitNodeLost,
       "gpu7 was lost: silence; restart 1 of 1"},
      {{0, 0},
       NodeGone(Kind::kNodeLeft, "SIGINT", 130),
       false,
       kExitNodeStopped,
       "gpu7 was stopped by SIGINT"},
      {{1, 0},
       NodeGone(Kind::kNodeLeft, "SIGTERM", 143),
       true,
       kExitNodeStopped,
       "gpu7 was stopped by SIGTERM; restart 1 of 1"},
      {{0, 0},
       NodeGone(Kind::kNodeLeft, "its keeper was killed", kExitAgentLost),
       false,
       kExitAgentLost,
       "gpu7 left: its keeper was killed"},
      {{0, 0},
       NodeGone(Kind::kNodeLeft, "its keeper was killed", 0),
       false,
       kExitNodeLost,
       "gpu7 left: its keeper was killed"},
  };
  for (const Case& c : cases) {
    const JobVerdict verdict =
        After(Policy(1, 1, c.budget.max_restarts), c.event, Used(c.budget.used));
    EXPECT_EQ(verdict.restart, c.restart) << c.reason;
    EXPECT_EQ(verdict.exit_code, c.exit_code) << c.reason;
    EXPECT_EQ(verdict.reason, c.reason);
  }
}

TEST(AfterFailure, EndsTheJobWhereANewWorkerWouldMeetTheSame) {
  FailureEvent stuck = Worker(0, 9);
  stuck.worker.no_restart = true;
  JobPolicy policy = Policy(1, 1, 3);
  policy.free_on = "any";
  const JobVerdict verdict = After(policy, stuck, Used(1));
  EXPECT_FALSE(verdict.restart);
  EXPECT_EQ(verdict.exit_code, 137);
}

TEST(AfterFailure, LooksAtWhatTheUserNames) {
  struct Case {
    std::string restart_on, end_on, free_on;
    int max_restarts;
    FailureEvent event;
    bool restart, free;
    std::string ends_in;  // The reason.
  };
  FailureEvent hung = Worker(0, 9), oom = Worker(0, 9);
  hung.worker.hung = true;
  oom.worker.out_of_memory = true;
  const FailureEvent lost = NodeGone(Kind::kNodeLost, "silence", 0);
  const FailureEvent stopped = NodeGone(Kind::kNodeLeft, "SIGTERM", 143);
  const Case cases[] = {
      {"", "3", "", 5, Worker(3, 0), false, false, "exited with 3; exit code 3 is in --end-on"},
      {"", "3", "", 5, Worker(4, 0), true, false, "; restart 1 of 5"},
      {"", "", "75", 0, Worker(75, 0), true, true, "; not charged: exit code 75 is in --free-on"},
      {"", "", "75", 0, Worker(1, 0), false, false, "exited with 1"},
      {"", "", "75", 5, Worker(1, 0), true, false, "; restart 1 of 5"},
      {"64-78", "", "", 5, Worker(75, 0), true, false, "; restart 1 of 5"},
      {"64-78", "", "", 5, Worker(1, 0), false, false, "; exit code 1 is not in --restart-on"},
      {"64-78", "", "", 0, Worker(75, 0), false, false, "exited with 75"},
      {"1", "", "75", 0, Worker(75, 0), true, true, "exit code 75 is in --free-on"},
      {"64-78", "70", "64-78", 5, Worker(70, 0), false, false, "; exit code 70 is in --end-on"},
      {"node", "", "", 5, Worker(0, 9), false, false, "; SIGKILL is not in --restart-on"},
      {"node", "", "", 5, lost, true, false, "; restart 1 of 5"},
      {"1", "", "", 5, lost, false, false, "; node is not in --restart-on"},
      {"", "", "node", 0, stopped, true, true, "not charged: node is in --free-on"},
      {"", "", "249", 0, stopped, true, true, "not charged: exit code 249 is in --free-on"},
      {"", "oom", "SIGKILL", 5, oom, false, false, "; oom is in --end-on"},
      {"", "oom", "SIGKILL", 5, Worker(0, 9), true, true, "SIGKILL is in --free-on"},
      {"", "hang", "", 5, hung, false, false, "; hang is in --end-on"},
      {"", "", "SIGKILL", 0, hung, true, true, "SIGKILL is in --free-on"},
      {"", "no such word", "", 5, Worker(1, 0), true, false, "; restart 1 of 5"},
  };
  for (const Case& c : cases) {
    JobPolicy policy = Policy(1, 1, c.max_restarts);
    policy.restart_on = c.restart_on;
    policy.end_on = c.end_on;
    policy.free_on = c.free_on;
    const JobVerdict verdict = After(policy, c.event);
    EXPECT_EQ(verdict.restart, c.restart) << verdict.reason;
    EXPECT_EQ(verdict.free, c.free) << verdict.reason;
    EXPECT_THAT(verdict.reason, EndsWith(c.ends_in));
  }
}

TEST(AfterFailure, CountsTheRestartsOfTheWindow) {
  JobPolicy policy = Policy(1, 1, 3);
  policy.restart_window = hours(24);
  RestartLog log;
  log.charged = {kNow - hours(25), kNow - hours(24), kNow - hours(23), kNow - hours(1)};
  EXPECT_EQ(CountedRestarts(policy, log, kNow), 2);
  EXPECT_THAT(After(policy, Worker(7, 0), log).reason, EndsWith("; restart 3 of 3 within 24 h"));
  log.charged.push_back(kNow);
  const JobVerdict used = After(policy, Worker(7, 0), log);
  EXPECT_FALSE(used.restart);
  EXPECT_THAT(used.reason, EndsWith("; 3 restarts were used within 24 h"));
  policy.restart_window = Duration::zero();
  EXPECT_EQ(CountedRestarts(policy, log, kNow), 5) << "for ever";
}

// The pauses after a series of failures, each after `ran` of work.
std::vector<Duration> Pauses(const JobPolicy& policy, const FailureEvent& event, Duration ran,
                             int restarts) {
  RestartLog log;
  std::vector<Duration> pauses;
  Instant now = kNow;
  for (int i = 0; i < restarts; ++i) {
    log.ran_since = now;
    now += ran;
    const JobVerdict verdict = AfterFailure(policy, log, event, now);
    EXPECT_TRUE(verdict.restart) << verdict.reason;
    TakeRestart(policy, verdict, now, log);
    pauses.push_back(log.pause);
    now += log.pause;
  }
  return pauses;
}

TEST(AfterFailure, PausesLongerWithEachRestartThatFollowsSoon) {
  JobPolicy policy = Policy(1, 1, 100);
  EXPECT_THAT(Pauses(policy, Worker(1, 0), seconds(1), 3), Each(Duration::zero()));
  policy.restart_pause = seconds(60);
  EXPECT_THAT(Pauses(policy, Worker(1, 0), seconds(599), 5),
              ElementsAre(seconds(60), seconds(120), seconds(240), seconds(300), seconds(300)));
  EXPECT_THAT(Pauses(policy, Worker(1, 0), seconds(600), 3), Each(seconds(60)));
  policy.restart_pause = hours(1);
  EXPECT_THAT(Pauses(policy, Worker(1, 0), seconds(1), 3), Each(hours(1))) << "longer than most";
}

TEST(AfterFailure, PausesBeforeRestartsThatAreNotChargedSoThatNoJobSpins) {
  JobPolicy policy = Policy(1, 1);
  policy.free_on = "75";
  EXPECT_THAT(Pauses(policy, Worker(75, 0), seconds(1), 4),
              ElementsAre(seconds(0), seconds(1), seconds(2), seconds(4)));
  EXPECT_EQ(Pauses(policy, Worker(75, 0), seconds(1), 40).back(), kLongestPause);
  EXPECT_THAT(Pauses(policy, Worker(75, 0), kLongRun, 4), Each(Duration::zero()));
  policy.restart_pause = seconds(3);
  EXPECT_THAT(Pauses(policy, Worker(75, 0), seconds(1), 3),
              ElementsAre(seconds(3), seconds(6), seconds(12)));
}

TEST(TakeRestart, ForgetsWhatDoesNotCountAnyMoreAndCanBeTakenBack) {
  JobPolicy policy = Policy(1, 1, 3);
  policy.restart_window = hours(1);
  policy.free_on = "75";
  RestartLog log;
  log.charged = {kNow - hours(2), kNow - seconds(1)};
  TakeRestart(policy, After(policy, Worker(1, 0), log), kNow, log);
  EXPECT_THAT(log.charged, ElementsAre(kNow - seconds(1), kNow));
  TakeBack(log);
  EXPECT_THAT(log.charged, ElementsAre(kNow - seconds(1)));
  TakeRestart(policy, After(policy, Worker(75, 0), log), kNow, log);
  EXPECT_EQ(log.charged.size(), 1u);
  TakeBack(log);
  EXPECT_EQ(log.charged.size(), 1u);
}

TEST(DescribePause, SaysWhichRestartBeginsWhenAndWhy) {
  JobPolicy policy = Policy(1, 1, 3);
  policy.restart_pause = seconds(8);
  RestartLog log = Used(2);
  log.pause = seconds(8);
  EXPECT_EQ(DescribePause(policy, log, milliseconds(7100)),
            "restart 2 of 3 begins in 8 s (--restart-pause)");
  EXPECT_EQ(DescribePause(policy, log, milliseconds(420)),
            "restart 2 of 3 begins in 0.5 s (--restart-pause)");
  EXPECT_EQ(WaitForPause(policy, log),
            "waiting for the pause of 8 s before restart 2 of 3 (--restart-pause)");
  log.pause = milliseconds(1500);
  EXPECT_EQ(DescribePause(policy, log, log.pause),
            "restart 2 of 3 begins in 1.5 s (--restart-pause)");
  policy.restart_window = std::chrono::minutes(90);
  log.pause = std::chrono::minutes(5);
  EXPECT_EQ(DescribePause(policy, log, log.pause),
            "restart 2 of 3 within 90 min begins in 5 min (--restart-pause)");
  policy.restart_pause = Duration::zero();
  log.free = true;
  log.pause = seconds(2);
  EXPECT_EQ(DescribePause(policy, log, log.pause),
            "a restart that is not charged begins in 2 s (restarts follow each other soon)");
}

TEST(CheckRestartPolicy, NamesTheOptionAndWhatIsWrong) {
  struct Case {
    std::string restart_on, end_on, free_on, message;
  };
  const Case cases[] = {
      {"", "", "", ""},
      {"1-255", "3", "75,node", ""},
      {"", "70", "64-78", ""},
      {"", "", "any", ""},
      {"fire", "", "", "--restart-on: 'fire' names no failure; expected "},
      {"", "0", "", "--end-on: '0' names no failure"},
      {"", "", "78-64", "--free-on: '78-64' names no failure"},
      {"", "any", "75", "--free-on says nothing beside --end-on any, which names all of it"},
      {"", "1,75", "75", "--free-on says nothing beside --end-on 1,75"},
      {"hang", "hang", "", "--restart-on says nothing beside --end-on hang"},
  };
  for (const Case& c : cases) {
    JobPolicy policy;
    policy.restart_on = c.restart_on;
    policy.end_on = c.end_on;
    policy.free_on = c.free_on;
    const absl::Status status = CheckRestartPolicy(policy);
    EXPECT_EQ(status.ok(), c.message.empty()) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(c.message));
  }
}

}  // namespace
}  // namespace hlaunch
