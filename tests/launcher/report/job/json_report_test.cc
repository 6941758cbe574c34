// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/json_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using Json = nlohmann::json;

WorkerFailure TimedFailure(Rank rank, int exit_code, int signal = 0) {
  WorkerFailure failure;
  failure.rank = rank;
  failure.local_rank = 1;
  failure.node_rank = 2;
  failure.host = "node2";
  failure.pid = 77;
  failure.exit_code = exit_code;
  failure.signal = signal;
  failure.wall_ms = 1'700'000'000'123;
  return failure;
}

TEST(JsonReport, TellsOfSuccess) {
  const Json report =
      Json::parse(JsonReport({"17", "node0", 3, 0, 1'700'000'000'000, {}, {}, {}, {2, 3}}, {}));
  EXPECT_EQ(report["ranks"], Json::parse("[2, 3]"));
  EXPECT_EQ(report["outcome"], "succeeded");
  EXPECT_EQ(report["job_id"], "17");
  EXPECT_EQ(report["exit_code"], 0);
  EXPECT_EQ(report["first_cause"], nullptr);
  EXPECT_EQ(report["consequences"], Json::array());
  EXPECT_EQ(report["max_restarts"], 3);
  EXPECT_EQ(report["written_at"], "2023-11-14T22:13:20.000Z");
}

TEST(JsonReport, TellsOfTheFirstCauseAndWhatFollowed) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.reason = "worker rank 5 failed";
  outcome.worker_failed = true;
  outcome.cause_reason = "rank 5 on node2 was heard of first";
  outcome.failures = {TimedFailure(5, 1), TimedFailure(6, 0, SIGABRT)};
  outcome.failures[0].traceback = "Traceback (most recent call last):\n  File \"t\"\nKeyError: 1";
  outcome.failures[0].log_tail = "bytes \xff\n";
  outcome.failures[0].log_file = "/logs/5/stderr.log";
  outcome.total_failures = 2;
  outcome.awaited = {{3, 0, "node1"}};
  outcome.history = {{1, "rank 2 failed", TimedFailure(2, 9)}, {2, "node1 was lost", {}}};
  outcome.restart_count = 2;
  const Json report = Json::parse(JsonReport({"17", "node0", 2, 0, 0}, outcome));
  EXPECT_EQ(report["outcome"], "failed");
  const Json& first = report["first_cause"];
  EXPECT_EQ(first["rank"], 5);
  EXPECT_EQ(first["host"], "node2");
  EXPECT_EQ(first["node_rank"], 2);
  EXPECT_EQ(first["local_rank"], 1);
  EXPECT_EQ(first["pid"], 77);
  EXPECT_EQ(first["exit_code"], 1);
  EXPECT_EQ(first["signal"], nullptr);
  EXPECT_EQ(first["time"], "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(first["exception"], "KeyError: 1");
  EXPECT_EQ(first["log_tail"], "bytes \xEF\xBF\xBD\n");
  EXPECT_EQ(first["log_file"], "/logs/5/stderr.log");
  EXPECT_TRUE(first["spawned"].is_null());
  ASSERT_EQ(report["consequences"].size(), 1u);
  EXPECT_EQ(report["consequences"][0]["signal"], "SIGABRT");
  EXPECT_EQ(report["consequences"][0]["exit_code"], nullptr);
  EXPECT_EQ(report["did_not_fail"][0]["rank"], 3);
  EXPECT_EQ(report["history"][0]["first_cause"]["exit_code"], 9);
  EXPECT_EQ(report["history"][1]["reason"], "node1 was lost");
  EXPECT_EQ(report["history"][1]["first_cause"], nullptr);
  EXPECT_EQ(report["restarts"], 2);
}

TEST(JsonReport, TellsByWhichCausesTimeWasLost) {
  ReportFacts facts;
  facts.lost = {std::chrono::seconds(2), std::chrono::milliseconds(1500), std::chrono::seconds(3),
                std::chrono::seconds(4)};
  const Json lost = Json::parse(JsonReport(facts, {}))["seconds_lost"];
  EXPECT_EQ(lost["start"], 2);
  EXPECT_EQ(lost["slowest_rank"], 1.5);
  EXPECT_EQ(lost["checkpoints"], 3);
  EXPECT_EQ(lost["restarts"], 4);
}

TEST(JsonReport, TellsWhatElseEndedTheJob) {
  Outcome outcome;
  outcome.exit_code = kExitNodeLost;
  outcome.reason = "node1 was lost";
  outcome.failures = {TimedFailure(5, 1)};
  Json report = Json::parse(JsonReport({}, outcome));
  EXPECT_EQ(report["outcome"], "failed");
  EXPECT_EQ(report["first_cause"], nullptr);
  EXPECT_EQ(report["consequences"].size(), 1u);
  EXPECT_FALSE(report["advice"].get<std::string>().empty());
  outcome.exit_code = kExitSignalBase + SIGINT;
  report = Json::parse(JsonReport({}, outcome));
  EXPECT_EQ(report["outcome"], "stopped");
  outcome.exit_code = kExitNodeStopped;
  report = Json::parse(JsonReport({}, outcome));
  EXPECT_EQ(report["outcome"], "stopped");
}

TEST(WriteReport, ReplacesTheWholeFile) {
  const std::string path = testing::TempDir() + "json_report_test." + std::to_string(::getpid());
  ASSERT_TRUE(WriteReport(path, std::string(1000, 'x')).ok());
  ASSERT_TRUE(WriteReport(path, "short\n").ok());
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_EQ(content.str(), "short\n");
  std::filesystem::remove(path);
}

TEST(WriteReport, LeavesAnotherNodesDraftAlone) {
  const std::filesystem::path folder =
      testing::TempDir() + "json_report_folder." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder / "report.json";
  std::ofstream(path + ".new") << "another's";
  ASSERT_TRUE(WriteReport(path, "mine\n").ok());
  std::ostringstream draft;
  draft << std::ifstream(path + ".new").rdbuf();
  EXPECT_EQ(draft.str(), "another's");
  const std::filesystem::directory_iterator files(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);  // No temporary file is left.
  std::filesystem::remove_all(folder);
}

TEST(WriteLesserReport, LeavesTheWholeReportOfItsJobAlone) {
  const std::string path = testing::TempDir() + "json_report_lesser." + std::to_string(::getpid());
  const auto content = [&path] {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  ASSERT_TRUE(WriteLesserReport(path, "first\n", "17", 0).ok());
  EXPECT_EQ(content(), "first\n");
  ASSERT_TRUE(WriteLesserReport(path, "no JSON was there\n", "17", 0).ok());
  EXPECT_EQ(content(), "no JSON was there\n");
  Outcome outcome;
  outcome.report = true;
  constexpr int64_t kWritten = 1'700'000'000'000;
  const std::string whole = JsonReport({"17", "node0", 3, 0, kWritten}, outcome);
  ASSERT_TRUE(WriteReport(path, whole).ok());
  ASSERT_TRUE(WriteLesserReport(path, "lesser\n", "17", kWritten - 1).ok());
  EXPECT_EQ(content(), whole);
  ASSERT_TRUE(WriteLesserReport(path, "of a later run\n", "17", kWritten + 1).ok());
  EXPECT_EQ(content(), "of a later run\n");
  ASSERT_TRUE(WriteReport(path, whole).ok());
  ASSERT_TRUE(WriteLesserReport(path, "of another job\n", "18", 0).ok());
  EXPECT_EQ(content(), "of another job\n");
  std::filesystem::remove(path);
}

TEST(WriteReport, NamesTheFileThatCannotBeWritten) {
  const absl::Status status = WriteReport("/no-such-folder/report.json", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "cannot write the report to /no-such-folder/report.json: No such file or directory");
}

}  // namespace
}  // namespace hlaunch
