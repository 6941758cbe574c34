// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/cluster_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cluster/client/node_lines.h"
#include "launcher/cluster/commands/drain_host.h"
#include "launcher/cluster/commands/job_meeting.h"
#include "launcher/remote/detached/line_printer.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using ParseFn = absl::StatusOr<ClusterCommand> (*)(int, const char* const*);

absl::StatusOr<ClusterCommand> Parse(ParseFn parse, std::vector<const char*> words) {
  words.insert(words.begin(), {"hlaunch", "word"});
  return parse(static_cast<int>(words.size()), words.data());
}

TEST(ClusterCommands, AreRead) {
  const auto ps = Parse(ParsePsOptions, {"-a", "17", "--json", "--ended"});
  ASSERT_TRUE(ps.ok()) << ps.status();
  EXPECT_EQ(ps->job, "17");
  EXPECT_TRUE(ps->all && ps->json && ps->ended);
  EXPECT_EQ(Parse(ParsePsOptions, {})->job, "");
  EXPECT_EQ(Parse(ParsePsOptions, {"llama"})->job, "llama");  // One of this host.
  EXPECT_TRUE(Parse(ParseNodesOptions, {"--json"})->json);
  EXPECT_EQ(Parse(ParseTopOptions, {"hlaunch-4"})->job, "hlaunch-4");
}

TEST(ClusterCommands, RefuseOtherWords) {
  EXPECT_THAT(std::string(Parse(ParsePsOptions, {"1", "2"}).status().message()),
              HasSubstr("takes one job, and then comes 2"));
  EXPECT_THAT(std::string(Parse(ParseNodesOptions, {"x"}).status().message()),
              HasSubstr("hlaunch nodes takes no word like x"));
  EXPECT_FALSE(Parse(ParseTopOptions, {"--json"}).ok());
}

TEST(JobNumber, IsANumberOrTheNameThatItsNodesKnow) {
  EXPECT_EQ(JobNumber("17"), 17u);
  EXPECT_EQ(JobNumber("hlaunch-17"), 17u);
  for (const char* word : {"", "0", "-1", "17.0", "job-17", "1e3", "99999999999999999999", " 7"}) {
    EXPECT_EQ(JobNumber(word), std::nullopt) << word;
  }
}

TEST(WithMeetingOfCluster, HasTheSecretInADescriptor) {
  const auto secret = SecretFile("geheim");
  ASSERT_TRUE(secret.ok()) << secret.status();
  struct stat found = {};
  ASSERT_EQ(::fstat(secret->get(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  const std::string words =
      absl::StrJoin(WithMeetingOfCluster({"hlaunch", "why", "--rank", "17", "17", "--json"}, 4, 17,
                                         {"node0:4242", "geheim"}, secret->get()),
                    " ");
  EXPECT_EQ(words,
            absl::StrCat("hlaunch why --rank 17 hlaunch-17 --json --rdzv-endpoint node0:4242 "
                         "--token-file /proc/self/fd/",
                         secret->get()));
  EXPECT_THAT(words, Not(HasSubstr("geheim")));
}

std::string Drain(std::vector<std::string> words) {
  words.insert(words.begin(), "hlaunch");
  const auto question = DrainOfHost(words);
  if (!question.ok()) return std::string(question.status().message());
  if (!question->has_value()) return "none";
  return absl::StrCat((*question)->host, "|", (*question)->reason, "|", (*question)->evict_s);
}

TEST(DrainOfHost, IsAboutOneHostAndNoJob) {
  EXPECT_EQ(Drain({"drain", "node3", "--reason", "ECC"}), "node3|ECC|-1");
  EXPECT_EQ(Drain({"drain", "node3", "--reason=ECC", "--deadline", "60"}), "node3|ECC|60");
  EXPECT_EQ(Drain({"undrain", "node3"}), "node3||-1");
  EXPECT_EQ(Drain({"drain", "17", "node3", "--reason", "ECC"}), "none");
  EXPECT_EQ(Drain({"drain", "node3", "--rdzv-endpoint", "a", "--reason", "x"}), "none");
  EXPECT_EQ(Drain({"drain", "--help"}), "none");
  EXPECT_EQ(Drain({"drain", "Not/A:Host"}), "none");
  EXPECT_THAT(Drain({"drain", "node3"}), HasSubstr("add --reason"));
  EXPECT_THAT(Drain({"drain", "node3", "--reason", "x", "--deadline", "soon"}),
              HasSubstr("--deadline 'soon'"));
  EXPECT_THAT(Drain({"drain", "node3", "--reason", "x", "--within", "5"}), HasSubstr("--deadline"));
}

TEST(ReadSince, IsASpanOrATime) {
  constexpr int64_t now = 1'764'000'000'000;  // 2025-11-24T16:00:00Z
  EXPECT_EQ(*ReadSince("", now), "");
  EXPECT_THAT(*ReadSince("10m", now), HasSubstr("2025-11-24T15:50:00"));
  EXPECT_THAT(*ReadSince("30", now), HasSubstr("2025-11-24T15:59:30"));
  EXPECT_THAT(*ReadSince("1d", now), HasSubstr("2025-11-23T16:00:00"));
  EXPECT_EQ(*ReadSince("2026-11-25T16:41", now), "2026-11-25T16:41");
  for (const char* text : {"soon", "m", "-5m", "16:41", "2026/11/25"}) {
    EXPECT_FALSE(ReadSince(text, now).ok()) << text;
  }
}

std::string TextsOf(const std::vector<LogLine>& lines) {
  std::string all;
  for (const LogLine& line : lines) absl::StrAppend(&all, line.fd, ":", line.text, ";");
  return all;
}

TEST(NodeLines, JoinsThePartsOfALine) {
  NodeLines lines;
  const std::string time = "2026-11-25T16:41:07.123Z";
  EXPECT_EQ(TextsOf(lines.Take(time + " stdout F one\n" + time + " stdout P tw\n" + time +
                               " stderr F err\n")),
            "1:one;2:err;");
  EXPECT_EQ(TextsOf(lines.Take(time + " stdout F o\n")), "1:two;");
  EXPECT_EQ(TextsOf(lines.Take(time + " stderr P end\n")), "");
  EXPECT_EQ(TextsOf(lines.Rest()), "2:end;");
  EXPECT_EQ(TextsOf(lines.Rest()), "");
}

}  // namespace
}  // namespace hlaunch
