// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "launcher/cluster/daemon/head_connection.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {
namespace {

constexpr std::time_t kIssued = 1'800'000'000;

TEST(RenewalTime, IsOneOfItsOwnForEachOfManyHostsThatHaveJoinedTogether) {
  std::set<std::time_t> times;
  for (int i = 0; i < 1000; ++i) {
    const CertifiedHost host = {"node" + std::to_string(i), kIssued, kIssued + kCertificateLife};
    const std::time_t time = RenewalTime(host);
    EXPECT_GE(time, kIssued + kRenewAfter);
    EXPECT_LT(time, kIssued + kRenewAfter + 2 * 86400);
    EXPECT_EQ(time, RenewalTime(host));
    times.insert(time / 600);
  }
  EXPECT_GT(times.size(), 200u);  // Two days have 288 times of ten minutes.
}

TEST(RenewalTime, IsWithinAShortLife) {
  const CertifiedHost host = {"node1", kIssued, kIssued + 9};
  EXPECT_EQ(RenewalTime(host), kIssued + 6);
}

}  // namespace
}  // namespace hlaunch
