// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/node_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// A small tree of files to stand for /sys and /proc.
class NodeFactsTest : public ::testing::Test {
 protected:
  ~NodeFactsTest() override { std::filesystem::remove_all(root_); }
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void PutSiblings(int cpu, const std::string& siblings) {
    Put(absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"),
        siblings);
  }
  const std::string root_ = absl::StrCat(::testing::TempDir(), "/node_facts", ::getpid());
};

TEST_F(NodeFactsTest, CountsHyperThreadsOnce) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    PutSiblings(cpu, absl::StrCat(cpu, ",", cpu + 4));
    PutSiblings(cpu + 4, absl::StrCat(cpu, ",", cpu + 4));
  }
  EXPECT_EQ(PhysicalCores({0, 1, 2, 3, 4, 5, 6, 7}, root_), 4);
  EXPECT_EQ(PhysicalCores({0, 4}, root_), 1);
  EXPECT_EQ(PhysicalCores({1, 2}, root_), 2);
}

TEST_F(NodeFactsTest, CountsCpusOfUnknownTopology) {
  EXPECT_EQ(PhysicalCores({0, 1, 2}, root_), 3);
}

TEST_F(NodeFactsTest, TakesTheLeastQuotaAbove) {
  Put("/proc/self/cgroup", "0::/job/step");
  EXPECT_EQ(CpuQuota(root_), 0);
  Put("/sys/fs/cgroup/job/step/cpu.max", "max 100000");
  EXPECT_EQ(CpuQuota(root_), 0);
  Put("/sys/fs/cgroup/job/cpu.max", "350000 100000");
  EXPECT_EQ(CpuQuota(root_), 3);
  Put("/sys/fs/cgroup/job/step/cpu.max", "50000 100000");
  EXPECT_EQ(CpuQuota(root_), 1);
}

TEST_F(NodeFactsTest, ReadsTheQuotaOfVersionOne) {
  Put("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n1:cpuset:/x");
  Put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  Put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CpuQuota(root_), 0);
  Put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000");
  EXPECT_EQ(CpuQuota(root_), 4);
}

TEST(UsableCores, IsAtLeastOne) { EXPECT_GE(UsableCores(), 1); }

TEST(InterfaceTowards, FindsTheLoopback) {
  EXPECT_EQ(InterfaceTowards("127.0.0.1"), "lo");
  EXPECT_EQ(InterfaceTowards("no address"), "");
}

}  // namespace
}  // namespace hlaunch
