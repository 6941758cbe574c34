// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

TEST(DecideCeiling, CountsAgentsAndTheirWorkersAtTheStore) {
  const struct {
    const char* what;
    DescriptorNeed need;
    uint64_t limit;
    int64_t nodes;
    uint64_t needed;
  } rows[] = {
      {"one worker a node", {1000, 0, 1, true}, 3068, 1000, 3068},
      {"one short", {1000, 0, 1, true}, 3067, 999, 3068},
      {"eight workers a node", {1000, 0, 8, true}, 1024, 92, 10096},
      {"the store is elsewhere", {1000, 0, 8, false}, 1024, 928, 1096},
      {"spares run no workers", {1000, 100, 8, true}, 1024, 82, 10196},
      {"too few for itself", {2, 0, 8, true}, 20, 0, 116},
      {"no limit", {2, 0, 8, true}, RLIM_INFINITY, (RLIM_INFINITY - 96) / 10, 116},
  };
  for (const auto& row : rows) {
    const Ceiling ceiling = DecideCeiling(row.need, row.limit);
    EXPECT_EQ(ceiling.nodes, row.nodes) << row.what;
    EXPECT_EQ(ceiling.needed, row.needed) << row.what;
  }
}

TEST(DecideCeiling, SaysWhereTheyGo) {
  EXPECT_EQ(DecideCeiling({1000, 0, 8, true}, 256).reason,
            "of 256 descriptors this node takes 96 and each node 10: its agent's connection, and "
            "its own and its workers' to the store");
  EXPECT_EQ(DecideCeiling({2, 0, 1, false}, RLIM_INFINITY).reason,
            "of unlimited descriptors this node takes 68 and each node 1: its agent's connection");
}

TEST(RaiseDescriptorLimit, RaisesToTheHardLimitAndTellsTheOldOne) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseDescriptorLimit(), 100u);
  EXPECT_EQ(DescriptorLimit(), before.rlim_max);
  EXPECT_EQ(RaiseDescriptorLimit(), std::nullopt);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(CheckDescriptors, SaysHowManyThereAreAndHowToGetMore) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd lowest(::dup(STDIN_FILENO));
  const auto taken = static_cast<rlim_t>(lowest.get());  // All below are.
  const rlimit low = {taken + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Status enough = CheckDescriptors(5);
  const absl::Status short_of = CheckDescriptors(20);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(enough.ok()) << enough;
  EXPECT_TRUE(absl::IsResourceExhausted(short_of)) << short_of;
  EXPECT_THAT(std::string(short_of.message()),
              HasSubstr("needs 20 more descriptors to begin and can have "));
  EXPECT_THAT(std::string(short_of.message()), HasSubstr("; raise the limit (ulimit -n"));
}

// The size of this process's descriptor table.
uint64_t TableSize() {
  std::ifstream status("/proc/self/status");
  std::string word;
  uint64_t size = 0;
  while (status >> word && word != "FDSize:") {
  }
  status >> size;
  return size;
}

TEST(ReserveDescriptors, MakesRoomInTheTableAndKeepsNoneOpen) {
  ASSERT_LT(TableSize(), 2000u);
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  ReserveDescriptors(2000);
  EXPECT_GE(TableSize(), 2000u);
  EXPECT_EQ(::dup(STDIN_FILENO), next);
  ::close(next);
}

}  // namespace
}  // namespace hlaunch
