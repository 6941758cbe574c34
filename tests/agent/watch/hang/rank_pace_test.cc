// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/rank_pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "agent/watch/hang/slow_watch.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PaceSample At(int64_t call, Pace pace, const std::string& place = "step (train.py:12)") {
  PaceSample sample;
  sample.pace = pace;
  sample.place = place;
  sample.calls = absl::StrCat(call);
  sample.groups = {"0"};
  sample.pid = 7;
  return sample;
}

TEST(RankPace, IsReadFromTheTapsAnswer) {
  const std::string answer =
      "{\"0\": 12, \"1\": 4}\n"
      R"j({"does": "waits", "at": "step\u001b (train.py:12)", "groups": ["0", "1"]})j";
  EXPECT_EQ(ProgressOf(answer), "{\"0\": 12, \"1\": 4}");
  const PaceSample sample = PaceOf(answer);
  EXPECT_EQ(sample.pace, Pace::kWaits);
  EXPECT_EQ(sample.place, "step? (train.py:12)");
  EXPECT_THAT(sample.groups, ElementsAre("0", "1"));
  EXPECT_EQ(PaceOf("{\"0\": 12}").pace, Pace::kUnknown) << "The tap of an older hlaunch.";
  EXPECT_EQ(PaceOf("{\"0\": 12}\n[[").pace, Pace::kUnknown);
  EXPECT_EQ(PaceOf("").pace, Pace::kUnknown);
}

TEST(RankPace, ADeviceHasCallsToCompleteWhereMoreAreEnqueued) {
  const auto status = [](const std::string& enqueued, const std::string& completed) {
    return HasUnfinishedCalls(absl::StrCat(
        R"({"pg_config":{},"pg_status":{"0":{"last_enqueued_collective":)", enqueued,
        R"(,"last_started_collective":-1,"last_completed_collective":)", completed, "}}}"));
  };
  EXPECT_TRUE(status("41", "40"));
  EXPECT_TRUE(status("\"41\"", "\"40\""));
  EXPECT_FALSE(status("41", "41"));
  EXPECT_FALSE(status("-1", "-1"));
  EXPECT_FALSE(HasUnfinishedCalls("{}"));
  EXPECT_FALSE(HasUnfinishedCalls("nonsense"));
}

TEST(RankPace, KnowsTheProcessorTimeOfTheMainThread) {
  PaceSample sample;
  AddProcessorUse(::getpid(), &sample);
  if (!sample.ran) GTEST_SKIP() << "this kernel has no /proc/PID/schedstat";
  EXPECT_GT(*sample.ran, Duration::zero());
  EXPECT_GE(*sample.delayed, Duration::zero());
}

TEST(RankPace, CountsAWaitOverSeveralLooksOnce) {
  RankPace pace;
  Instant now;
  for (int call = 0; call < 10; ++call) pace.Add(At(call, Pace::kWorks), now += seconds(5));
  for (int look = 0; look < 20; ++look) pace.Add(At(10, Pace::kWaits), now += seconds(5));
  for (int call = 10; call < 15; ++call) pace.Add(At(call, Pace::kWaits), now += seconds(5));
  const RankShare share = pace.share();
  EXPECT_EQ(share.steps.looks, 15);
  EXPECT_EQ(share.steps.waited, 5) << "The first look at call 10 was the one of the long wait.";
  EXPECT_EQ(share.all.looks, 35);
  EXPECT_EQ(share.all.waited, 25);
}

TEST(RankPace, ForgetsOldLooksAndThoseOfAnotherProcess) {
  RankPace pace;
  Instant now;
  for (int call = 0; call < 500; ++call) pace.Add(At(call, Pace::kWaits), now += seconds(5));
  for (int call = 500; call < 560; ++call) pace.Add(At(call, Pace::kWorks), now += seconds(5));
  EXPECT_EQ(pace.share().steps.looks, static_cast<int64_t>(RankPace::kLooks));
  EXPECT_EQ(pace.share().steps.waited, static_cast<int64_t>(RankPace::kLooks) - 60);
  EXPECT_EQ(*pace.since(), now - seconds(5) * (RankPace::kLooks - 1));
  PaceSample other = At(0, Pace::kWorks);
  other.pid = 8;
  pace.Add(other, now += seconds(5));
  EXPECT_EQ(pace.share().steps.looks, 1);
  pace.Add(PaceSample(), now += seconds(5));
  EXPECT_EQ(pace.share().steps.looks, 0);
}

TEST(RankPace, KnowsWhereTheRankIsWhileItWorks) {
  RankPace pace;
  Instant now;
  Duration ran{};
  for (int call = 0; call < 30; ++call) {
    PaceSample sample = At(call, call % 3 == 0 ? Pace::kWaits : Pace::kWorks,
                           call % 3 == 0   ? "step (train.py:12)"
                           : call % 3 == 1 ? "load (train.py:3)"
                           : call > 20     ? "log (train.py:5)"
                                           : "load (train.py:3)");
    sample.ran = ran += seconds(1);
    sample.delayed = ran * 2;
    pace.Add(sample, now += seconds(4));
  }
  const RankShare share = pace.share();
  EXPECT_EQ(share.place, "load (train.py:3)");
  EXPECT_EQ(share.at_place, 17);
  EXPECT_DOUBLE_EQ(share.ran, 0.25);
  EXPECT_DOUBLE_EQ(share.delayed, 0.5);
}

TEST(RankPace, SharesOfANodeAreToldToNodeRank0) {
  RankShare rank;
  rank.rank = 5;
  rank.local_rank = 1;
  rank.host = "node1";
  rank.pid = 77;
  rank.steps = {90, 3, 2};
  rank.all = {200, 30, 2};
  rank.place = "load (train.py:3)";
  rank.at_place = 60;
  rank.ran = 0.25;
  rank.groups = {"0", "dp"};
  const auto told = ParseShares(SharesText({rank, rank}, 4096));
  ASSERT_TRUE(told);
  ASSERT_THAT(*told, SizeIs(2));
  const RankShare& back = told->front();
  EXPECT_EQ(back.rank, 5);
  EXPECT_EQ(back.local_rank, 1);
  EXPECT_EQ(back.host, "node1");
  EXPECT_EQ(back.pid, 77);
  EXPECT_EQ(back.steps.waited, 3);
  EXPECT_EQ(back.all.looks, 200);
  EXPECT_EQ(back.place, "load (train.py:3)");
  EXPECT_EQ(back.at_place, 60);
  EXPECT_EQ(back.ran, 0.25);
  EXPECT_EQ(back.delayed, -1);
  EXPECT_THAT(back.groups, ElementsAre("0", "dp"));

  const std::string one = SharesText(std::vector<RankShare>(100, rank), 300);
  EXPECT_LE(one.size(), 300u);
  EXPECT_THAT(*ParseShares(one), SizeIs(3));
  for (const char* other : {"", "-", "[]", "{}", "{\"pace\":7}", "{\"lines\":[]}"}) {
    EXPECT_FALSE(ParseShares(other)) << other;
  }
  EXPECT_THAT(*ParseShares("{\"pace\":[7,[],[1,2]]}"), IsEmpty());
  const auto odd = ParseShares(R"({"pace":[[1,0,"h",2,[-5,9,9],[3,9,9],"",-1,9999,null,{}]]})");
  ASSERT_THAT(*odd, SizeIs(1));
  EXPECT_EQ(odd->front().steps.waited, 0);
  EXPECT_EQ(odd->front().all.waited, 3);
}

// Ranks in steps of half a second, of which one works for longer, at looks 5 s apart.
std::vector<PaceSample> Step(int64_t call, bool late) {
  std::vector<PaceSample> samples;
  for (int rank = 0; rank < 2; ++rank) {
    samples.push_back(At(call, rank == 0 && late ? Pace::kWaits : Pace::kWorks));
  }
  return samples;
}

TEST(SlowWatch, NamesTheRankAndCountsTheTime) {
  SlowWatch watch(/*first_rank=*/4, "node1", 2);
  Instant now;
  std::string told;
  SlowNews news;
  for (int look = 0; look < 100; ++look) {
    watch.Add(Step(look, look % 2 == 0), now += seconds(5));
    news = watch.Judge(now);
    told += news.ranks.text;
  }
  EXPECT_THAT(told, HasSubstr("rank 5 (node1, local rank 1, pid 7) holds up 1 other rank"));
  EXPECT_EQ(told.find("holds up"), told.rfind("holds up"));
  EXPECT_NEAR(InSeconds(news.waited), 250, 10);
  EXPECT_EQ(news.saved, Duration::zero());
}

// Rank 1 is slow at first, then rank 0, then none.
TEST(SlowWatch, TimeThatWasLostStaysLost) {
  SlowWatch watch(0, "node0", 3);
  Instant now;
  Duration before{};
  for (int look = 0; look < 600; ++look) {
    const bool waits = look % 2 == 0 && look < 200;
    const PaceSample slow = At(look, Pace::kWorks);
    const PaceSample other = At(look, waits ? Pace::kWaits : Pace::kWorks);
    watch.Add({look < 100 ? other : slow, look < 100 ? slow : other, other}, now += seconds(5));
    const Duration lost = watch.Judge(now).waited;
    EXPECT_GE(lost, before) << look;
    before = lost;
  }
  EXPECT_NEAR(InSeconds(before), 450, 75) << "500, less what passed until a change was seen.";
}

TEST(SlowWatch, NodeRank0KnowsTheRanksOfOtherNodes) {
  SlowWatch judge(0, "node0", 2);
  SlowWatch other(2, "node1", 2);
  Instant now;
  std::string told;
  int words = 0;
  for (int look = 0; look < 60; ++look) {
    std::vector<PaceSample> all = Step(look, look % 2 == 0);
    judge.Add({all[0], all[0]}, now += seconds(5));
    other.Add({all[0], all[1]}, now);
    const std::string word = other.Word(4096);
    words += word.empty() ? 0 : 1;
    EXPECT_EQ(judge.Hear(1, word), !word.empty());
    told += judge.Judge(now).ranks.text;
  }
  EXPECT_EQ(words, 5) << "Once a minute.";
  EXPECT_THAT(told, HasSubstr("rank 3 (node1, local rank 1, pid 7) holds up 3 other ranks"));
  EXPECT_FALSE(judge.Hear(1, "-"));
}

// A checkpoint of rank 0 takes half a minute every two minutes: the others wait in a barrier.
TEST(SlowWatch, PausesAreNoSlowSteps) {
  SlowWatch watch(0, "node0", 3);
  Instant now;
  std::string told;
  SlowNews news;
  for (int look = 0; look < 600; ++look) {
    const bool pause = look % 24 < 6;
    const int call = look - (pause ? look % 24 : 0);
    const PaceSample others = At(call, pause ? Pace::kWaits : Pace::kWorks);
    watch.Add({At(call, Pace::kWorks), others, others}, now += seconds(5));
    news = watch.Judge(now);
    told += news.ranks.text;
  }
  EXPECT_EQ(told, "");
  EXPECT_NEAR(InSeconds(news.waited), 750, 10) << "But the time is lost.";
}

}  // namespace
}  // namespace hlaunch
