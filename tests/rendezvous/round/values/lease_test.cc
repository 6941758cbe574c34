// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/lease.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Lease kLease = {seconds(5), seconds(30), seconds(10)};

constexpr Instant kHeard = Instant() + std::chrono::hours(1);

TEST(AllowanceAt, EndsWorkersAfterTheirAgentWouldAndWithinTheMargin) {
  const Allowance allowance = AllowanceAt(kLease, kHeard, {});
  EXPECT_EQ(allowance.starts_until, kHeard + seconds(30));
  EXPECT_EQ(GiveUpAt(kLease, kHeard, {}), kHeard + seconds(30));
  EXPECT_EQ(allowance.workers_until, kHeard + seconds(33));
}

TEST(AllowanceAt, OfAPauseThatIsForgivenStaysWithinTheMargin) {
  for (const int limit : {1, 2, 3, 5, 30, 300}) {
    const Duration lease = std::min<Duration>(seconds(5), seconds(limit) / 3);
    const Lease all = {lease, seconds(limit), lease + seconds(5)};
    const Instant taken = kHeard + all.loss_limit + all.margin;
    for (Duration pause{}; kHeard + pause <= taken - milliseconds(1500);
         pause += milliseconds(100)) {
      const Instant woken = kHeard + pause;
      const Allowance allowance = AllowanceAt(all, kHeard, woken + TimeToAsk(all));
      ASSERT_LT(allowance.workers_until, taken) << limit << " " << pause / milliseconds(1);
      ASSERT_GE(allowance.workers_until, woken + seconds(1)) << limit;  // The time to ask.
    }
  }
}

TEST(ForgivenUntil, GivesTimeToAskAfterAPauseThatBeganWithinTheLossLimit) {
  for (const int began : {0, 10, 29}) {
    const Instant now = kHeard + seconds(began + 60);
    EXPECT_EQ(ForgivenUntil(kLease, kHeard, {}, kHeard + seconds(began), now),
              now + TimeToAsk(kLease));
  }
}

// A node that is cut off stands still until shortly before the loss limit, asks, and stands still
// again until just before its place is given away: its workers would live 11 s beside another
// round.
TEST(ForgivenUntil, ForgivesNoPauseThatBeganLater) {
  const Instant first =
      ForgivenUntil(kLease, kHeard, {}, kHeard + seconds(20), kHeard + seconds(28));
  const Instant woken = kHeard + milliseconds(39600);
  const Instant second = ForgivenUntil(kLease, kHeard, first, kHeard + milliseconds(36500), woken);
  EXPECT_EQ(second, first);
  EXPECT_LT(GiveUpAt(kLease, kHeard, second), woken);
  EXPECT_LT(AllowanceAt(kLease, kHeard, second).workers_until, kHeard + seconds(40));
}

TEST(GiveUpAt, IsALeaseAfterAPauseHoweverLongThatWas) {
  for (int pause = 26; pause < 60; ++pause) {
    const Instant forgiven = kHeard + seconds(pause) + kLease.lease;
    EXPECT_EQ(GiveUpAt(kLease, kHeard, forgiven), std::max(forgiven, kHeard + seconds(30)));
  }
}

TEST(AllowanceAt, AfterTooLongAPauseTheAgentDecides) {
  const Instant woken = kHeard + seconds(60);
  const Allowance allowance = AllowanceAt(kLease, kHeard, woken + kLease.lease);
  EXPECT_EQ(allowance.starts_until, kHeard + seconds(30));  // It may start no workers.
  EXPECT_EQ(allowance.workers_until, woken + seconds(8));
}

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
