// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/good_moment.h"

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr Instant kStart = Instant{} + std::chrono::hours(1);

TEST(GoodMoment, IsTheNextOneThatIsToldAfterItWasWanted) {
  GoodMoment moment;
  moment.Take(1);
  EXPECT_FALSE(moment.Due(kStart));
  EXPECT_TRUE(moment.Want(seconds(60), kStart));
  EXPECT_FALSE(moment.Due(kStart + seconds(59)));
  moment.Take(1);  // The same number again.
  EXPECT_FALSE(moment.Due(kStart + seconds(59)));
  moment.Take(7);
  EXPECT_TRUE(moment.Due(kStart));
}

TEST(GoodMoment, ComesAfterTheLimitAtTheLatest) {
  GoodMoment moment;
  moment.Take(1);
  moment.Want(seconds(60), kStart);
  EXPECT_EQ(moment.ends(), kStart + seconds(60));
  EXPECT_TRUE(moment.Due(kStart + seconds(60)));
  EXPECT_FALSE(moment.Want(seconds(90), kStart));
  EXPECT_EQ(moment.ends(), kStart + seconds(60));
  EXPECT_FALSE(moment.Want(seconds(10), kStart));
  EXPECT_EQ(moment.ends(), kStart + seconds(10));
}

TEST(GoodMoment, IsAtOnceForAScriptThatNamesNone) {
  GoodMoment moment;
  moment.Want(seconds(60), kStart);
  EXPECT_TRUE(moment.Due(kStart));
}

TEST(GoodMoment, IsForgottenAndWantedAnew) {
  GoodMoment moment;
  moment.Take(1);
  moment.Want(seconds(60), kStart);
  EXPECT_TRUE(moment.Forget());
  EXPECT_FALSE(moment.Forget());
  moment.Take(2);  // The worker said it before it knew that the question was over.
  EXPECT_FALSE(moment.Due(kStart + seconds(90)));
  moment.Want(seconds(60), kStart + seconds(90));
  EXPECT_FALSE(moment.Due(kStart + seconds(90)));
  moment.Begin();
  EXPECT_FALSE(moment.wanted());
}

}  // namespace
}  // namespace hlaunch
