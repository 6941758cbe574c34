// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/answer_pace.h"

#include "gtest/gtest.h"
#include "rendezvous/job/question.h"
#include "rendezvous/net/port/traffic_watch.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart = Instant{} + seconds(1000);

TEST(AnswerPace, LetsTheLongestAnswerGoAtOnce) {
  AnswerPace pace;
  EXPECT_EQ(pace.When(kMaxAnswerBytes, kStart), kStart);
  pace.Sent(kMaxAnswerBytes, kStart);
  EXPECT_GT(pace.When(kMaxAnswerBytes, kStart), kStart);
  EXPECT_EQ(pace.When(kMaxAnswerBytes, kStart + seconds(10)), kStart + seconds(10));
}

TEST(AnswerPace, StaysWithinWhatAConnectionMaySend) {
  AnswerPace pace;
  TrafficAllowance allowance(kStart);
  uint64_t total = 256 << 10;  // The longest update, sent at once.
  Instant now = kStart;
  for (int i = 0; i < 1000; ++i) {
    now = pace.When(kMaxAnswerBytes, now);
    pace.Sent(kMaxAnswerBytes, now);
    total += kMaxAnswerBytes + 256;
    EXPECT_TRUE(allowance.Covers(total, now)) << i;
  }
}

}  // namespace
}  // namespace hlaunch
