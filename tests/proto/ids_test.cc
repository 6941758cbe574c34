// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/contract/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace hlaunch {
namespace {

TEST(NewIncarnation, DiffersEachTime) {
  std::set<Incarnation> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(NewIncarnation());
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(seen.count(0), 0u);
}

TEST(NewJobId, IsSixteenHexDigits) {
  EXPECT_EQ(NewJobId().size(), 16u);
  EXPECT_EQ(NewJobId().find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(HostNodeId, IsStableAndDiffersBySlot) {
  EXPECT_EQ(HostNodeId(0), HostNodeId(0));
  EXPECT_NE(HostNodeId(0), HostNodeId(1));
}

}  // namespace
}  // namespace hlaunch
