// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/unit_scope.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cluster/task_start/private_tmp.h"

namespace hlaunch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::vector<std::string> From(const std::vector<std::string>& words, size_t last) {
  return {words.end() - static_cast<int>(last), words.end()};
}

TEST(ScopeCommand, CountsItsProperties) {
  const std::vector<std::string> words = ScopeCommand(7, 42, {});
  EXPECT_THAT(words, Contains("hlaunch-7.scope"));
  EXPECT_THAT(words, Contains("5"));
  EXPECT_THAT(From(words, 2), ElementsAre("Part of hlaunch's job 7", "0"));
}

TEST(ScopeCommand, HasTheLimitsInSystemdsUnits) {
  PartLimits limits;
  limits.memory_max = 1 << 30;
  limits.tasks_max = 4096;
  limits.cpu_quota = 250;
  const std::vector<std::string> words = ScopeCommand(7, 42, limits);
  EXPECT_THAT(words, Contains("8"));
  EXPECT_THAT(words, Not(Contains("5")));
  EXPECT_THAT(From(words, 10), ElementsAre("MemoryMax", "t", "1073741824", "TasksMax", "t", "4096",
                                           "CPUQuotaPerSecUSec", "t", "2500000", "0"));
}

TEST(IsHiddenByPrivateTmp, TakesWholeNames) {
  EXPECT_TRUE(IsHiddenByPrivateTmp("/tmp"));
  EXPECT_TRUE(IsHiddenByPrivateTmp("/tmp/parts"));
  EXPECT_TRUE(IsHiddenByPrivateTmp("/var/tmp/x"));
  EXPECT_FALSE(IsHiddenByPrivateTmp("/tmpfs/parts"));
  EXPECT_FALSE(IsHiddenByPrivateTmp("/var/spool/hlaunch"));
}

}  // namespace
}  // namespace hlaunch
