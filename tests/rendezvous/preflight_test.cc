// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/preflight.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = PreflightVerdict::Kind;

const PreflightReport kFit0 = {"node0", true, ""}, kFit1 = {"node1", true, ""},
                      kFit2 = {"node2", true, ""}, kBad1 = {"node1", true, "no route"},
                      kBad2 = {"node2", true, "no route"}, kSilent1 = {"node1", false, ""};

TEST(Preflight, PassesIfAllAreFit) {
  const PreflightVerdict verdict = DecidePreflight({kFit0, kFit1, kFit2}, 0, 3);
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_THAT(verdict.excluded, IsEmpty());
}

TEST(Preflight, ExcludesTheUnfitIfEnoughAreLeft) {
  const PreflightVerdict fewer = DecidePreflight({kFit0, kBad1, kFit2}, 0, 2);
  EXPECT_EQ(fewer.kind, Kind::kExclude);
  EXPECT_THAT(fewer.excluded, ElementsAre(1));
  EXPECT_EQ(fewer.reason, "node1: no route");
  EXPECT_EQ(DecidePreflight({kFit0, kBad1, kFit2}, 1, 3).kind, Kind::kExclude);
}

TEST(Preflight, FailsIfTooFewAreLeft) {
  EXPECT_EQ(DecidePreflight({kFit0, kBad1}, 0, 2).kind, Kind::kFail);
  EXPECT_EQ(DecidePreflight({kFit0, kBad1, kFit2}, 0, 3).kind, Kind::kFail);
}

TEST(Preflight, BlamesTheMasterIfNobodyReachesIt) {
  const PreflightVerdict verdict = DecidePreflight({kFit0, kBad1, kBad2}, 0, 2);
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_THAT(verdict.excluded, ElementsAre(0));
  EXPECT_EQ(verdict.reason, "none of the 2 other nodes can use node0 as master: no route");
}

TEST(Preflight, NamesWhoDidNotAnswer) {
  const PreflightVerdict verdict = DecidePreflight({kFit0, kSilent1, kBad2}, 0, 1);
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_THAT(verdict.excluded, ElementsAre(1, 2));
  EXPECT_EQ(verdict.reason, "node2: no route; node1 did not answer");
}

}  // namespace
}  // namespace hlaunch
