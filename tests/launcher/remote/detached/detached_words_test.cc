// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/detached_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/cli/options/parse_options.h"
#include "launcher/remote/detached/detach_job.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ParseFn = absl::StatusOr<DetachedOptions> (*)(int, const char* const*);

absl::StatusOr<DetachedOptions> Parse(ParseFn parse, std::vector<const char*> words) {
  words.insert(words.begin(), {"hlaunch", "command"});
  return parse(static_cast<int>(words.size()), words.data());
}

TEST(ParseAttachOptions, BeginsWithTheLastLines) {
  EXPECT_EQ(Parse(ParseAttachOptions, {})->tail, 10u);
  EXPECT_TRUE(Parse(ParseAttachOptions, {})->follow);
  EXPECT_EQ(Parse(ParseAttachOptions, {"a", "--tail", "3"})->tail, 3u);
  EXPECT_EQ(Parse(ParseAttachOptions, {"--tail", "all", "a"})->tail, std::nullopt);
  EXPECT_FALSE(Parse(ParseAttachOptions, {"--tail", "-1"}).ok());
  EXPECT_FALSE(Parse(ParseAttachOptions, {"a", "b"}).ok());
}

TEST(ParseLogsOptions, ReadsAll) {
  const auto options = Parse(ParseLogsOptions, {"a", "-f", "--rank", "7,0-1", "-t", "--json"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->job_id, "a");
  EXPECT_TRUE(options->follow && options->timestamps && options->json);
  EXPECT_THAT(options->ranks, ElementsAre(0, 1, 7));
  EXPECT_EQ(options->tail, std::nullopt);
  EXPECT_FALSE(Parse(ParseLogsOptions, {"--rank", "x"}).ok());
  EXPECT_THAT(*Parse(ParseLogsOptions, {"--help"})->text_to_print, HasSubstr("--rank LIST"));
}

TEST(ParseStopOptions, ReadsTheGrace) {
  EXPECT_EQ(Parse(ParseStopOptions, {"--grace", "5"})->grace, std::chrono::seconds(5));
  EXPECT_EQ(Parse(ParseStopOptions, {})->grace, std::nullopt);
  EXPECT_FALSE(Parse(ParseStopOptions, {"--grace", "soon"}).ok());
}

// The answer of CheckDetach to this command line on `cluster`.
std::string Check(std::vector<const char*> words, const std::string& cluster = "none") {
  words.insert(words.begin(), {"hlaunch", "--detach"});
  words.push_back("train.py");
  const auto options = ParseOptions(static_cast<int>(words.size()), words.data(), Environment());
  EXPECT_TRUE(options.ok()) << options.status();
  if (!options.ok()) return "";
  EXPECT_TRUE(options->detach);
  ClusterPlace place;
  place.cluster = cluster;
  return std::string(CheckDetach(*options, place).message());
}

TEST(CheckDetach, RefusesWhatHasNoLifeOfItsOwn) {
  EXPECT_EQ(Check({}), "");
  EXPECT_EQ(Check({"--hosts", "a,b"}), "");
  EXPECT_EQ(Check({"--stdin=none"}), "");
  EXPECT_THAT(Check({"--stdin"}), HasSubstr("--stdin"));
  EXPECT_THAT(Check({"--dry-run"}), HasSubstr("starts none"));
  EXPECT_THAT(Check({"--nnodes", "2", "--rdzv-endpoint", "a"}), HasSubstr("--hosts"));
  EXPECT_THAT(Check({}, "slurm"), HasSubstr("slurm"));
}

}  // namespace
}  // namespace hlaunch
