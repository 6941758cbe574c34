// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/stream_meter.h"

#include <gtest/gtest.h>

#include <string>

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint8_t kEnd = Http2Frames::kEndOfStream;
constexpr uint8_t kReset = 3;
const char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Frame(uint8_t type, uint8_t flags, const std::string& payload) {
  std::string frame(9, '\0');
  frame[1] = static_cast<char>(payload.size() >> 8);
  frame[2] = static_cast<char>(payload.size());
  frame[3] = static_cast<char>(type);
  frame[4] = static_cast<char>(flags);
  return frame + payload;
}

// A payload looks like the heads of frames, and is none.
std::string Opened() { return Frame(Http2Frames::kHeaders, 5, std::string(30, '\1')); }

TEST(StreamMeter, BearsAnyNumberOfCallsOneAfterAnother) {
  StreamMeter meter{Instant()};
  ASSERT_TRUE(meter.Received(kPreface + Frame(4, 0, ""), Instant()));
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(meter.Received(Opened() + Frame(0, kEnd, "question"), Instant())) << i;
    meter.Sent(Frame(Http2Frames::kHeaders, 4, "x") + Frame(0, 0, "answer") +
               Frame(Http2Frames::kHeaders, 4 | kEnd, "status"));
  }
}

TEST(StreamMeter, RecognizesAFloodOfStreamsThatWereReset) {
  StreamMeter meter{Instant()};
  ASSERT_TRUE(meter.Received(kPreface, Instant()));
  int count = 0;
  while (count < 1000 && meter.Received(Opened() + Frame(kReset, 0, "none"), Instant())) ++count;
  EXPECT_EQ(count, StreamMeter::kMostUnended);
}

TEST(StreamMeter, FindsFramesHoweverTheBytesAreCut) {
  std::string all = kPreface;
  for (int i = 0; i <= StreamMeter::kMostUnended; ++i) all += Opened() + Frame(0, kEnd, "question");
  StreamMeter meter{Instant()};
  size_t taken = 0;
  while (taken < all.size() && meter.Received(all.substr(taken, 1), Instant())) ++taken;
  EXPECT_EQ(taken, all.size() - Opened().size() - Frame(0, kEnd, "question").size() + 8);
}

TEST(StreamMeter, AServersResetEndsNoStream) {
  StreamMeter meter{Instant()};
  ASSERT_TRUE(meter.Received(kPreface, Instant()));
  int count = 0;
  while (count < 1000 && meter.Received(Opened(), Instant())) {
    meter.Sent(Frame(kReset, kEnd, "none"));
    ++count;
  }
  EXPECT_EQ(count, StreamMeter::kMostUnended);
}

TEST(StreamMeter, ForgetsTheCallsThatAnAgentCancelsNowAndThen) {
  StreamMeter meter{Instant()};
  ASSERT_TRUE(meter.Received(kPreface, Instant()));
  for (milliseconds at(0); at < seconds(1000); at += milliseconds(100)) {
    ASSERT_TRUE(meter.Received(Opened() + Frame(kReset, 0, "none"), Instant(at))) << at.count();
  }
}

}  // namespace
}  // namespace hlaunch
