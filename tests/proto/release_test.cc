// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/release.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

bool WorkTogether(const char* theirs, const char* own) {
  return WhyReleaseIsTooFar(theirs, "the rendezvous", own).empty();
}

TEST(WhyReleaseIsTooFar, OneMinorReleaseApartIsNot) {
  EXPECT_TRUE(WorkTogether("0.1.0", "0.1.0"));
  EXPECT_TRUE(WorkTogether("0.2.0", "0.1.0"));
  EXPECT_TRUE(WorkTogether("0.1.0", "0.2.0"));
  EXPECT_TRUE(WorkTogether("0.1.17", "0.2.0")) << "patches differ freely";
  EXPECT_TRUE(WorkTogether("0.10.0", "0.9.3"));
  EXPECT_TRUE(WorkTogether("0.2.0+4e92d20", "0.1.0 (commit 4e92d20, Release)"));
}

TEST(WhyReleaseIsTooFar, MoreIs) {
  EXPECT_FALSE(WorkTogether("0.3.0", "0.1.0"));
  EXPECT_FALSE(WorkTogether("0.1.0", "0.3.0"));
  EXPECT_FALSE(WorkTogether("0.1.9", "0.3.0"));
  EXPECT_FALSE(WorkTogether("1.1.0", "0.1.0")) << "another major release";
  EXPECT_FALSE(WorkTogether("0.10.0", "0.1.0"));
}

TEST(WhyReleaseIsTooFar, NamesBothAndTheWayOut) {
  EXPECT_EQ(WhyReleaseIsTooFar("0.3.0+4e92d20", "the rendezvous", "0.1.0"),
            "has hlaunch 0.3.0, the rendezvous has 0.1.0: they work together if they are at most "
            "one minor release apart; update the older one");
}

TEST(WhyReleaseIsTooFar, ThatSaysNoneIsTakenAsBefore) {
  for (const char* none : {"", "devel", "1", "1.2.3.4", ".1", "99999999999.1", "-1.0", "0..1"}) {
    EXPECT_TRUE(WorkTogether(none, "0.1.0")) << none;
    EXPECT_TRUE(WorkTogether("0.1.0", none)) << none;
  }
}

TEST(kRelease, CanBeRead) { EXPECT_FALSE(WorkTogether(kRelease, "99.0.0")); }

}  // namespace
}  // namespace hlaunch
