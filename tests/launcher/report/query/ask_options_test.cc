// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/ask_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<AskOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "hlaunch");
  const auto count = static_cast<int>(words.size());
  return words[1] == std::string("why") ? ParseWhyOptions(count, words.data())
                                        : ParseStacksOptions(count, words.data());
}

std::string ErrorOf(const std::vector<const char*>& words) {
  const auto options = Parse(words);
  return options.ok() ? "none" : std::string(options.status().message());
}

TEST(ParseAskOptions, ReadsWhomToAskWhat) {
  const auto why = Parse({"why", "llama", "--rdzv-endpoint", "node0", "--json"});
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_EQ(why->words.job_id, "llama");
  EXPECT_EQ(why->words.endpoint.port, 29400);
  EXPECT_EQ(Parse({"why", "17.0", "--rdzv-endpoint", "node0"})->words.endpoint.port, 12272);
  EXPECT_EQ(Parse({"why", "17.0", "--rdzv-endpoint", "node0:7"})->words.endpoint.port, 7);
  EXPECT_TRUE(why->words.json);
  EXPECT_EQ(why->question.kind, RankQuestion::Kind::kWhy);
  EXPECT_THAT(why->question.ranks, IsEmpty());
  EXPECT_EQ(why->question.patience, seconds(10));
  const auto stacks = Parse({"stacks", "--rank", "7,0-2", "--native", "--timeout=30", "llama",
                             "--rdzv-endpoint", "node0:7"});
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  EXPECT_EQ(stacks->question.kind, RankQuestion::Kind::kStacks);
  EXPECT_THAT(stacks->question.ranks, ElementsAre(0, 1, 2, 7));
  EXPECT_TRUE(stacks->question.native);
  EXPECT_EQ(stacks->question.patience, seconds(30));
  EXPECT_THAT(*Parse({"stacks", "--help"})->text_to_print, HasSubstr("hlaunch ./stacks"));
}

TEST(ParseAskOptions, MeansAJobHereIfNoRendezvousIsNamed) {
  const auto named = Parse({"why", "llama", "--rank", "3", "--json"});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_TRUE(named->here);
  EXPECT_EQ(named->words.job_id, "llama");
  EXPECT_TRUE(named->words.json);
  EXPECT_THAT(named->question.ranks, ElementsAre(3));
  EXPECT_EQ(Parse({"stacks"})->words.job_id, "");
  EXPECT_FALSE(Parse({"why", "llama", "--rdzv-endpoint", "node0"})->here);
}

TEST(ParseAskOptions, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf({"why", "a", "b"}), HasSubstr("then comes b"));
  EXPECT_THAT(ErrorOf({"why", "--rdzv-endpoint", "n"}), HasSubstr("needs the job"));
  EXPECT_THAT(ErrorOf({"why", "a", "b", "--rdzv-endpoint", "n"}), HasSubstr("then comes b"));
  EXPECT_THAT(ErrorOf({"why", "a", "--native", "--rdzv-endpoint", "n"}), HasSubstr("--native"));
  EXPECT_THAT(ErrorOf({"stacks", "a", "--rank", "x", "--rdzv-endpoint", "n"}),
              HasSubstr("--rank 'x': expected ranks as in 0-3,7"));
  EXPECT_THAT(ErrorOf({"stacks", "a", "--rank", "3-1", "--rdzv-endpoint", "n"}),
              HasSubstr("expected ranks"));
  EXPECT_THAT(ErrorOf({"stacks", "a", "--timeout", "61", "--rdzv-endpoint", "n"}),
              HasSubstr("from 1 to 60"));
}

}  // namespace
}  // namespace hlaunch
