// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/outbox.h"

#include <chrono>

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

constexpr Instant kNow = Instant(std::chrono::hours(1));

NodeUpdate Of(NodePhase phase) {
  NodeUpdate update;
  update.phase = phase;
  return update;
}

TEST(Outbox, A_newer_update_goes_before_an_answer) {
  Outbox outbox(Of(NodePhase::kReady));
  outbox.Put(NodeAnswer{7, "text", ""});
  const Outbox::Message first = outbox.Take(0, true, kNow);
  EXPECT_EQ(first.version, 1);
  EXPECT_FALSE(first.answer);
  const Outbox::Message second = outbox.Take(first.version, true, kNow);
  ASSERT_TRUE(second.answer);
  EXPECT_EQ(second.answer->number, 7);
  EXPECT_FALSE(outbox.Take(first.version, true, kNow).answer);
}

TEST(Outbox, Of_words_the_latest_counts_and_answers_go_first) {
  Outbox outbox(Of(NodePhase::kReady));
  outbox.Put(RoundWord{1, 0, "former"});
  outbox.Put(RoundWord{1, 0, "latest"});
  outbox.Put(NodeAnswer{1, "text", ""});
  EXPECT_TRUE(outbox.Take(1, true, kNow).answer);
  const Outbox::Message message = outbox.Take(1, true, kNow);
  ASSERT_TRUE(message.word);
  EXPECT_EQ(message.word->text, "latest");
}

TEST(Outbox, Nothing_but_the_update_goes_before_the_join) {
  Outbox outbox(Of(NodePhase::kReady));
  outbox.Put(NodeAnswer{1, "text", ""});
  EXPECT_FALSE(outbox.Take(1, false, kNow).answer);
  EXPECT_EQ(outbox.NextAt(kNow), kNow);
}

TEST(Outbox, A_long_answer_waits_until_the_pace_allows_it) {
  Outbox outbox(Of(NodePhase::kReady));
  const std::string text(AnswerPace::kBurstBytes - 256, 'x');
  outbox.Put(NodeAnswer{1, text, ""});
  outbox.Put(NodeAnswer{2, text, ""});
  EXPECT_TRUE(outbox.Take(1, true, kNow).answer);
  EXPECT_FALSE(outbox.Take(1, true, kNow).answer);
  const Instant next = outbox.NextAt(kNow);
  EXPECT_GT(next, kNow);
  const Outbox::Message message = outbox.Take(1, true, next);
  ASSERT_TRUE(message.answer);
  EXPECT_EQ(message.answer->number, 2);
}

TEST(Outbox, Its_state_says_whether_the_last_update_is_in_it) {
  Outbox outbox(Of(NodePhase::kReady));
  EXPECT_FALSE(outbox.state().last_update);
  EXPECT_FALSE(outbox.state().close_until);
  outbox.Put(Of(NodePhase::kLeft));
  outbox.Close(kNow);
  EXPECT_EQ(outbox.state().version, 2);
  EXPECT_TRUE(outbox.state().last_update);
  EXPECT_EQ(outbox.state().close_until, kNow);
  EXPECT_TRUE(outbox.Take(2, true, kNow).closing);
}

}  // namespace
}  // namespace hlaunch
