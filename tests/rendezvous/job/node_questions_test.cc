// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/node_questions.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Instant kNow{};

std::vector<NodeQuestions::Candidate> Nodes(int count) {
  std::vector<NodeQuestions::Candidate> nodes;
  for (int i = 0; i < count; ++i) {
    nodes.push_back({absl::StrCat("id", i), {absl::StrCat("node", i), i, 2 * i, 2, "", ""}});
  }
  return nodes;
}

RankQuestion Why() {
  RankQuestion question;
  question.patience = seconds(10);
  return question;
}

TEST(NodeQuestions, AreFinishedWhenAllHaveAnswered) {
  NodeQuestions questions;
  const uint64_t number = questions.Begin(Why(), Nodes(2), kNow).value();
  const auto told = questions.TakeTold();
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_EQ(told[1].first, "id1");
  EXPECT_EQ(told[1].second.number, number);
  EXPECT_EQ(told[1].second.max_bytes, kMaxAnswerBytes);
  EXPECT_THAT(questions.TakeTold(), IsEmpty());
  questions.Answer("id1", {number, "b", ""});
  questions.Answer("id1", {number, "again", ""});
  questions.Answer("stranger", {number, "c", ""});
  questions.Answer("id0", {number + 1, "of another", ""});
  EXPECT_THAT(questions.TakeFinished(), IsEmpty());
  questions.Answer("id0", {number, "", "runs no workers now"});
  const auto finished = questions.TakeFinished();
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_EQ(finished[0].first, number);
  EXPECT_EQ(finished[0].second[0].problem, "runs no workers now");
  EXPECT_EQ(finished[0].second[1].text, "b");
  EXPECT_EQ(finished[0].second[1].host, "node1");
  EXPECT_FALSE(questions.NextDeadline());
}

TEST(NodeQuestions, NameWhoHasNotAnsweredInTime) {
  NodeQuestions questions;
  const uint64_t number = questions.Begin(Why(), Nodes(2), kNow).value();
  questions.Answer("id0", {number, "a", ""});
  EXPECT_EQ(questions.NextDeadline(), kNow + seconds(10));
  questions.Tick(kNow + seconds(9));
  EXPECT_THAT(questions.TakeFinished(), IsEmpty());
  questions.Tick(kNow + seconds(10));
  const auto finished = questions.TakeFinished();
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_EQ(finished[0].second[0].problem, "");
  EXPECT_EQ(finished[0].second[1].problem, "has not answered for 10 s");
  questions.Answer("id1", {number, "too late", ""});
  EXPECT_THAT(questions.TakeFinished(), IsEmpty());
}

TEST(NodeQuestions, AskNobodyWhoCannotAnswer) {
  NodeQuestions questions;
  auto nodes = Nodes(2);
  nodes[0].word.problem = "has an older hlaunch, which cannot be asked";
  const uint64_t number = questions.Begin(Why(), nodes, kNow).value();
  EXPECT_THAT(questions.TakeTold(), SizeIs(1));
  questions.Gone("id1", "has lost its connection to the rendezvous");
  const auto finished = questions.TakeFinished();
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_EQ(finished[0].first, number);
  EXPECT_THAT(finished[0].second[0].problem, HasSubstr("older"));
  EXPECT_THAT(finished[0].second[1].problem, HasSubstr("lost its connection"));
}

TEST(NodeQuestions, AreFinishedAtOnceWhereNobodyIsToBeAsked) {
  NodeQuestions questions;
  ASSERT_TRUE(questions.Begin(Why(), {}, kNow).ok());
  EXPECT_THAT(questions.TakeFinished(), SizeIs(1));
}

TEST(NodeQuestions, AreFewAtATime) {
  NodeQuestions questions;
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < kMaxQuestions; ++i) {
    numbers.push_back(questions.Begin(Why(), Nodes(1), kNow).value());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(questions.Begin(Why(), Nodes(1), kNow).status()));
  EXPECT_TRUE(questions.GiveUp(numbers[0]));
  EXPECT_FALSE(questions.GiveUp(numbers[0]));
  EXPECT_TRUE(questions.Begin(Why(), Nodes(1), kNow).ok());
  questions.Answer("id0", {numbers[0], "", ""});
  EXPECT_THAT(questions.TakeFinished(), IsEmpty());
}

TEST(NodeQuestions, TakeNoMoreThanFitsIntoOneMessage) {
  NodeQuestions questions;
  const uint64_t number = questions.Begin(Why(), Nodes(4000), kNow).value();
  const size_t most = questions.TakeTold()[0].second.max_bytes;
  EXPECT_LE(4000 * most, kMaxAnswersBytes);
  questions.Answer("id7", {number, std::string(most + 1, 'x'), ""});
  questions.Answer("id8", {number, std::string(most, 'x'), ""});
  questions.Tick(kNow + seconds(10));
  const auto finished = questions.TakeFinished();
  EXPECT_EQ(finished[0].second[7].text, "");
  EXPECT_THAT(finished[0].second[7].problem, HasSubstr("ask for some of its ranks"));
  EXPECT_THAT(finished[0].second[8].text, SizeIs(most));
}

}  // namespace
}  // namespace hlaunch
