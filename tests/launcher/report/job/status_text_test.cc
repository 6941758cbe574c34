// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/status_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

using testing::HasSubstr;

absl::StatusOr<StatusOptions> ParseStatus(std::vector<const char*> words) {
  words.insert(words.begin(), {"hlaunch", "status"});
  return ParseStatusOptions(static_cast<int>(words.size()), words.data());
}

std::string ErrorOf(const std::vector<const char*>& words) {
  const auto options = ParseStatus(words);
  return options.ok() ? "none" : std::string(options.status().message());
}

JobStatus Llama() {
  JobStatus job;
  job.job_id = "llama";
  job.state = JobState::kRunning;
  job.explanation = "round 3 runs with 2 nodes and 4 workers; not heard of: node7 (silent for 7 s)";
  job.round = 3;
  job.min_nodes = 2;
  job.max_nodes = 4;
  job.restarts = 1;
  job.max_restarts = 3;
  job.total_nodes = 3;
  job.nodes = {{"node7", "10.0.0.7", 4242, 1, 8, "silent for 7 s"},
               {"node0", "10.0.0.1", 77, 0, 8, "running"},
               {"node10", "10.0.0.10", 9, -1, 8, "ready"}};
  job.rounds = {{1, 1000, 2000, 3000, 0, 2, 16, 0, "rank 3 failed"}};
  return job;
}

TEST(ParseStatusOptions, ReadsJobAndEndpointInAnyOrder) {
  const auto options = ParseStatus({"--json", "llama", "--rdzv_endpoint", "node0"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->job_id, "llama");
  EXPECT_EQ(options->endpoint.host, "node0");
  EXPECT_EQ(options->endpoint.port, 29400);
  EXPECT_TRUE(options->json);
  EXPECT_EQ(ParseStatus({"--rdzv-endpoint=[::1]:7"})->endpoint.port, 7);
  EXPECT_THAT(*ParseStatus({"--help"})->text_to_print, HasSubstr("hlaunch ./status"));
}

TEST(ParseStatusOptions, WithoutAnEndpointIsForDetachedJobs) {
  const auto options = ParseStatus({"llama", "--json"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->detached);
  EXPECT_EQ(options->job_id, "llama");
  EXPECT_FALSE(ParseStatus({"llama", "--rdzv-endpoint", "a"})->detached);
}

TEST(ParseStatusOptions, ReadsHowItIsShown) {
  EXPECT_TRUE(ParseStatus({"--watch"})->watch);
  EXPECT_TRUE(ParseStatus({"--watch"})->detached);
  EXPECT_TRUE(ParseStatus({"-w", "llama", "--rdzv-endpoint", "a"})->watch);
  EXPECT_EQ(ParseStatus({"llama", "--html", "f.html"})->html_file, "f.html");
  EXPECT_TRUE(ParseStatus({"llama", "--html", "f.html"})->detached);
  EXPECT_FALSE(ParseStatus({"llama", "--html=f.html", "--rdzv-endpoint", "a"})->detached);
}

TEST(ParseStatusOptions, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf({"a", "--html", "f", "--json"}), HasSubstr("give one"));
  EXPECT_THAT(ErrorOf({"--html", "f"}), HasSubstr("name it"));
  EXPECT_THAT(ErrorOf({"a", "--html="}), HasSubstr("--html= has no value"));
  EXPECT_THAT(ErrorOf({"a", "--tls", "off"}), HasSubstr("add --rdzv-endpoint HOST[:PORT]"));
  EXPECT_THAT(ErrorOf({"a", "b", "--rdzv-endpoint", "n"}), HasSubstr("then comes b"));
  EXPECT_THAT(ErrorOf({"--rdzv-endpoint", "n:x"}), HasSubstr("--rdzv-endpoint 'n:x': a port is"));
  EXPECT_THAT(ErrorOf({"--rdzv-endpoint", "n:0"}), HasSubstr("port 0"));
  EXPECT_THAT(ErrorOf({"--jsn"}), HasSubstr("did you mean --json?"));
}

TEST(JobText, SaysWhyAndShowsWhoIsAwaitedFirst) {
  EXPECT_EQ(JobText(Llama()),
            "job       llama\n"
            "state     running\n"
            "why       round 3 runs with 2 nodes and 4 workers; not heard of: node7 (silent for 7 "
            "s)\n"
            "round     3\n"
            "nodes     3 of 2:4\n"
            "restarts  1 of 3\n"
            "\n"
            "RANK  HOST    ADDRESS    PID   WORKERS  STATE\n"
            "1     node7   10.0.0.7   4242  8        silent for 7 s\n"
            "0     node0   10.0.0.1   77    8        running\n"
            "-     node10  10.0.0.10  9     8        ready\n");
}

TEST(JobText, CountsRestartsThatDoNotCountApart) {
  JobStatus job = Llama();
  job.restarts = 5;
  job.uncounted = 3;
  EXPECT_THAT(JobText(job), HasSubstr("\nrestarts  2 of 3, and 3 that do not count\n"));
  EXPECT_EQ(nlohmann::json::parse(JobJson(job))["uncounted"], 3);
}

TEST(JobText, ForeignTextCannotDriveTheTerminal) {
  JobStatus job = Llama();
  job.explanation = "a\x1b[31mb";
  job.nodes[0].host = "n\x1b]0;x\x07";
  EXPECT_EQ(JobText(job).find('\x1b'), std::string::npos);
  EXPECT_EQ(JobListText({job}, 1).find('\x1b'), std::string::npos);
}

TEST(JobListText, IsALineForEachJob) {
  JobStatus over = Llama();
  over.job_id = "b";
  over.state = JobState::kOver;
  over.exit_code = 7;
  over.explanation = "the job is over";
  EXPECT_EQ(JobListText({over}, 3),
            "JOB  STATE              ROUND  NODES     RESTARTS  WHY\n"
            "b    over, exit code 7  3      3 of 2:4  1 of 3    the job is over\n"
            "and 2 more\n");
  EXPECT_EQ(JobListText({}, 0), "no jobs\n");
  EXPECT_EQ(JobListText({}, 0, "head1:29400"), "head1:29400 leads\nno jobs\n");
}

TEST(JobJson, HoldsAllOfIt) {
  const auto json = nlohmann::json::parse(JobJson(Llama()));
  EXPECT_EQ(json["job_id"], "llama");
  EXPECT_EQ(json["state"], "running");
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_EQ(json["nodes"].size(), 3u);
  EXPECT_EQ(json["nodes"][0]["node_rank"], 1);
  EXPECT_TRUE(json["nodes"][2]["node_rank"].is_null());
  EXPECT_EQ(json["nodes"][0]["state"], "silent for 7 s");
  EXPECT_TRUE(json["began_ms"].is_null());
  EXPECT_EQ(json["rounds"].size(), 1u);
  EXPECT_EQ(json["rounds"][0]["reason"], "rank 3 failed");
  EXPECT_TRUE(json["rounds"][0]["stopped_ms"].is_null());
  const auto list = nlohmann::json::parse(JobListJson({Llama()}, 5));
  EXPECT_FALSE(list.contains("leader"));
  EXPECT_EQ(nlohmann::json::parse(JobListJson({}, 0, "head1:29400"))["leader"], "head1:29400");
  EXPECT_EQ(list["total_jobs"], 5);
  EXPECT_EQ(list["jobs"][0]["max_nodes"], 4);
  EXPECT_FALSE(list["jobs"][0].contains("nodes"));
}

TEST(JobJson, WhatIsNotUtf8IsReplaced) {
  JobStatus job = Llama();
  job.explanation = "a\xff";
  EXPECT_EQ(nlohmann::json::parse(JobJson(job))["explanation"], "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace hlaunch
