// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/round_workers.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(DescribeLeftovers, NamesFiveAndCountsAll) {
  EXPECT_EQ(DescribeLeftovers({"sleep[7]"}),
            "the workers exited and left 1 process behind: sleep[7]; ending them");
  EXPECT_EQ(DescribeLeftovers({"a[1]", "b[2]", "c[3]", "d[4]", "e[5]", "f[6]"}),
            "the workers exited and left 6 processes behind: a[1], b[2], c[3], d[4], e[5] …; "
            "ending them");
}

}  // namespace
}  // namespace hlaunch
