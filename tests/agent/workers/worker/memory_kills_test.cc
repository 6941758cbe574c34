// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/memory_kills.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

// A directory that stands for "/".
class MemoryKillsTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }
  void Write(const std::string& path, const std::string& content) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << content;
  }
  const std::string root_ = testing::TempDir() + "memory_kills_test." + std::to_string(::getpid());
};

TEST_F(MemoryKillsTest, ReadsVersion2) {
  Write("/proc/vmstat", "nr_free_pages 7\noom_kill 3\n");
  Write("/proc/self/cgroup", "0::/job/step\n");
  Write("/sys/fs/cgroup/job/step/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\n");
  Write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  Write("/sys/fs/cgroup/job/memory.max", "2147483648\n");
  const MemoryKills kills = ReadMemoryKills(root_);
  EXPECT_EQ(kills.host, 3u);
  EXPECT_EQ(kills.cgroup, 1u);
  EXPECT_EQ(kills.limit_bytes, uint64_t{2} << 30);
}

TEST_F(MemoryKillsTest, CountsWithoutLimits) {
  Write("/proc/vmstat", "oom_kill 3\n");
  Write("/proc/self/cgroup", "0::/job/step\n");
  Write("/sys/fs/cgroup/job/memory.events", "oom_kill 1\n");
  Write("/sys/fs/cgroup/job/memory.max", "2147483648\n");
  const MemoryKills kills = CountMemoryKills(root_);
  EXPECT_EQ(kills.host, 3u);
  EXPECT_EQ(kills.cgroup, 1u);
  EXPECT_FALSE(kills.limit_bytes.has_value());
}

TEST_F(MemoryKillsTest, ReadsVersion1) {
  Write("/proc/self/cgroup", "4:memory,cpu:/job\n0::/\n");
  Write("/sys/fs/cgroup/memory/job/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  Write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const MemoryKills kills = ReadMemoryKills(root_);
  EXPECT_EQ(kills.cgroup, 5u);
  EXPECT_EQ(kills.limit_bytes, uint64_t{1} << 30);
  EXPECT_FALSE(kills.host.has_value());
}

TEST_F(MemoryKillsTest, ReadsAContainersOwnRoot) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.events", "oom_kill 4\n");
  Write("/sys/fs/cgroup/memory.max", "1048576\n");
  const MemoryKills kills = ReadMemoryKills(root_);
  EXPECT_EQ(kills.cgroup, 4u);
  EXPECT_EQ(kills.limit_bytes, uint64_t{1} << 20);
}

TEST_F(MemoryKillsTest, KnowsNothingWhereTheKernelTellsNothing) {
  Write("/proc/self/cgroup", "nonsense\n1:name=systemd:/x\n");
  const MemoryKills kills = ReadMemoryKills(root_);
  EXPECT_FALSE(kills.host || kills.cgroup || kills.limit_bytes);
}

TEST(ExplainKill, GoesByWhatWasCounted) {
  const uint64_t two_gib = uint64_t{2} << 30;
  const struct {
    MemoryKills before, after;
    bool out_of_memory;
    std::string evidence;
  } table[] = {
      {{1, 1, two_gib},
       {2, 2, two_gib},
       true,
       "the kernel killed it for lack of memory (the cgroup's limit is 2.0 GiB)"},
      {{1, {}, {}}, {2, {}, {}}, true, "the kernel killed it for lack of memory (in its cgroup)"},
      {{1, 1, {}},
       {1, 2, {}},
       true,
       "the kernel has killed for lack of memory on this host meanwhile"},
      {{1, 1, {}},
       {1, 1, {}},
       false,
       "sent from outside, neither by hlaunch nor by the kernel for lack of memory"},
      {{}, {}, false, "sent from outside, not by hlaunch"},
  };
  for (const auto& row : table) {
    const KillVerdict verdict = ExplainKill(row.before, row.after);
    EXPECT_EQ(verdict.out_of_memory, row.out_of_memory) << row.evidence;
    EXPECT_EQ(verdict.evidence, row.evidence);
  }
}

}  // namespace
}  // namespace hlaunch
