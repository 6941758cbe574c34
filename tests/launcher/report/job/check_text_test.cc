// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/check_text.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

absl::StatusOr<CheckOptions> ParseCheck(std::vector<std::string> words) {
  std::vector<const char*> argv = {"hlaunch", "check"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return ParseCheckOptions(static_cast<int>(argv.size()), argv.data());
}

const std::vector<CheckResult> kResults = {
    {"devices", 7, "", CheckState::kFail, "7 of the 8 hpu devices asked for work", "see there"},
    {"heat", {}, "degC", CheckState::kUnknown, "the kernel shows no sensor", ""},
    {"processor", 1.234, "ms", CheckState::kOk, "", ""}};

TEST(CheckText, IsATableWithAdviceBelow) {
  EXPECT_EQ(CheckText(kResults), R"(CHECK      STATE    VALUE    WHAT WAS SEEN
devices    fail     7        7 of the 8 hpu devices asked for work
heat       unknown  -        the kernel shows no sensor
processor  ok       1.23 ms  -

devices: see there
)");
}

TEST(CheckText, GivesNoAdviceWhereNothingIsWrong) {
  EXPECT_THAT(CheckText({kResults[2]}), testing::EndsWith("1.23 ms  -\n"));
}

TEST(CheckText, MakesWhatAKernelSaysSafeForATerminal) {
  CheckResult evil = kResults[0];
  evil.reason = evil.advice = "\x1b[2J\nroot";
  EXPECT_EQ(CheckText({evil}).find('\x1b'), std::string::npos);
}

TEST(CheckJson, HasTheWorstStateAndEachCheck) {
  const auto json = nlohmann::json::parse(CheckJson(kResults));
  EXPECT_EQ(json["state"], "fail");
  ASSERT_EQ(json["checks"].size(), 3u);
  EXPECT_EQ(json["checks"][2]["value"], 1.234);
  EXPECT_FALSE(json["checks"][1].contains("value"));
}

TEST(ParseCheckOptions, ReadsBackWhatCheckCommandWrites) {
  CheckPlan plan;
  plan.full = true;
  plan.devices = {DeviceKind::kHpu, 8};
  plan.log_directory = "/logs";
  plan.master = "node0";
  plan.sysroot = "/tree";
  plan.joint = {"fe80::1", 29500, 7, 3, 16, "host, with a comma", true};
  plan.watch = std::chrono::milliseconds(2500);
  std::vector<std::string> words = CheckCommand("/bin/hlaunch", plan);
  EXPECT_EQ(words[0], "/bin/hlaunch");
  words.erase(words.begin(), words.begin() + 2);
  const auto options = ParseCheck(words);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->lines);
  EXPECT_TRUE(options->plan.full);
  EXPECT_EQ(options->plan.devices.kind, DeviceKind::kHpu);
  EXPECT_EQ(options->plan.devices.count, 8);
  EXPECT_EQ(options->plan.log_directory, "/logs");
  EXPECT_EQ(options->plan.master, "node0");
  EXPECT_EQ(options->plan.sysroot, "/tree");
  ASSERT_TRUE(options->plan.joint);
  EXPECT_EQ(options->plan.joint->master, "fe80::1");
  EXPECT_EQ(options->plan.joint->port, 29500);
  EXPECT_EQ(options->plan.joint->round, 7);
  EXPECT_EQ(options->plan.joint->node_rank, 3);
  EXPECT_EQ(options->plan.joint->size, 16);
  EXPECT_EQ(options->plan.joint->host, "host, with a comma");
  EXPECT_TRUE(options->plan.joint->full);
  EXPECT_EQ(options->plan.watch, std::chrono::milliseconds(2500));
}

TEST(ParseCheckOptions, RefusesAMeetingThatMakesNoSense) {
  for (const char* bad : {"", "1.2.3.4:5", "1.2.3.4,1,0,2,h", "1.2.3.4:99999,1,0,2,h",
                          "1.2.3.4:5,1,2,2,h", "1.2.3.4:5,1,-1,2,h", "1.2.3.4:5,x,0,2,h"}) {
    const auto options = ParseCheck({"--join", bad});
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(ParseCheckOptions, SaysWhatIsWrongAndTheWayOut) {
  for (const char* bad : {"hpus", "hpu:", "hpu:0", "hpu:-1", "hpu:1x", "hpu:99999999999", ""}) {
    const auto options = ParseCheck({"--devices", bad});
    ASSERT_FALSE(options.ok()) << bad;
    EXPECT_THAT(options.status().message(), HasSubstr("hpu:8")) << bad;
  }
  EXPECT_THAT(ParseCheck({"now"}).status().message(), HasSubstr("hlaunch ./check"));
  EXPECT_THAT(ParseCheck({"--watch", "0"}).status().message(),
              HasSubstr("--watch 0: expected a time"));
  EXPECT_EQ(ParseCheck({"--devices", "cuda"})->plan.devices.count, 1);
}

TEST(ParseCheckOptions, ExplainsItself) {
  EXPECT_THAT(*ParseCheck({"--help"})->text_to_print,
              HasSubstr(absl::StrCat(kExitPreflight, " a check fails")));
}

}  // namespace
}  // namespace hlaunch
