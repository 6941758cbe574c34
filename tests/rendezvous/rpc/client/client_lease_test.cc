// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/client_lease.h"

#include <chrono>

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr Instant kBegun = Instant(std::chrono::hours(1));

Lease Of(int lease, int loss_limit) {
  Lease value;
  value.lease = seconds(lease);
  value.loss_limit = seconds(loss_limit);
  return value;
}

TEST(ClientLease, It_allows_nothing_in_particular_before_it_begins) {
  ClientLease lease(kBegun);
  EXPECT_FALSE(lease.AllowanceNow());
  lease.Renew(Of(4, 20));
  lease.Begin();
  ASSERT_TRUE(lease.AllowanceNow());
  EXPECT_EQ(lease.GiveUpAt(), GiveUpAt(Of(4, 20), kBegun, {}));
}

TEST(ClientLease, It_counts_from_the_latest_message_that_was_answered) {
  ClientLease lease(Of(4, 20), kBegun, {});
  lease.Heard(kBegun + seconds(3));
  lease.Heard(kBegun + seconds(1));
  EXPECT_EQ(lease.GiveUpAt(), GiveUpAt(Of(4, 20), kBegun + seconds(3), {}));
}

TEST(ClientLease, A_sign_taken_elsewhere_counts_for_the_loss_limit_only) {
  ClientLease lease(Of(4, 20), kBegun, {});
  lease.TakenElsewhere(kBegun + seconds(20));
  EXPECT_EQ(lease.GiveUpAt(), GiveUpAt(Of(4, 20), kBegun + seconds(20), {}));
  lease.TakenElsewhere(kBegun + seconds(21));
  EXPECT_EQ(lease.GiveUpAt(), GiveUpAt(Of(4, 20), kBegun + seconds(20), {}));
}

TEST(ClientLease, A_pause_of_half_a_lease_is_forgiven) {
  ClientLease lease(Of(4, 20), kBegun, {});
  EXPECT_FALSE(lease.WokeUp(kBegun + seconds(18), kBegun + seconds(19)));
  EXPECT_EQ(lease.GiveUpAt(), GiveUpAt(Of(4, 20), kBegun, {}));
  EXPECT_TRUE(lease.WokeUp(kBegun + seconds(18), kBegun + seconds(40)));
  EXPECT_GT(lease.GiveUpAt(), kBegun + seconds(40));
  EXPECT_EQ(lease.AllowanceNow()->as_of, kBegun + seconds(40));
}

}  // namespace
}  // namespace hlaunch
