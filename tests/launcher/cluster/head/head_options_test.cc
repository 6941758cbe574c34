// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_options.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cluster/head/head_relay.h"
#include "launcher/cluster/head/job_polls.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

absl::StatusOr<HeadOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"hlaunchd", "head"});
  return ParseHeadOptions(static_cast<int>(words.size()), words.data());
}

TEST(ParseHeadOptions, ListensAtTheClustersPortOfAllAddresses) {
  const HeadOptions options = Parse({}).value();
  EXPECT_EQ(options.listen.host, "");
  EXPECT_EQ(options.listen.port, 29401);
  EXPECT_EQ(options.folder, "/var/lib/hlaunch-head");
}

TEST(ParseHeadOptions, ReadsPlacesAndLimits) {
  const HeadOptions options = Parse({"--folder", "/x", "--listen", "10.0.0.1:7", "--max-running",
                                     "4", "--metrics-port", "9400"})
                                  .value();
  EXPECT_EQ(options.listen.host, "10.0.0.1");
  EXPECT_EQ(options.listen.port, 7);
  EXPECT_EQ(options.limits.max_running, 4);
  EXPECT_EQ(options.metrics->port, 9400);
  EXPECT_EQ(Parse({"--listen", "7"})->listen.port, 7);
}

TEST(ParseHeadOptions, NamesWhatIsWrong) {
  for (const std::vector<const char*>& words : {std::vector<const char*>{"--max-running", "0"},
                                                {"--listen", "a:b"},
                                                {"--folder", ""},
                                                {"x"}}) {
    const auto options = Parse(words);
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << words[0];
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(words[0]));
  }
}

TEST(JobPolls, AreDueWhenTheJobIsAnotherOrTheirTimeIsUp) {
  JobPolls polls;
  const Instant now = Instant() + std::chrono::hours(1);
  polls.Add(7, {1, {}, 3, now + std::chrono::seconds(20)});
  polls.Add(8, {2, {}, 3, now + std::chrono::seconds(20)});
  const auto three = [](uint64_t) { return uint64_t{3}; };
  EXPECT_TRUE(polls.TakeDue(now, three).empty());
  const auto due = polls.TakeDue(now, [](uint64_t job) { return uint64_t{job == 7 ? 4u : 3u}; });
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].peer, 1u);
  EXPECT_EQ(polls.TakeDue(now + std::chrono::seconds(20), three).size(), 1u);
}

TEST(HeadRelay, AnswersForAHostThatDoesNot) {
  std::vector<uint64_t> ids;
  HeadRelay relay([&](uint64_t, const Envelope& envelope) { ids.push_back(envelope.id); });
  std::vector<absl::StatusCode> ends;
  const auto done = [&](const absl::StatusOr<nlohmann::json>& answer) {
    ends.push_back(answer.status().code());
  };
  const Instant now = Instant() + std::chrono::hours(1);
  for (const uint64_t peer : {1, 1, 2}) relay.Ask(peer, "node", "log", {}, true, now, done);
  Envelope answer;
  answer.id = ids[0];
  relay.TakeAnswer(2, answer);  // Peer 2 was not asked this question.
  EXPECT_TRUE(ends.empty());
  relay.TakeAnswer(1, answer);
  relay.Left(1);
  relay.Tick(now + HeadRelay::kPatience);
  EXPECT_THAT(ends, testing::ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kUnavailable,
                                         absl::StatusCode::kDeadlineExceeded));
}

TEST(HeadRelay, BoundsWhatAHostIsAsked) {
  HeadRelay relay([](uint64_t, const Envelope&) {});
  int refused = 0;
  const auto done = [&](const absl::StatusOr<nlohmann::json>& answer) {
    refused += absl::IsResourceExhausted(answer.status()) ? 1 : 0;
  };
  for (size_t i = 0; i < HeadRelay::kMostOfAHost + 3; ++i) {
    relay.Ask(1, "node", "log", {}, true, Instant(), done);
  }
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace hlaunch
