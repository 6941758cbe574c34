// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/drain_options.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<DrainOptions> ParseDrain(std::vector<const char*> words) {
  words.insert(words.begin(), "hlaunch");
  return ParseDrainOptions(static_cast<int>(words.size()), words.data());
}

std::string DrainError(const std::vector<const char*>& words) {
  const auto options = ParseDrain(words);
  return options.ok() ? "none" : std::string(options.status().message());
}

TEST(ParseDrainOptions, ReadsWhichNodeOfWhichJobAndWhy) {
  const auto of_job = ParseDrain({"drain", "llama", "node3", "--rdzv-endpoint", "node0", "--reason",
                                  "ECC errors", "--within", "110"});
  ASSERT_TRUE(of_job.ok()) << of_job.status();
  EXPECT_EQ(of_job->words.job_id, "llama");
  EXPECT_EQ(of_job->request.node, "node3");
  EXPECT_EQ(of_job->request.reason, "ECC errors");
  EXPECT_EQ(of_job->request.within, std::chrono::seconds(110));
  EXPECT_FALSE(of_job->request.undrain);
  const auto only = ParseDrain({"drain", "node3", "--rdzv-endpoint", "node0"});
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ(only->words.job_id, "");
  EXPECT_EQ(only->request.node, "node3");
  EXPECT_TRUE(ParseDrain({"undrain", "node3", "--rdzv-endpoint", "node0"})->request.undrain);
}

TEST(ParseDrainOptions, NamesWhatIsWrong) {
  EXPECT_THAT(DrainError({"drain", "--rdzv-endpoint", "node0"}),
              HasSubstr("hlaunch drain JOB NODE"));
  EXPECT_THAT(DrainError({"drain", "a", "b", "c", "--rdzv-endpoint", "node0"}),
              HasSubstr("hlaunch drain JOB NODE"));
  EXPECT_THAT(DrainError({"drain", "b", "--rdzv-endpoint", "node0", "--within", "0"}),
              HasSubstr("--within '0': expected a number of seconds"));
  EXPECT_THAT(DrainError({"drain", "b", "--rdzv-endpoint", "node0", "--reason", "a\nb"}),
              HasSubstr("--reason: expected one line"));
}

}  // namespace
}  // namespace hlaunch
