// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/shm_remains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "proto/base/clock.h"

namespace hlaunch {
namespace {

TEST(RemoveMpiRemains, TakesWhatNobodyUses) {
  std::string folder = testing::TempDir() + "remains-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const int64_t began = WallMillis();
  for (const char* name :
       {"mpich_shm_1f_0", "mpich_shar_tmpAbC", "Intel_MPI_x", "torch_1", "mpich"}) {
    std::ofstream(folder + "/" + name) << "x";
  }
  {
    const std::ifstream in_use(folder + "/Intel_MPI_x");
    EXPECT_EQ(RemoveMpiRemains(began + 60'000, folder), 0);  // The files are older.
    EXPECT_EQ(RemoveMpiRemains(began, folder), 2);
  }
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    left.insert(entry.path().filename());
  }
  EXPECT_THAT(left, testing::ElementsAre("Intel_MPI_x", "mpich", "torch_1"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hlaunch
