// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/saved_imports.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

constexpr Duration kImport = std::chrono::milliseconds(2500);

TEST(SavedImports, CountsEachServersOwnTimeOnce) {
  SavedImports saved;
  for (int round = 0; round < 2; ++round) {
    saved.CountServer(7, kImport);
    for (int rank = 0; rank < 8; ++rank) saved.CountRank(kImport);
  }
  EXPECT_EQ(saved.saved(), 15 * kImport);
  EXPECT_EQ(saved.Text(), "--preload saved 16 ranks here 38 s of imports");
}

TEST(SavedImports, SaysNothingWhereNothingWasSaved) {
  SavedImports saved;
  saved.CountServer(7, kImport);
  EXPECT_EQ(saved.saved(), Duration::zero());
  saved.CountRank(kImport);
  EXPECT_EQ(saved.Text(), "");
}

TEST(SavedImports, SaysSmallTimesWithOneDigit) {
  SavedImports saved;
  saved.CountServer(7, kImport);
  saved.CountRank(kImport);
  saved.CountRank(kImport);
  EXPECT_EQ(saved.Text(), "--preload saved 2 ranks here 2.5 s of imports");
}

}  // namespace
}  // namespace hlaunch
