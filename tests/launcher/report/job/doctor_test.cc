// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/doctor.h"

#include "absl/strings/str_cat.h"
#include "agent/health/joint/joint_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/options/options.h"
#include "launcher/cli/options/parse_options.h"
#include "nlohmann/json.hpp"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> JobOf(std::vector<const char*> words) {
  words.insert(words.begin(), {"/bin/hlaunch", "doctor"});
  return ReadDoctorWords(static_cast<int>(words.size()), words.data()).job;
}

TEST(ReadDoctorWords, MakeAJobThatOnlyChecks) {
  const std::vector<std::string> job = JobOf({"--nnodes", "4", "--json", "--preflight", "off"});
  EXPECT_THAT(job, ElementsAre("/bin/hlaunch", "--nnodes", "4", "--preflight", "off", "--preflight",
                               "full", "--preflight-action", "fail", "--nproc-per-node", "1",
                               "--no-python", kDoctorProgram));
  std::vector<const char*> words;
  for (const std::string& word : job) words.push_back(word.c_str());
  const auto options = ParseOptions(static_cast<int>(words.size()), words.data());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->policy.preflight, Preflight::kFull);
  EXPECT_THAT(options->script.command, ElementsAre(kDoctorProgram));
}

TEST(ReadDoctorWords, TakeTheirOwn) {
  const char* words[] = {"hlaunch", "doctor", "-h", "--json"};
  EXPECT_TRUE(ReadDoctorWords(4, words).help);
  EXPECT_TRUE(ReadDoctorWords(4, words).json);
  EXPECT_FALSE(ReadDoctorWords(2, words).help);
  EXPECT_THAT(DoctorHelp(), HasSubstr(absl::StrCat(kExitPreflight, " a node is bad")));
}

// The results of a node of three that measured their pairs.
std::vector<CheckResult> Results(int node_rank) {
  JointFacts facts;
  facts.size = 3;
  facts.hosts = {{0, "node0"}, {1, "node1"}, {2, "node2"}};
  facts.figures = {{0, "3"}, {1, "4"}, {2, "5"}};
  facts.pairs = {{{0, 1}, false, 50, 9},
                 {{0, 2}, true, 0, 0, true, "wrong"},
                 {{1, 2}, true, 0, 0, true, "wrong"}};
  facts.verdict = JudgePairs(3, facts.pairs);
  JointReport report = JudgeTogether(facts);
  report.node_rank = node_rank;
  return {{"clock", 0.1, "ms", CheckState::kOk, "", ""}, ToResult(report)};
}

TEST(DoctorText, HasPairsAndFiguresOnNodeRank0) {
  const std::string text = DoctorText(Results(0));
  EXPECT_THAT(text, HasSubstr("clock"));
  EXPECT_THAT(text, HasSubstr("use node2 for nothing before"));
  EXPECT_THAT(text, testing::ContainsRegex("node0 +node1 +50 us +9 Gbit/s +ok"));
  EXPECT_THAT(text, testing::ContainsRegex("node0 +node2 +- +- +wrong"));
  EXPECT_THAT(text, testing::ContainsRegex("processor +3 ms +node0 +5 ms +node2 +4 ms"));
  EXPECT_LT(text.find("wrong\n"), text.find("9 Gbit/s"));  // The worst comes first.
}

TEST(DoctorText, HasOnlyItsOwnChecksElsewhere) {
  const std::string text = DoctorText(Results(1));
  EXPECT_THAT(text, HasSubstr("clock"));
  EXPECT_THAT(text, Not(HasSubstr("FIGURE")));
}

TEST(DoctorJson, HasAllOfIt) {
  const auto json = nlohmann::json::parse(DoctorJson(Results(1)));
  EXPECT_EQ(json["state"], "warn");
  EXPECT_EQ(json["node_rank"], 1);
  EXPECT_EQ(json["hosts"][2], "node2");
  EXPECT_EQ(json["pairs"].size(), 3u);
  EXPECT_EQ(json["pairs"][0]["gbit_s"], 9);
  EXPECT_EQ(json["pairs"][1]["why"], "wrong");
  EXPECT_EQ(json["figures"][0]["name"], "processor");
  EXPECT_EQ(json["figures"][0]["highest_node"], 2);
}

}  // namespace
}  // namespace hlaunch
