// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/figures.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using Values = std::vector<double>;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const FigureRule& kTime = RuleOf(Figure::kProcessor);
const FigureRule& kSpeed = RuleOf(Figure::kMemorySpeed);
const FigureRule& kFabric = RuleOf(Figure::kFabric);

std::vector<Standing> Standings(const Values& values, const FigureRule& rule) {
  std::vector<Standing> standings;
  for (const Score& score : ScoreFigure(values, rule)) standings.push_back(score.standing);
  return standings;
}

// Values of nodes that differ by a few percent, as real nodes do.
Values Fleet(std::mt19937_64& random, size_t n, double usual, double noise) {
  std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
  Values values;
  for (size_t i = 0; i < n; ++i) values.push_back(usual * spread(random));
  return values;
}

TEST(SpreadOf, NamesWhoHoldsTheEnds) {
  EXPECT_FALSE(SpreadOf({}));
  EXPECT_FALSE(SpreadOf({kNaN, kNaN}));
  const Spread spread = *SpreadOf({kNaN, 4, 2, 9, 5});
  EXPECT_EQ(spread.min, 2);
  EXPECT_EQ(spread.min_at, 2u);
  EXPECT_EQ(spread.max, 9);
  EXPECT_EQ(spread.max_at, 3u);
  EXPECT_EQ(spread.mean, 5);
  EXPECT_EQ(spread.median, 4.5);
  EXPECT_EQ(spread.known, 4u);
}

TEST(SpreadOf, KeepsMeanAndMedianBetweenTheEnds) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    const Values values = Fleet(random, 1 + random() % 100, 3e5, 0.99);
    const Spread spread = *SpreadOf(values);
    EXPECT_LE(spread.min, spread.mean);
    EXPECT_LE(spread.mean, spread.max);
    EXPECT_LE(spread.min, spread.median);
    EXPECT_LE(spread.median, spread.max);
    EXPECT_EQ(values[spread.min_at], spread.min);
    EXPECT_EQ(values[spread.max_at], spread.max);
  }
}

TEST(ScoreFigure, CallsNobodyBadWhereAllAreAlike) {
  std::mt19937_64 random(2);
  for (int run = 0; run < 300; ++run) {
    const Values values = Fleet(random, 1 + random() % 200, 1 + run, run % 2 == 0 ? 0 : 0.04);
    for (const FigureRule* rule : {&kTime, &kSpeed}) {
      for (const Standing standing : Standings(values, *rule)) {
        EXPECT_EQ(standing, Standing::kNormal);
      }
    }
  }
}

TEST(ScoreFigure, FindsThePlantedOneWhoeverItIs) {
  std::mt19937_64 random(3);
  for (int run = 0; run < 300; ++run) {
    const size_t n = 3 + random() % 200;
    const size_t planted = random() % n;
    for (const FigureRule* rule : {&kTime, &kSpeed}) {
      Values values = Fleet(random, n, 10, 0.04);
      values[planted] *= rule == &kTime ? 2.5 : 0.4;
      const std::vector<Score> scores = ScoreFigure(values, *rule);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(scores[i].standing, i == planted ? Standing::kBad : Standing::kNormal);
      }
      EXPECT_GT(scores[planted].ratio, 2);
      EXPECT_GT(scores[planted].z, 3.5);
    }
  }
}

TEST(ScoreFigure, DoesNotDependOnOrderOrUnit) {
  std::mt19937_64 random(4);
  for (int run = 0; run < 100; ++run) {
    Values values = Fleet(random, 2 + random() % 50, 10, 0.6);
    const std::vector<Standing> standings = Standings(values, kTime);
    Values scaled, reversed(values.rbegin(), values.rend());
    for (const double value : values) scaled.push_back(value * 1024);
    EXPECT_EQ(Standings(scaled, kTime), standings);
    std::vector<Standing> back = Standings(reversed, kTime);
    std::reverse(back.begin(), back.end());
    EXPECT_EQ(back, standings);
  }
}

TEST(ScoreFigure, SaysNothingOfWhatIsUnknown) {
  const auto standings = Standings({1, kNaN, 1, 1, 9}, kTime);
  EXPECT_EQ(standings[1], Standing::kUnknown);
  EXPECT_EQ(standings[4], Standing::kBad);
  EXPECT_TRUE(Standings({}, kTime).empty());
  EXPECT_EQ(Standings({5}, kTime)[0], Standing::kNormal);
}

TEST(ScoreFigure, ProvesNothingWithTwo) {
  EXPECT_EQ(Standings({1, 9}, kTime)[1], Standing::kSlow);
  EXPECT_EQ(Standings({1, 9}, kTime)[0], Standing::kNormal);
  EXPECT_EQ(Standings({400, 200}, kFabric)[1], Standing::kNormal);
}

TEST(ScoreFigure, NeedsAMajorityForWhatIsCounted) {
  EXPECT_EQ(Standings({3200, 3200, 2800}, kFabric)[2], Standing::kBad);
  EXPECT_EQ(Standings({3200, 2800, 2400}, kFabric)[2], Standing::kNormal);
  EXPECT_EQ(Standings({3200, 3200, 2800, 2800}, kFabric)[2], Standing::kNormal);
  EXPECT_EQ(Standings({3200, 3200, 6400}, kFabric)[2], Standing::kNormal);
  EXPECT_EQ(Standings({8, 8, 8, 7}, RuleOf(Figure::kDevices))[3], Standing::kSlow);
}

TEST(ScoreFigure, TakesNothingAtAllForBadWhereOthersHaveSome) {
  EXPECT_EQ(Standings({5, 5, 5, 0}, kSpeed)[3], Standing::kBad);
  EXPECT_EQ(Standings({0, 0, 0, 0}, kSpeed)[3], Standing::kNormal);
  EXPECT_EQ(Standings({400, 400, 400, 0}, kFabric)[3], Standing::kBad);
}

TEST(ScoreFigure, TellsAClockThatIsOffToEitherSideAndNoMore) {
  const FigureRule& clock = RuleOf(Figure::kClock);
  const double now = 1.79e9;
  const auto standings = Standings({now, now + 0.5, now + 3, now - 9000, now + 0.1}, clock);
  EXPECT_EQ(standings[1], Standing::kNormal);
  EXPECT_EQ(standings[2], Standing::kSlow);
  EXPECT_EQ(standings[3], Standing::kSlow);
}

TEST(DescribeScore, SaysWhatTheOthersHad) {
  EXPECT_EQ(DescribeScore({3, 3.3, 9.3, 3.1}, kTime, 2),
            "processor 9.3 ms, 2.91 times worse where others have 3 to 3.3 ms");
  EXPECT_EQ(DescribeScore({400, 400, 200}, kFabric, 2),
            "fabric 200 Gbit/s, 2 times worse where others have 400 Gbit/s");
  EXPECT_EQ(DescribeScore({100, 100, 90}, RuleOf(Figure::kClock), 2),
            "clock 10 s behind of the others");
  EXPECT_EQ(DescribeScore({0, 0, 86400}, RuleOf(Figure::kClock), 2),
            "clock 24 h ahead of the others");
  EXPECT_EQ(DescribeScore({0, 0, 600}, RuleOf(Figure::kClock), 2),
            "clock 10 min ahead of the others");
}

}  // namespace
}  // namespace hlaunch
