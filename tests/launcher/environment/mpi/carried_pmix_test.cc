// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/carried_pmix.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace hlaunch {
namespace {

constexpr size_t kBlock = 64;

class CarriedPmixTest : public ::testing::Test {
 protected:
  ~CarriedPmixTest() override { std::filesystem::remove(path_); }

  std::optional<CarriedPmix> FindIn(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return FindCarriedPmix(path_);
  }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("carried_pmix_test." + std::to_string(::getpid()));
};

TEST_F(CarriedPmixTest, IsFoundBehindProgramsOfAnySize) {
  for (size_t size = 0; size < 2 * kBlock + 2; ++size) {
    std::string program(size, 'a');
    CarryPmix("the server", kBlock, program);
    EXPECT_EQ(program.size() % kBlock, 0u);
    EXPECT_LE(program.size(), size + 10 + 32 + kBlock);
    EXPECT_EQ(FindIn(program), (CarriedPmix{size, 10})) << size;
    EXPECT_EQ(program.substr(size, 10), "the server");
  }
}

TEST_F(CarriedPmixTest, IsNotSeenInOtherFiles) {
  EXPECT_EQ(FindCarriedPmix("/nonexistent/file"), std::nullopt);
  EXPECT_EQ(FindIn(""), std::nullopt);
  EXPECT_EQ(FindIn(std::string(1000, 0)), std::nullopt);
  std::string program(100, 'a');
  CarryPmix("", kBlock, program);  // Built without it.
  EXPECT_EQ(FindIn(program), std::nullopt);
}

TEST_F(CarriedPmixTest, IsNotSeenWhereThePlaceIsOutsideOfTheFile) {
  std::string program(100, 'a');
  CarryPmix("the server", kBlock, program);
  EXPECT_EQ(FindIn(program.substr(1)), (CarriedPmix{100, 10}));  // Only the end is looked at.
  for (size_t byte = program.size() - 16; byte < program.size(); ++byte) {
    std::string damaged = program;
    damaged[byte] = '\xff';
    const CarriedPmix found = FindIn(damaged).value_or(CarriedPmix());
    EXPECT_LE(found.offset + found.size, damaged.size() - 32) << byte;
  }
  EXPECT_EQ(FindIn(program.substr(program.size() - 32)), std::nullopt);
}

}  // namespace
}  // namespace hlaunch
