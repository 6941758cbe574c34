// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with real processes that do not run Python. The end-to-end tests check what is shown of
// torch.

#include "agent/watch/query/rank_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/watch/hang/snapshot_text.h"
#include "agent/watch/query/merge_stacks.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "proto/base/status_macros.h"
#include "rendezvous/round/hang/same_state.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RankAnswersTest : public ::testing::Test {
 protected:
  RankAnswersTest() { std::filesystem::create_directory(tools_); }
  ~RankAnswersTest() override { std::filesystem::remove_all(tools_); }

  LookPlan Plan() const {
    LookPlan plan;
    plan.host = "node1";
    plan.first_rank = 4;
    plan.workers = 2;
    plan.tools = tools_;
    return plan;
  }

  // A py-spy that shows the same stack for every process.
  void MakeTool() const {
    const std::string path = absl::StrCat(tools_, "/py-spy");
    std::ofstream(path) << "#!/bin/sh\n"
                           "echo 'Thread 1 (idle): \"MainThread\"'; echo '    work (train.py:7)'\n";
    HLAUNCH_CHECK(::chmod(path.c_str(), 0755) == 0);
  }

  static NodeQuestion Ask(uint64_t number, RankQuestion::Kind kind, std::vector<Rank> ranks = {}) {
    NodeQuestion question;
    question.number = number;
    question.question.kind = kind;
    question.question.ranks = std::move(ranks);
    question.question.patience = std::chrono::seconds(60);
    return question;
  }

  void Answer(RankAnswers& answers, const NodeQuestion& question) {
    answers.Answer(question, [this](NodeAnswer answer) { told_.push_back(std::move(answer)); });
  }

  void Await(size_t count) {
    const Instant deadline = MonotonicClock().Now() + kPatience;
    while (told_.size() < count && MonotonicClock().Now() < deadline) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    HLAUNCH_CHECK(told_.size() == count);
  }

  static Child Sleeper() { return Child({.argv = {"/bin/sleep", "600"}}); }

  const std::string tools_ = absl::StrCat(::testing::TempDir(), "/rank_answers", ::getpid());
  asio::io_context loop_{1};
  std::vector<NodeAnswer> told_;
};

TEST_F(RankAnswersTest, SaysWhatEachWorkerDoes) {
  Child child = Sleeper();
  RankAnswers answers(loop_, Plan());
  answers.Started(0, child.process().pid());
  Answer(answers, Ask(7, RankQuestion::Kind::kWhy));
  Await(1);
  EXPECT_EQ(told_[0].number, 7u);
  EXPECT_EQ(told_[0].problem, "");
  const auto snapshots = ParseSnapshots(told_[0].text);
  ASSERT_TRUE(snapshots);
  ASSERT_THAT(*snapshots, SizeIs(2));
  EXPECT_EQ((*snapshots)[0].rank, 4);
  EXPECT_EQ((*snapshots)[0].pid, child.process().pid());
  EXPECT_EQ(DescribeState((*snapshots)[0]), "sleeps");
  EXPECT_EQ(DescribeState((*snapshots)[1]), "has not started");
}

TEST_F(RankAnswersTest, AnswersOneQuestionAfterTheOther) {
  MakeTool();
  Child child = Sleeper(), other = Sleeper();
  RankAnswers answers(loop_, Plan());
  answers.Started(0, child.process().pid());
  answers.Started(1, other.process().pid());
  Answer(answers, Ask(1, RankQuestion::Kind::kWhy, {5}));
  Answer(answers, Ask(2, RankQuestion::Kind::kStacks));
  Answer(answers, Ask(3, RankQuestion::Kind::kStacks, {4}));
  Await(3);
  EXPECT_THAT(*ParseSnapshots(told_[0].text), SizeIs(1));
  EXPECT_EQ(told_[1].number, 2u);
  const auto stacks = ParseStacks(told_[1].text);
  ASSERT_TRUE(stacks);
  ASSERT_THAT(*stacks, SizeIs(1));
  EXPECT_THAT((*stacks)[0].ranks, ElementsAre(4, 5));
  EXPECT_THAT((*stacks)[0].frames, ElementsAre("work (train.py:7)"));
  EXPECT_THAT((*ParseStacks(told_[2].text))[0].ranks, ElementsAre(4));
  Answer(answers, Ask(4, RankQuestion::Kind::kStacks, {4}));  // The worker can still be asked.
  Await(4);
}

TEST_F(RankAnswersTest, SaysWhyAWorkerHasNoStack) {
  Child child = Sleeper();
  child.process().Signal(SIGSTOP);
  RankAnswers answers(loop_, Plan());
  answers.Started(0, child.process().pid());
  answers.Started(1, 1);
  answers.Ended(1, true);
  const Instant deadline = MonotonicClock().Now() + kPatience;
  while (ReadProcess(child.process().pid())->state != 'T' && MonotonicClock().Now() < deadline) {
  }
  Answer(answers, Ask(1, RankQuestion::Kind::kStacks));
  Await(1);
  const auto stacks = ParseStacks(told_[0].text);
  ASSERT_THAT(*stacks, SizeIs(2));
  EXPECT_THAT((*stacks)[0].problem, HasSubstr("is stopped"));
  EXPECT_THAT((*stacks)[1].problem, "has exited");
}

TEST_F(RankAnswersTest, TakesAFewQuestionsAtATimeAndNoMoreBytesThanAreWanted) {
  RankAnswers answers(loop_, Plan());
  NodeQuestion small = Ask(0, RankQuestion::Kind::kWhy);
  small.max_bytes = 8;
  for (uint64_t i = 0; i < kMaxQuestions + 1; ++i) Answer(answers, small);
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0].problem, HasSubstr("busy"));
  Await(2);
  EXPECT_THAT(told_[1].problem, HasSubstr("too much to say"));
  EXPECT_EQ(told_[1].text, "");
}

}  // namespace
}  // namespace hlaunch
