// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/start_units.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

TEST(ListenDropIn, IsRemovedWithItsFolderAndLeavesOthersAlone) {
  const std::string units = ::testing::TempDir() + "hl-units";
  const std::filesystem::path folder = units + "/hlaunch-head.service.d";
  std::filesystem::remove_all(units);
  EXPECT_FALSE(RemoveListenDropIn(units).value());
  ASSERT_TRUE(WriteListenDropIn(units, "10.0.0.1:29500").ok());
  std::ifstream file(folder / "listen.conf");
  const std::string written(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(written.find("\nEnvironment=LISTEN=10.0.0.1:29500\n"), written.npos) << written;
  EXPECT_TRUE(RemoveListenDropIn(units).value());
  EXPECT_FALSE(std::filesystem::exists(folder));
  ASSERT_TRUE(WriteListenDropIn(units, "29500").ok());
  std::ofstream(folder / "override.conf") << "[Service]\n";
  EXPECT_TRUE(RemoveListenDropIn(units).value());
  EXPECT_TRUE(std::filesystem::exists(folder / "override.conf"));
  std::filesystem::remove_all(units);
}

}  // namespace
}  // namespace hlaunch
