// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/judge_hang.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::seconds;
using Kind = HangNews::Kind;

HangVerdict Verdict(HangKind kind, std::string wavefront = "1", std::string group = "dp") {
  HangVerdict verdict;
  verdict.kind = kind;
  verdict.wavefront = std::move(wavefront);
  verdict.group = std::move(group);
  verdict.collective.sequence = 100;
  return verdict;
}

TEST(HangLimit, IsHalfTheTimeOutWhereTheCauseIsClear) {
  const HangRule rule{seconds(60)};
  EXPECT_EQ(HangLimit(rule, Verdict(HangKind::kBehind), {}), seconds(30));
  EXPECT_EQ(HangLimit(rule, Verdict(HangKind::kAllInside), {}), seconds(60));
  HangVerdict works = Verdict(HangKind::kBehind);
  works.busy = true;
  EXPECT_EQ(HangLimit(rule, works, {}), seconds(60));
  HangVerdict peers = Verdict(HangKind::kBehind, "1", "");
  peers.for_peers = true;
  EXPECT_EQ(HangLimit(rule, peers, {}), seconds(60));
  peers.group = "pp";  // It is known for whom they wait.
  EXPECT_EQ(HangLimit(rule, peers, {}), seconds(30));
}

TEST(HangLimit, IsLearntFromStandstillsThatEndedByThemselves) {
  EXPECT_EQ(HangLimit({}, Verdict(HangKind::kAllInside), {}), seconds(60));
  EXPECT_EQ(HangLimit({}, Verdict(HangKind::kAllInside), seconds(30)), seconds(150));
  EXPECT_EQ(HangLimit({}, Verdict(HangKind::kBehind), seconds(30)), seconds(75));
}

TEST(HangLimit, IsPatientWithAStartAndWithRanksThatWork) {
  EXPECT_EQ(HangLimit({}, Verdict(HangKind::kBehind, "1", ""), {}), seconds(300));
  HangVerdict first = Verdict(HangKind::kBehind);
  first.collective.sequence = 1;
  EXPECT_EQ(HangLimit({}, first, {}), seconds(300));
  HangVerdict works = Verdict(HangKind::kBehind);
  works.busy = true;
  EXPECT_EQ(HangLimit({}, works, {}), seconds(300));
}

TEST(HangLimit, IsPatientWithTheFirstThreeCollectives) {
  HangVerdict verdict = Verdict(HangKind::kAllInside);
  verdict.collective.sequence = 3;
  EXPECT_EQ(HangLimit({}, verdict, {}), seconds(300));
  EXPECT_EQ(HangLimit({}, verdict, seconds(30)), seconds(750));
  verdict.collective.sequence = 4;
  EXPECT_EQ(HangLimit({}, verdict, {}), seconds(60));
}

TEST(HangJudge, SuspectsAStandstillExactlyAtItsLimit) {
  HangJudge judge({seconds(10)});
  const Instant start = Instant() + seconds(1000);
  const HangVerdict verdict = Verdict(HangKind::kAllInside);
  judge.Look({verdict}, start);
  EXPECT_EQ(judge.Look({verdict}, start + seconds(10)).kind, Kind::kSuspect);
}

TEST(HangJudge, CountsTheTimeInWhichTheCulpritDoesNothingFromItsLastWork) {
  HangJudge judge({});
  const Instant start = Instant() + seconds(1000);
  HangVerdict verdict = Verdict(HangKind::kBehind);  // Suspected after 30 s, or 300 s if it works.
  const auto look = [&](int after, bool works) {
    verdict.busy = works;
    return judge.Look({verdict}, start + seconds(after)).kind;
  };
  for (int second = 0; second < 100; second += 5) {
    EXPECT_EQ(look(second, second % 25 != 0), Kind::kNothing) << second;
  }
  EXPECT_EQ(look(100, true), Kind::kNothing);
  EXPECT_EQ(look(125, false), Kind::kNothing);
  EXPECT_EQ(look(130, false), Kind::kSuspect);
}

TEST(HangJudge, WantsSamplesFromHalfOfTheLimitToItsEndBeforeItIsSure) {
  HangJudge judge({});
  const Instant start = Instant() + seconds(1000);
  HangVerdict verdict = Verdict(HangKind::kMpi, "1", "");  // Suspected after 60 s.
  verdict.samples_needed = 3;
  const auto wants = [&](int after, int samples) {
    verdict.samples = samples;
    const HangNews news = judge.Look({verdict}, start + seconds(after));
    EXPECT_EQ(news.kind, Kind::kNothing) << after;
    return news.sample;
  };
  EXPECT_FALSE(wants(0, 0));
  EXPECT_FALSE(wants(29, 0));
  EXPECT_TRUE(wants(30, 0));
  EXPECT_FALSE(wants(44, 1));
  EXPECT_TRUE(wants(45, 1));
  EXPECT_FALSE(wants(59, 2));
  EXPECT_TRUE(wants(60, 2));
  verdict.samples_needed = 1;
  EXPECT_FALSE(wants(65, 1));  // One is enough, and was taken early.
  EXPECT_TRUE(wants(65, 0));
  EXPECT_FALSE(HangJudge({}).Look({verdict}, start).sample);
  verdict.samples_needed = 0;
  EXPECT_EQ(judge.Look({verdict}, start + seconds(66)).kind, Kind::kSuspect);
}

TEST(HangJudge, TellsOfTheFirstOfTwoStandstillsThatAreEquallyOld) {
  HangJudge judge({seconds(60)});
  const Instant start = Instant() + seconds(1000);
  HangVerdict suspected = Verdict(HangKind::kMpi, "b", "");
  suspected.samples_needed = 2;
  const std::vector<HangVerdict> verdicts = {Verdict(HangKind::kAllInside, "a"), suspected};
  EXPECT_EQ(judge.Look(verdicts, start).which, 0u);
  EXPECT_EQ(judge.Look(verdicts, start + seconds(5)).which, 0u);
}

TEST(HangJudge, LearnsNothingFromWhatWasOnlySuspected) {
  HangJudge judge({});
  const Instant start = Instant() + seconds(1000);
  HangVerdict verdict = Verdict(HangKind::kMpi, "1", "");
  verdict.samples_needed = 2;
  judge.Look({verdict}, start);
  judge.Look({}, start + seconds(200));
  verdict.samples_needed = 0;
  judge.Look({verdict}, start + seconds(300));
  EXPECT_EQ(judge.Look({verdict}, start + seconds(359)).kind, Kind::kNothing);
  EXPECT_EQ(judge.Look({verdict}, start + seconds(360)).kind, Kind::kSuspect);
}

TEST(HangJudge, TellsOfTheOldestStandstillThatIsOver) {
  HangJudge judge({seconds(10)});
  const Instant start = Instant() + seconds(1000);
  const HangVerdict one = Verdict(HangKind::kAllInside, "a");
  const HangVerdict two = Verdict(HangKind::kAllInside, "b");
  judge.Look({two}, start);
  judge.Look({one, two}, start + seconds(5));
  EXPECT_EQ(judge.Look({one, two}, start + seconds(15)).kind, Kind::kSuspect);
  EXPECT_EQ(judge.Look({one, two}, start + seconds(16)).kind, Kind::kSuspect);
  const HangNews over = judge.Look({}, start + seconds(20));
  EXPECT_EQ(over.kind, Kind::kWentOn);
  EXPECT_EQ(over.age, seconds(20));
}

TEST(HangJudge, SuspectsAStandstillOnceAndTellsThatItIsOver) {
  HangJudge judge({seconds(10)});
  const HangVerdict verdict = Verdict(HangKind::kAllInside);
  const Instant start = Instant() + seconds(1000);
  EXPECT_EQ(judge.Look({verdict}, start).kind, Kind::kNothing);
  EXPECT_EQ(judge.Look({verdict}, start + seconds(9)).kind, Kind::kNothing);
  const HangNews news = judge.Look({verdict}, start + seconds(11));
  EXPECT_EQ(news.kind, Kind::kSuspect);
  EXPECT_EQ(news.age, seconds(11));
  EXPECT_EQ(judge.Look({verdict}, start + seconds(12)).kind, Kind::kNothing);
  const HangNews over = judge.Look({Verdict(HangKind::kAllInside, "2")}, start + seconds(20));
  EXPECT_EQ(over.kind, Kind::kWentOn);
  EXPECT_EQ(over.age, seconds(20));
}

TEST(HangJudge, DoesNotCountTimeInWhichNobodyLooked) {
  HangJudge judge({seconds(10)});
  const HangVerdict verdict = Verdict(HangKind::kAllInside);
  const Instant start = Instant() + seconds(1000);
  judge.Look({verdict}, start);
  judge.Forgive(seconds(100));
  EXPECT_EQ(judge.Look({verdict}, start + seconds(105)).kind, Kind::kNothing);
  EXPECT_EQ(judge.Look({verdict}, start + seconds(111)).kind, Kind::kSuspect);
}

TEST(HangJudge, SuspectsAPartThatStandsStillBesideOneThatGoesOn) {
  HangJudge judge({seconds(10)});
  const Instant start = Instant() + seconds(1000);
  for (int i = 0; i < 5; ++i) {
    const HangVerdict other = Verdict(HangKind::kBehind, std::to_string(i));
    const HangNews news =
        judge.Look({other, Verdict(HangKind::kBehind, "stands")}, start + seconds(i));
    EXPECT_EQ(news.kind, Kind::kNothing);
    EXPECT_EQ(news.which, i == 0 ? 0u : 1u);
    EXPECT_EQ(news.age, seconds(i));
  }
  const HangNews news = judge.Look(
      {Verdict(HangKind::kBehind, "5"), Verdict(HangKind::kBehind, "stands")}, start + seconds(5));
  EXPECT_EQ(news.kind, Kind::kSuspect);
  EXPECT_EQ(news.which, 1u);
  // The other part does not end this standstill.
  EXPECT_EQ(judge.Look({Verdict(HangKind::kBehind, "stands")}, start + seconds(6)).kind,
            Kind::kNothing);
  EXPECT_EQ(judge.Look({}, start + seconds(7)).age, seconds(7));
}

TEST(HangJudge, LearnsFromTheLongestStandstillOfAnyPart) {
  HangJudge judge({});
  const Instant start = Instant() + seconds(1000);
  const HangVerdict slow = Verdict(HangKind::kAllInside, "slow");
  judge.Look({slow}, start);
  judge.Look({slow, Verdict(HangKind::kAllInside, "short")}, start + seconds(40));
  judge.Look({}, start + seconds(50));  // 50 s, and 10 s.
  const HangVerdict next = Verdict(HangKind::kAllInside, "next");
  judge.Look({next}, start + seconds(60));
  EXPECT_EQ(judge.Look({next}, start + seconds(309)).kind, Kind::kNothing);
  EXPECT_EQ(judge.Look({next}, start + seconds(310)).kind, Kind::kSuspect);
}

TEST(HangJudge, SuspectsNobodyWhoGoesOn) {
  HangJudge judge({seconds(10)});
  const Instant start = Instant() + seconds(1000);
  for (int i = 0; i < 100; ++i) {
    const HangVerdict verdict = Verdict(HangKind::kBehind, std::to_string(i));
    EXPECT_EQ(judge.Look({verdict}, start + seconds(4 * i)).kind, Kind::kNothing);
  }
}

}  // namespace
}  // namespace hlaunch
