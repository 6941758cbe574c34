// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/start_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StartMessage Example() {
  StartMessage message;
  message.version = "1+abc";
  message.nonce = "n0nce";
  message.candidates = {"10.0.0.1:4", "[fd77::1]:4"};
  message.options = {"--nnodes", "2"};
  message.script = {"train.py", "", "a b\n'\"$x"};
  message.environment = {"PATH=/bin", "EMPTY="};
  message.limits = {"7:1024"};
  message.token = "secret";
  message.directory = "/a=b";
  message.umask = 027;
  message.grace_s = 7;
  message.takes_stdin = true;
  return message;
}

constexpr size_t kHead = 8;

TEST(StartMessage, ComesAsItWasSent) {
  const StartMessage sent = Example();
  const std::string bytes = EncodeStart(sent);
  const auto size = StartBytes(bytes.substr(0, kHead));
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(*size, bytes.size() - kHead);
  const auto got = DecodeStart(bytes.substr(kHead));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(EncodeStart(*got), bytes);
  EXPECT_EQ(got->script, sent.script);
  EXPECT_EQ(got->directory, "/a=b");
  EXPECT_EQ(got->umask, 027);
}

TEST(StartMessage, OfALaterVersionMayHaveMoreFields) {
  const std::string bytes = EncodeStart(Example()) + std::string("\0\0\0\5new=1", 9);
  const auto got = DecodeStart(bytes.substr(kHead));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->nonce, "n0nce");
}

TEST(StartMessage, RefusesWhatIsCutOffOrTooLong) {
  const std::string bytes = EncodeStart(Example());
  EXPECT_FALSE(StartBytes("hello...").ok());
  EXPECT_FALSE(StartBytes("HLS1\xff\xff\xff\xff").ok());
  EXPECT_FALSE(DecodeStart(bytes.substr(kHead, bytes.size() - kHead - 1)).ok());
  EXPECT_FALSE(DecodeStart(std::string("\0\0\0\5", 4)).ok());
  EXPECT_FALSE(DecodeStart("").ok());
  StartMessage message = Example();
  message.script.clear();
  EXPECT_FALSE(DecodeStart(EncodeStart(message).substr(kHead)).ok());
  message = Example();
  message.environment = {std::string("A=b\0c", 5)};
  EXPECT_FALSE(DecodeStart(EncodeStart(message).substr(kHead)).ok());
}

TEST(StartMessage, ShowsNothingThatATerminalWouldObey) {
  const std::string field("\0\0\0\5a\x1b=\0x", 9);
  const std::string message(DecodeStart(field).status().message());
  EXPECT_THAT(message, HasSubstr("holds a zero byte"));
  EXPECT_THAT(message, testing::Not(HasSubstr("\x1b")));
}

TEST(TakeFrames, TakesThoseThatAreWhole) {
  std::string buffer = EncodeFrame(FrameKind::kInput, "abc");
  buffer += EncodeFrame(FrameKind::kSignal, "\2");
  const std::string third = EncodeFrame(FrameKind::kKill, "");
  buffer += third.substr(0, 3);
  auto frames = TakeFrames(buffer);
  ASSERT_TRUE(frames.ok());
  ASSERT_EQ(frames->size(), 2u);
  EXPECT_EQ((*frames)[0].bytes, "abc");
  EXPECT_EQ((*frames)[1].kind, FrameKind::kSignal);
  buffer += third.substr(3);
  frames = TakeFrames(buffer);
  ASSERT_TRUE(frames.ok());
  EXPECT_EQ(frames->size(), 1u);
  EXPECT_TRUE(buffer.empty());
  buffer = EncodeFrame(FrameKind::kDetach, "");
  frames = TakeFrames(buffer);
  ASSERT_TRUE(frames.ok());
  EXPECT_EQ((*frames)[0].kind, FrameKind::kDetach);
  buffer = "hello";
  EXPECT_FALSE(TakeFrames(buffer).ok());
}

TEST(ReadAgentLine, FindsItBehindNoiseAndByItsNonce) {
  AgentLine found;
  const std::string line = MakeAgentLine("n1", kWordStarted, "1+abc 77");
  EXPECT_TRUE(ReadAgentLine(line, "n1", &found));
  EXPECT_EQ(found.word, kWordStarted);
  EXPECT_EQ(found.rest, "1+abc 77\n");
  EXPECT_FALSE(ReadAgentLine(line, "n2", &found));
  EXPECT_TRUE(ReadAgentLine("no end of line" + line, "n1", &found));
  EXPECT_EQ(found.before, "no end of line");
}

TEST(WireVersion, IsOneWord) { EXPECT_THAT(WireVersion(), testing::Not(HasSubstr(" "))); }

}  // namespace
}  // namespace hlaunch
