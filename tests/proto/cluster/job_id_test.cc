// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/job_id.h"

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

TEST(ClusterJobNumber, IsThatOfAClustersJobAlone) {
  EXPECT_EQ(ClusterJobId(7), "hlaunch-7");
  EXPECT_EQ(ClusterJobNumber(ClusterJobId(7)), 7u);
  EXPECT_EQ(ClusterJobNumber("hlaunch-18446744073709551615"), UINT64_MAX);
  for (const char* other :
       {"", "7", "hlaunch-", "hlaunch-0", "hlaunch-07", "hlaunch--7", "hlaunch- 7",
        "hlaunch-7.scope", "hlaunch-18446744073709551616", "train-7"}) {
    EXPECT_FALSE(ClusterJobNumber(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace hlaunch
