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

// A small tree of files that stands for /sys and /proc.
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

TEST_F(NodeFactsTest, ReadsOneFileWhereNoCoreHasTwoThreads) {
  PutSiblings(0, "0,1");  // Not looked at.
  PutSiblings(1, "0,1");
  Put("/sys/devices/system/cpu/smt/active", "0");
  EXPECT_EQ(PhysicalCores({0, 1}, root_), 2);
  Put("/sys/devices/system/cpu/smt/active", "1");
  EXPECT_EQ(PhysicalCores({0, 1}, root_), 1);
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

TEST_F(NodeFactsTest, ReadsTheQuotaWhereTheHierarchyIsNamedAfterItsControllers) {
  Put("/proc/self/cgroup", "3:cpuset,cpu,cpuacct:/job");
  Put("/sys/fs/cgroup/cpuset,cpu,cpuacct/job/cpu.cfs_quota_us", "200000");
  Put("/sys/fs/cgroup/cpuset,cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CpuQuota(root_), 2);
}

// A host with 8 cores of two threads each.
class UsableCoresTest : public NodeFactsTest {
 protected:
  UsableCoresTest() {
    for (int cpu = 0; cpu < 16; ++cpu) {
      cpus_.push_back(cpu);
      PutSiblings(cpu, absl::StrCat(cpu % 8, ",", cpu % 8 + 8));
    }
  }
  std::vector<int> cpus_;
};

TEST_F(UsableCoresTest, AreAllOfAHostOfItsOwn) {
  Put("/proc/self/cgroup", "0::/user.slice");
  Put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000");
  EXPECT_EQ(UsableCores(cpus_, root_), 8);
  EXPECT_EQ(UsableCores({}, root_), 1) << "whatever cannot be read";
}

TEST_F(UsableCoresTest, AreThoseOfTheAffinityMask) {
  EXPECT_EQ(UsableCores({0, 1, 2, 3}, root_), 4);
  EXPECT_EQ(UsableCores({0, 8, 1, 9}, root_), 2);
}

// Like `docker run --cpus 2`: the group's own path is the host's in version 1, and "/" in version
// 2.
TEST_F(UsableCoresTest, AreAsFewAsAContainersQuota) {
  Put("/proc/self/cgroup", "0::/");
  Put("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(UsableCores(cpus_, root_), 2);
  EXPECT_EQ(UsableCores({0}, root_), 1) << "the narrower of both";
  Put("/sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(UsableCores(cpus_, root_), 1) << "half a CPU";
}

TEST_F(UsableCoresTest, AreAsFewAsAContainersQuotaOfVersionOne) {
  Put("/proc/self/cgroup", "11:cpuset:/docker/4711\n2:cpu,cpuacct:/docker/4711\n0::/docker/4711");
  Put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000");
  Put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(UsableCores(cpus_, root_), 2);
}

TEST(UsableCores, IsAtLeastOne) { EXPECT_GE(UsableCores(), 1); }

TEST(InterfaceTowards, FindsTheLoopback) {
  EXPECT_EQ(InterfaceTowards("127.0.0.1"), "lo");
  EXPECT_EQ(InterfaceTowards("no address"), "");
}

}  // namespace
}  // namespace hlaunch
