// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/group_parts.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

TEST(GroupParts, AllNodesGetOneNumberAndAllData) {
  const std::string with_zero("b\0c", 3);
  const auto answer =
      JoinGroupParts(absl::StrCat(GroupPart(7, "a"), GroupPart(0, with_zero), GroupPart(0, "")));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->number, 7u);
  EXPECT_EQ(answer->data, absl::StrCat("a", with_zero));
}

TEST(GroupParts, WhatIsDamagedIsRefused) {
  const std::string good = GroupPart(7, "data");
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_FALSE(JoinGroupParts(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(JoinGroupParts("").ok());
  EXPECT_FALSE(JoinGroupParts(GroupPart(0, "data")).ok());
  EXPECT_FALSE(JoinGroupParts(absl::StrCat(good, "x")).ok());
  EXPECT_FALSE(JoinGroupParts("00000000000000070000000000000zzzdata").ok());
  EXPECT_FALSE(JoinGroupParts("0000000000000007ffffffffffffffffdata").ok());
  EXPECT_FALSE(JoinGroupParts("00000001000000000000000000000000").ok());
}

TEST(GroupNumber, NoTwoGroupsHaveOne) {
  std::set<uint32_t> numbers;
  for (uint64_t count = 0; count < 100; ++count) {
    for (int node = 0; node < 3; ++node) numbers.insert(GroupNumber(count, node, 3));
  }
  EXPECT_EQ(numbers.size(), 300u);
  EXPECT_EQ(*numbers.rbegin(), std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(GroupNumber(uint64_t{1} << 40, 0, 3), 0u);
}

}  // namespace
}  // namespace hlaunch
