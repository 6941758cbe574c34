// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests the helper with real processes: one that reports everything, and some that do not.

#include "agent/health/health_helper.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/health/health_watch.h"
#include "agent/health/local/host_checks.h"
#include "agent/health/local/speed.h"
#include "agent/health/run_checks.h"
#include "asio/io_context.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/machine.h"
#include "tests/rendezvous/no_threads.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::vector<CheckResult> Ask(const std::string& script, const std::vector<AwaitedCheck>& checks) {
  asio::io_context loop(1);
  std::vector<CheckResult> results;
  const HealthHelper helper(loop, {"/bin/sh", "-c", script}, checks,
                            [&](std::vector<CheckResult> all) { results = std::move(all); });
  loop.run();
  return results;
}

const CheckResult kGood{"good", 1.5, "ms", CheckState::kOk, "as it should be", ""};

std::string Echo(const CheckResult& result) {
  return absl::StrCat("echo '", ToLine(result), "'; ");
}

TEST(CheckResult, GoesThroughALineAndBack) {
  const CheckResult bad{"bad \"one\"", {}, "", CheckState::kFail, "line\nbreak \xff", "mend it"};
  const auto read = FromLine(ToLine(bad));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, bad.name);
  EXPECT_EQ(read->state, CheckState::kFail);
  EXPECT_EQ(read->value, std::nullopt);
  EXPECT_EQ(read->advice, "mend it");
  EXPECT_THAT(read->reason, HasSubstr("line\nbreak "));
  EXPECT_EQ(FromLine(ToLine(kGood))->value, 1.5);
  for (const char* junk : {"", "{", "[]", "{}", "{\"name\": 5}", "{\"name\": \"a\"}",
                           "{\"name\": \"a\", \"state\": \"fine\"}"}) {
    EXPECT_FALSE(FromLine(junk)) << junk;
  }
}

TEST(HealthHelper, TellsResultsInTheOrderTheyWereAskedFor) {
  CheckResult other = kGood;
  other.name = "other";
  const auto results =
      Ask(Echo(other) + Echo(kGood), {{"good", seconds(20)}, {"other", seconds(20)}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].name, "good");
  EXPECT_EQ(results[0].value, 1.5);
  EXPECT_EQ(results[1].name, "other");
}

TEST(HealthHelper, KillsAHungCheckAndKeepsWhatTheOthersFound) {
  const auto results = Ask("trap '' TERM; " + Echo(kGood) + "sleep 1000 & sleep 1000",
                           {{"hung", milliseconds(300)}, {"good", seconds(20)}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].state, CheckState::kUnknown);
  EXPECT_EQ(results[0].reason, "it did not end within 0.3 s");
  EXPECT_EQ(results[1].state, CheckState::kOk);
}

TEST(HealthHelper, CallsUnknownWhatAHelperThatDiedDidNotTell) {
  const auto results =
      Ask(Echo(kGood) + "kill -SEGV $$", {{"good", seconds(20)}, {"lost", seconds(20)}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].state, CheckState::kOk);
  EXPECT_EQ(results[1].state, CheckState::kUnknown);
  EXPECT_THAT(results[1].reason, HasSubstr("SIGSEGV"));
}

TEST(HealthHelper, CallsAllUnknownWhereItCannotStart) {
  asio::io_context loop(1);
  std::vector<CheckResult> results;
  const HealthHelper helper(loop, {"/no/such/program"}, {{"a", seconds(20)}},
                            [&](std::vector<CheckResult> all) { results = std::move(all); });
  EXPECT_TRUE(results.empty());  // Nothing comes before the loop runs.
  loop.run();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].state, CheckState::kUnknown);
  EXPECT_THAT(results[0].reason, HasSubstr("/no/such/program"));
}

TEST(HealthHelper, SaysNothingOnceItIsGone) {
  asio::io_context loop(1);
  bool told = false;
  {
    const HealthHelper helper(loop, {"/bin/sleep", "1000"}, {{"a", seconds(100)}},
                              [&](std::vector<CheckResult>) { told = true; });
    loop.poll();
  }
  loop.run();
  EXPECT_FALSE(told);
}

TEST(RepeatedChecks, WarnOfWhatHasNotEndedAndTellItsResultInALaterTurn) {
  const Machine machine;
  CheckPlan plan;
  plan.sysroot = machine.root();
  RepeatedChecks checks(plan);
  const std::vector<AwaitedCheck> all = ChecksToAwait(plan);
  const std::vector<CheckResult> early = checks.Take(Duration::zero());
  EXPECT_EQ(early.size(), all.size());
  for (const CheckResult& result : early) {
    if (result.state != CheckState::kWarn) continue;
    EXPECT_THAT(result.reason, testing::MatchesRegex("it has not ended for [0-9]+ s"));
  }
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<CheckResult> results = checks.Take(seconds(60));
    ASSERT_EQ(results.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(results[i].name, all[i].name);
      EXPECT_LE(results[i].state, CheckState::kUnknown) << results[i].reason;
    }
  }
}

TEST(RunChecks, RunsTheChecksOneAfterAnotherWhereThereAreNoThreads) {
  const Machine machine;
  CheckPlan plan;
  plan.sysroot = machine.root();
  size_t told = 0;
  {
    const NoThreads none;
    RunChecks(plan, [&told](const CheckResult&) { ++told; });
  }
  EXPECT_EQ(told, ChecksToAwait(plan).size());
}

TEST(RepeatedChecks, WarnWhereThereAreNoThreads) {
  const Machine machine;
  CheckPlan plan;
  plan.sysroot = machine.root();
  RepeatedChecks checks(plan);
  {
    const NoThreads none;
    for (const CheckResult& result : checks.Take(seconds(60))) {
      EXPECT_EQ(result.state, CheckState::kWarn);
      EXPECT_THAT(result.reason, HasSubstr("could not be run: Resource temporarily unavailable"));
    }
  }
  EXPECT_EQ(checks.Take(seconds(60)).size(), ChecksToAwait(plan).size());
}

// The results that a watch tells until its process has ended.
std::vector<CheckResult> Watch(const std::string& script, bool finished = false) {
  asio::io_context loop(1);
  std::vector<CheckResult> told;
  HealthWatch watch(loop, {"/bin/sh", "-c", script},
                    [&](const CheckResult& change) { told.push_back(change); });
  if (finished) watch.Finished();
  EXPECT_GT(watch.pid(), 0);
  loop.run();
  EXPECT_EQ(watch.pid(), 0);
  return told;
}

TEST(HealthWatch, TellsEachChangeAndThatNobodyWatchesAnyMore) {
  const auto told = Watch(Echo(kGood) + "echo junk; exit 3");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].name, "good");
  EXPECT_EQ(told[1].state, CheckState::kWarn);
  EXPECT_THAT(told[1].reason, HasSubstr("until the next round: it ended with exit code 3"));
}

TEST(HealthWatch, EndsAProcessThatNeverEndsItsLine) {
  const auto told = Watch("cat /dev/zero");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0].reason, HasSubstr("until the next round: it said a line of over a megabyte"));
}

TEST(HealthWatch, EndsTheInputOfItsProcessWhenTheWorkersHaveFinished) {
  EXPECT_EQ(Watch("cat; " + Echo(kGood), /*finished=*/true)[0].name, "good");
}

TEST(CheckLogDirectory, LeavesNothingBehind) {
  const Machine folder;
  const CheckResult result = CheckLogDirectory(folder.root(), 1 << 20);
  EXPECT_NE(result.state, CheckState::kFail) << result.reason;
  EXPECT_THAT(result.reason, HasSubstr("MB/s"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.root()));
  // For a directory that does not exist yet, the check looks at its parent.
  const CheckResult inside = CheckLogDirectory(folder.root() + "/a/b", 0);
  EXPECT_NE(inside.state, CheckState::kFail) << inside.reason;
  EXPECT_TRUE(std::filesystem::is_empty(folder.root()));
}

TEST(CheckLogDirectory, FailsWhereNothingCanBeWritten) {
  const CheckResult result = CheckLogDirectory("/proc/self", 0);
  EXPECT_EQ(result.state, CheckState::kFail);
  EXPECT_THAT(result.reason, HasSubstr("cannot write in /proc/self"));
  EXPECT_NE(result.advice, "");
}

TEST(CheckName, FailsForANameThatCannotBe) {
  EXPECT_EQ(CheckName("127.0.0.1").state, CheckState::kOk);
  const CheckResult result = CheckName("no_such name");
  EXPECT_EQ(result.state, CheckState::kFail);
  EXPECT_NE(result.advice, "");
}

TEST(CheckProcessor, ComputesWhatIsKnown) {
  const CheckResult result = CheckProcessor(/*full=*/false);
  EXPECT_EQ(result.state, CheckState::kOk) << result.reason;
  EXPECT_GT(*result.value, 0);
}

TEST(MeasureMemory, SaysNothingWhereThereIsNone) { EXPECT_GT(MeasureMemory(1 << 20, 1), 0); }

TEST(HostChecks, FailNothingOnAnyMachineThatRunsThem) {
  EXPECT_LE(CheckClock().state, CheckState::kUnknown);
  EXPECT_NE(CheckSharedMemory().state, CheckState::kFail);
  EXPECT_EQ(CheckSharedMemory("/no/such").state, CheckState::kUnknown);
  EXPECT_NE(CheckLimits(DeviceFiles()).state, CheckState::kFail);
}

}  // namespace
}  // namespace hlaunch
