// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/heap_trim.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

namespace hlaunch {
namespace {

constexpr size_t kMiB = 1 << 20;

TEST(HeapTrim, ActsOnceAndOnlyWhenMuchHasGoneAndLittleIsLeft) {
  HeapTrim trim;
  EXPECT_FALSE(trim.Note(800 * kMiB));
  EXPECT_FALSE(trim.Note(200 * kMiB));
  EXPECT_TRUE(trim.Note(100 * kMiB));
  EXPECT_FALSE(trim.Note(100 * kMiB));
  EXPECT_TRUE(trim.Note(0));
  EXPECT_FALSE(trim.Note(10 * kMiB));
  EXPECT_FALSE(trim.Note(0));
}

size_t Resident() {
  size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HeapTrim, GivesBackWhatLiesBelowABlockThatIsInUse) {
  const size_t unprobed = ::mallinfo2().uordblks;
  std::vector<std::string> blocks(64 << 10);
  for (std::string& block : blocks) block = std::string(1000, 'x');
  if (::mallinfo2().uordblks < unprobed + 60 * kMiB) GTEST_SKIP() << "another allocator";
  const std::string above(1000, 'x');
  HeapTrim trim;
  trim.Note(64 * kMiB);
  const size_t before = Resident();
  std::vector<std::string>().swap(blocks);
  EXPECT_TRUE(trim.Note(0));
  EXPECT_LT(Resident() + 48 * kMiB, before);
}

}  // namespace
}  // namespace hlaunch
