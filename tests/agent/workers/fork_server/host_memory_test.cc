// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(ReadMemory, KnowsThisHosts) {
  const HostMemory memory = ReadMemory();
  ASSERT_TRUE(memory.whole && memory.available);
  EXPECT_GT(*memory.available, 0);
  EXPECT_GE(*memory.whole, *memory.available);
}

TEST(ReadMemory, KnowsNothingWhereTheKernelTellsNothing) {
  EXPECT_FALSE(ReadMemory("/no/such/folder").whole);
}

TEST(WhyNoSpares, LetsForksWaitWhereMemoryIsFree) {
  EXPECT_EQ(WhyNoSpares(8, {64 * kGibibyte, 8 * kGibibyte}), "");
}

TEST(WhyNoSpares, LetsNoneWaitWhereMemoryIsShort) {
  EXPECT_THAT(WhyNoSpares(8, {64 * kGibibyte, 3 * kGibibyte}), HasSubstr("only 3072 MiB are free"));
}

TEST(WhyNoSpares, CountsWhatTheForksWouldTake) {
  EXPECT_NE(WhyNoSpares(64, {64 * kGibibyte, 5 * kGibibyte}), "");
  EXPECT_EQ(WhyNoSpares(32, {64 * kGibibyte, 5 * kGibibyte}), "");
}

TEST(WhyNoSpares, LetsThemWaitWhereTheKernelTellsNothing) { EXPECT_EQ(WhyNoSpares(8, {}), ""); }

}  // namespace
}  // namespace hlaunch
