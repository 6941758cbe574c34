// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/daemon_config.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseDaemonConfig, ReadsAllThatThereIs) {
  const auto config = ParseDaemonConfig(
      "# of this host\n"
      "slots = 8\n"
      "labels = fast, rack=3   # two\n"
      "admin-group=wheel\n"
      "least-uid = 500\r\n"
      "allow-root = yes\n"
      "\n"
      "max-parts = 4\n"
      "private-tmp = yes\n"
      "memory-max = 64G\n"
      "tasks-max = 4096\n"
      "cpu-quota = 250%",
      "f");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->slots, 8);
  EXPECT_THAT(config->labels, ElementsAre("fast", "rack=3"));
  EXPECT_EQ(config->admin_group, "wheel");
  EXPECT_EQ(config->rule.least_uid, 500u);
  EXPECT_TRUE(config->rule.allow_root);
  EXPECT_EQ(config->max_parts, 4);
  EXPECT_TRUE(config->private_tmp);
  EXPECT_EQ(config->limits.memory_max, uint64_t{64} << 30);
  EXPECT_EQ(config->limits.tasks_max, 4096u);
  EXPECT_EQ(config->limits.cpu_quota, 250u);
}

TEST(ParseDaemonConfig, AnEmptyFileSaysNothing) {
  const auto config = ParseDaemonConfig("", "f");
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->slots.has_value());
  EXPECT_EQ(config->rule.least_uid, 1000u);
  EXPECT_FALSE(config->rule.allow_root);
  EXPECT_FALSE(config->private_tmp);
  EXPECT_EQ(config->limits, PartLimits());
}

TEST(ParseDaemonConfig, TakesSizesAsSystemdWritesThem) {
  const std::pair<const char*, uint64_t> rows[] = {
      {"16777216", 16 << 20}, {"32768K", 32 << 20}, {"16M", 16 << 20}, {"2T", uint64_t{2} << 40}};
  for (const auto& [text, bytes] : rows) {
    const auto config = ParseDaemonConfig(absl::StrCat("memory-max = ", text), "f");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->limits.memory_max, bytes) << text;
  }
  const auto none =
      ParseDaemonConfig("memory-max = infinity\ntasks-max = infinity\ncpu-quota = infinity", "f");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->limits, PartLimits());
}

struct Row {
  const char* text;
  const char* says;
};

TEST(ParseDaemonConfig, NamesFileLineAndTheWayOut) {
  const Row rows[] = {
      {"slots = 1\nslots = many", "/etc/x.conf, line 2: slots is said twice"},
      {"\nslots = many", "/etc/x.conf, line 2: slots = many: expected a number of workers"},
      {"slot = 1", "there is no slot; there are slots, labels"},
      {"slots 1", "expected NAME = VALUE"},
      {"least-uid = 0", "expected a user's number from 1 on"},
      {"allow-root = true", "expected yes or no"},
      {"labels = a b$", "expected at most 64 words"},
      {"admin-group = two words", "expected the name of a group"},
      {"max-parts = -1", "expected a number from 1 to"},
      {"private-tmp = 1", "expected yes or no"},
      {"memory-max = 1M", "line 1: memory-max = 1M: expected bytes from 16M on"},
      {"memory-max = 99999999999T", "expected bytes"},
      {"memory-max = 8 GB", "expected bytes"},
      {"memory-max = -8G", "expected bytes"},
      {"memory-max = G", "expected bytes"},
      {"memory-max =", "expected bytes"},
      {"tasks-max = 3", "expected a number of processes and threads"},
      {"cpu-quota = 250", "expected percent of one CPU"},
      {"cpu-quota = 0%", "expected percent of one CPU"}};
  for (const Row& row : rows) {
    const auto config = ParseDaemonConfig(row.text, "/etc/x.conf");
    EXPECT_FALSE(config.ok()) << row.text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(row.says)) << row.text;
  }
}

TEST(ReadDaemonConfig, AMissingFileSaysNothing) {
  const auto config = ReadDaemonConfig("/nonexistent/hlaunchd.conf");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->slots.has_value());
}

TEST(ReadDaemonConfig, SaysThatAFolderIsNoSuchFile) {
  const auto config = ReadDaemonConfig("/tmp");
  EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << config.status();
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("cannot read /tmp: "));
}

}  // namespace
}  // namespace hlaunch
