// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/host_end.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(EndsWithHost, BySomebodysWishAlone) {
  EXPECT_TRUE(EndsWithHost(kExitSignalBase + SIGTERM));
  EXPECT_TRUE(EndsWithHost(kExitTimeout));
  for (const int other : {kExitAgentLost, kExitNoResources, kExitNodeLost, kExitRendezvousLost}) {
    EXPECT_FALSE(EndsWithHost(other)) << other;
  }
}

TEST(IsCutOff, KnowsALongSilenceFromAReplacementThatAnswersAtOnce) {
  const Instant heard = Instant{} + seconds(100);
  const Lease lease;
  const Allowance allowance = AllowanceAt(lease, heard, {});
  const absl::Status another = absl::OutOfRangeError("comes from round 1");
  EXPECT_FALSE(IsCutOff(another, allowance, heard + seconds(2)));
  EXPECT_TRUE(IsCutOff(another, allowance, heard + lease.loss_limit));
  EXPECT_TRUE(IsCutOff(absl::DeadlineExceededError("nothing heard"), allowance, heard));
  EXPECT_FALSE(IsCutOff(absl::AbortedError("given up"), allowance, heard + lease.loss_limit));
}

TEST(NoneLivesFrom, IsLaterThanAnyOtherNodesFence) {
  const Lease lease{seconds(1), seconds(3), seconds(6)};
  const Instant lost = Instant{} + seconds(100);
  // This node was heard half a lease before the loss. The leader believes in its lease until nine
  // tenths after it, and is forgiven as much as possible.
  const Allowance own = AllowanceAt(lease, lost - milliseconds(500), {});
  const Instant led = lost + milliseconds(900);
  const Allowance leader = AllowanceAt(lease, led, led + lease.loss_limit + lease.margin / 2);
  EXPECT_GT(NoneLivesFrom(lease, own), leader.workers_until);
  EXPECT_LT(NoneLivesFrom(lease, own), leader.workers_until + lease.lease);
}

TEST(NoneLivesFrom, HoldsNobodyWhoNeverMetARendezvous) {
  EXPECT_EQ(NoneLivesFrom(Lease(), Allowance()), Instant::min());
}

}  // namespace
}  // namespace hlaunch
