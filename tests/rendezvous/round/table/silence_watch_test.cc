// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/silence_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/round/table/table_job.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Lines(const Directive& directive) {
  std::vector<std::string> lines;
  for (const News& news : directive.news) lines.push_back(news.text);
  return lines;
}

constexpr char kSilent[] = "node2 has not been heard of for 5 s; it is given up after 40 s";

TEST(SilenceWatch, ASilentNodeIsNamedAfterTheLeaseOnEveryNodeAndWhenItComesBack) {
  TableJob job(3, 3);
  job.Run(3);
  job.table.TakeChanged();
  job.Pass(seconds(4), {0, 1});
  EXPECT_THAT(Lines(job.Told(0)), IsEmpty());
  job.Pass(seconds(2), {0, 1});
  EXPECT_THAT(job.table.TakeChanged(), testing::SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(job.Told(i).kind, Directive::Kind::kRun);
    EXPECT_THAT(Lines(job.Told(i)), ElementsAre(kSilent));
  }
  job.Pass(seconds(4), {0, 1});  // The line comes only once.
  EXPECT_THAT(Lines(job.Told(0)), ElementsAre(kSilent));
  job.Pass(seconds(2), {0, 1, 2});
  EXPECT_THAT(Lines(job.Told(0)), ElementsAre(kSilent, "node2 is heard of again after 11 s"));
}

TEST(SilenceWatch, NodesThatFallSilentTogetherShareALine) {
  TableJob job(4, 4);
  job.Run(4);
  job.Pass(seconds(6), {0});
  EXPECT_THAT(Lines(job.Told(0)),
              ElementsAre("node1, node2, node3 have not been heard of for 5 s; they are given up "
                          "after 40 s"));
}

TEST(SilenceWatch, OneThatCameInThePlaceOfASilentNodeIsNamedAnew) {
  TableJob job(3, 3, 1);
  job.Run(3);
  job.Pass(seconds(6), {0, 1});
  ASSERT_THAT(Lines(job.Told(0)), ElementsAre(kSilent));
  ASSERT_TRUE(job.table.NodeDied("id2", 3, "its agent was killed", job.now).ok());
  NodeInfo again = job.Info(2);
  again.incarnation = 9;
  ASSERT_TRUE(job.Join(again).ok());
  job.Pass(seconds(6), {0, 1});
  EXPECT_EQ(testing::Value(Lines(job.Told(0)), testing::Contains(kSilent).Times(2)), true);
}

// Whoever is heard often must not keep the table from its own clock.
TEST(SilenceWatch, ASilentNodeIsNamedWhileOthersAreHeardManyTimesASecond) {
  TableJob job(3, 3);
  job.Run(3);
  const auto pass = [&](Duration duration, const std::vector<int>& beating) {
    for (const Instant end = job.now + duration; job.now < end;) {
      job.now += std::chrono::milliseconds(400);
      for (int i : beating) job.Beat(i);
      if (*job.table.NextDeadline() <= job.now) job.table.Tick(job.now);
    }
  };
  pass(seconds(7), {0, 1});
  EXPECT_THAT(Lines(job.Told(0)), ElementsAre(kSilent));
  pass(seconds(2), {0, 1, 2});
  EXPECT_THAT(Lines(job.Told(0)), testing::SizeIs(2));
}

TEST(SilenceWatch, NothingIsSaidOnceTheJobIsOver) {
  TableJob job(2, 2);
  job.Run(2);
  Outcome over;
  over.exit_code = 3;
  job.table.End(over, job.now);
  job.Pass(seconds(8), {0});
  EXPECT_THAT(Lines(job.Told(0)), IsEmpty());
}

}  // namespace
}  // namespace hlaunch
