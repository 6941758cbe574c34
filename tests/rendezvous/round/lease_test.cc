// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/lease.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Lease kLease = {seconds(5), seconds(30), seconds(10)};

TEST(LeaseForNodes, LeavesASmallJobItsLease) {
  for (int nodes : {1, 64, 1000}) {
    const Lease lease = LeaseForNodes(kLease, nodes);
    EXPECT_EQ(lease.lease, kLease.lease);
    EXPECT_EQ(lease.margin, kLease.margin);
    EXPECT_EQ(lease.loss_limit, kLease.loss_limit);
  }
}

TEST(LeaseForNodes, KeepsALargeJobBelowFiveHundredSignsASecond) {
  EXPECT_EQ(LeaseForNodes(kLease, 2000).lease, seconds(10));
  EXPECT_EQ(LeaseForNodes(kLease, 3000).lease, seconds(15));
}

TEST(LeaseForNodes, LeavesThreeSignsWithinTheLossLimit) {
  EXPECT_EQ(LeaseForNodes(kLease, 4000).lease, seconds(20));
  EXPECT_EQ(LeaseForNodes(kLease, 1 << 20).lease, seconds(20));
  EXPECT_EQ(LeaseForNodes(kLease, 1 << 20).loss_limit, seconds(30));
}

TEST(LeaseForNodes, TheMarginGrowsByWhatAPausedAgentIsForgiven) {
  EXPECT_EQ(LeaseForNodes(kLease, 4000).margin, seconds(25));
}

TEST(LeaseForNodes, NeverShortensALease) {
  const Lease impatient = {milliseconds(900), seconds(1), milliseconds(200)};
  EXPECT_EQ(LeaseForNodes(impatient, 4000).lease, milliseconds(900));
}

TEST(LeaseForNodes, OfItsOwnResultIsTheSame) {
  const Lease once = LeaseForNodes(kLease, 3000);
  const Lease twice = LeaseForNodes(once, 3000);
  EXPECT_EQ(twice.lease, once.lease);
  EXPECT_EQ(twice.margin, once.margin);
}

}  // namespace
}  // namespace hlaunch
