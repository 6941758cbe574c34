// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/event_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

const EventSource kSource = {"job", "node1", 1};
constexpr EventTime kTime = {1763749363007, 5000};

nlohmann::json Read(const NodeEvent& event) {
  const std::string line = EventLine(event, kSource, kTime);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line each";
  return nlohmann::json::parse(line);
}

TEST(EventLine, SaysWhoseAndWhen) {
  EXPECT_EQ(EventLine(NodeJoined{}, kSource, kTime),
            "{\"time\":\"2025-11-21T18:22:43.007Z\",\"monotonic_ms\":5000,\"job_id\":\"job\","
            "\"host\":\"node1\",\"node_rank\":1,\"event\":\"joined\"}\n");
  EXPECT_FALSE(nlohmann::json::parse(EventLine(NodeJoined{}, {"job", "node1", -1}, kTime))
                   .contains("node_rank"));
}

TEST(EventLine, TellsTheRanksOfARound) {
  RoundStarted started;
  started.assignment.round = 3;
  started.assignment.restart_count = 2;
  started.assignment.first_rank = 4;
  started.assignment.world_size = 8;
  started.assignment.num_nodes = 2;
  started.assignment.master_addr = "fd77::10";
  started.assignment.master_port = 29500;
  started.nproc = 4;
  const nlohmann::json line = Read(started);
  EXPECT_EQ(line["event"], "round_started");
  EXPECT_EQ(line["first_rank"], 4);
  EXPECT_EQ(line["last_rank"], 7);
  EXPECT_EQ(line["world_size"], 8);
  EXPECT_EQ(line["restart_count"], 2);
  EXPECT_EQ(line["master_addr"], "fd77::10");
}

TEST(EventLine, TellsASignalFromAnExitCode) {
  const nlohmann::json killed = Read(WorkerEnded{1, 5, 1, 77, 0, 9, false});
  EXPECT_EQ(killed["signal"], 9);
  EXPECT_FALSE(killed.contains("exit_code"));
  const nlohmann::json exited = Read(WorkerEnded{1, 5, 1, 77, 3, 0, true});
  EXPECT_EQ(exited["exit_code"], 3);
  EXPECT_FALSE(exited.contains("signal"));
  EXPECT_EQ(exited["stopped"], true);
}

TEST(EventLine, SaysWhoStalledAndWhy) {
  const nlohmann::json stalled = Read(WorkerStalled{1, 5, 1, 77, "no heartbeat for 62 s"});
  EXPECT_EQ(stalled["event"], "worker_stalled");
  EXPECT_EQ(stalled["rank"], 5);
  EXPECT_EQ(stalled["reason"], "no heartbeat for 62 s");
}

TEST(EventLine, SaysWhatValueALineHad) {
  const nlohmann::json value = Read(LogValue{1, 5, "loss", 0.25});
  EXPECT_EQ(value["event"], "log_value");
  EXPECT_EQ(value["rank"], 5);
  EXPECT_EQ(value["name"], "loss");
  EXPECT_EQ(value["value"], 0.25);
  EXPECT_TRUE(
      Read(LogValue{1, 5, "loss", std::numeric_limits<double>::infinity()})["value"].is_null());
}

TEST(EventLine, SaysWhatBecameWorseAndBetter) {
  const nlohmann::json worse = Read(HealthChanged{1, "node3: network", true, "eth0 is down"});
  EXPECT_EQ(worse["event"], "health_worse");
  EXPECT_EQ(worse["check"], "node3: network");
  EXPECT_EQ(worse["reason"], "eth0 is down");
  EXPECT_EQ(Read(HealthChanged{1, "network", false, ""})["event"], "health_better");
}

TEST(EventLine, SaysWhichRanksAreSlowAndWhatThatCosts) {
  const nlohmann::json slow = Read(SlowRanksFound{1, {2, 3}, 0.25, "ranks 2-3 hold up 6 others"});
  EXPECT_EQ(slow["event"], "slow_ranks");
  EXPECT_EQ(slow["ranks"], nlohmann::json({2, 3}));
  EXPECT_EQ(slow["lost"], 0.25);
  EXPECT_EQ(slow["reason"], "ranks 2-3 hold up 6 others");
  EXPECT_EQ(Read(SlowRanksFound{1, {2, 3}, 0, "over"})["event"], "slow_ranks_over");
  const nlohmann::json lost =
      Read(TimeLost{1, std::chrono::milliseconds(1500), std::chrono::seconds(4)});
  EXPECT_EQ(lost["event"], "time_lost");
  EXPECT_EQ(lost["waiting_seconds"], 1.5);
  EXPECT_EQ(lost["checkpoint_seconds"], 4);
}

TEST(EventLine, StaysOneLineOfJsonWhateverAReasonHolds) {
  EXPECT_EQ(Read(NodeFinished{1, "a\n\"b\"\\"})["reason"], "a\n\"b\"\\");
  EXPECT_EQ(Read(RoundStopped{1, "\xff"})["reason"], "\xef\xbf\xbd");
}

class EventLogTest : public testing::Test {
 protected:
  EventLogTest() {
    std::string folder = testing::TempDir() + "/eventsXXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~EventLogTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(EventLogTest, HasWhatWasWrittenOnceItIsGone) {
  auto log = EventLog::Open(folder_ + "/events.jsonl");
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Write("{\"event\":\"joined\"}\n");
  (*log)->Write("{\"event\":\"finished\"}\n");
  log->reset();
  std::stringstream text;
  text << std::ifstream(folder_ + "/events.jsonl").rdbuf();
  EXPECT_EQ(text.str(), "{\"event\":\"joined\"}\n{\"event\":\"finished\"}\n");
}

TEST_F(EventLogTest, NamesTheFileThatCannotBeMade) {
  const auto log = EventLog::Open(folder_ + "/none/events.jsonl");
  EXPECT_EQ(log.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(log.status().message().find(folder_ + "/none/events.jsonl"), std::string::npos);
}

TEST_F(EventLogTest, AFullDiskHarmsNothing) {
  std::filesystem::create_symlink("/dev/full", folder_ + "/link");
  EXPECT_FALSE(EventLog::Open(folder_ + "/link").ok()) << "links are not followed";
  auto log = EventLog::Open("/dev/full");
  ASSERT_TRUE(log.ok()) << log.status();
  for (int i = 0; i < 1000; ++i) (*log)->Write("{}\n");
}

}  // namespace
}  // namespace hlaunch
