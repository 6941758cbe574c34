// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/cpu_quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

TEST(CheckCpuQuota, WarnsOfAFewPercentOfACpu) {
  const std::string root = absl::StrCat(::testing::TempDir(), "/cpu_quota", ::getpid());
  std::filesystem::create_directories(root + "/proc/self");
  std::filesystem::create_directories(root + "/sys/fs/cgroup/job");
  std::ofstream(root + "/proc/self/cgroup") << "0::/job\n";
  EXPECT_EQ(CheckCpuQuota(root).state, CheckState::kOk);
  EXPECT_EQ(CpusAllowed(root), 0);
  std::ofstream(root + "/sys/fs/cgroup/job/cpu.max") << "5000 100000\n";
  const CheckResult result = CheckCpuQuota(root);
  EXPECT_EQ(result.state, CheckState::kWarn);
  EXPECT_EQ(result.reason, "its control group allows 5 % of one CPU");
  std::ofstream(root + "/sys/fs/cgroup/job/cpu.max") << "200000 100000\n";
  EXPECT_EQ(CheckCpuQuota(root).state, CheckState::kOk);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace hlaunch
