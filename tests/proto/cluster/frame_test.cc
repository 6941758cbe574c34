// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(EncodeFrameOf, LengthHasTheMostSignificantByteFirst) {
  EXPECT_EQ(EncodeFrameOf("{}"), std::string("\0\0\0\2{}", 6));
  EXPECT_EQ(EncodeFrameOf(std::string(0x10203, ' ')).substr(0, 4), std::string("\0\1\2\3", 4));
}

TEST(FrameReader, TakesFramesThatComeByteByByte) {
  const std::string bytes = EncodeFrameOf("{\"a\":1}") + EncodeFrameOf("{}");
  FrameReader reader(kMaxStrangerFrame);
  std::vector<std::string> all;
  for (const char byte : bytes) {
    const auto frames = reader.Take(absl::string_view(&byte, 1));
    ASSERT_TRUE(frames.ok());
    all.insert(all.end(), frames->begin(), frames->end());
  }
  EXPECT_THAT(all, ElementsAre("{\"a\":1}", "{}"));
  EXPECT_EQ(reader.waiting(), 0u);
}

TEST(FrameReader, TakesManyAtOnceAndKeepsTheRest) {
  const std::string third = EncodeFrameOf("{\"c\":3}");
  FrameReader reader(kMaxStrangerFrame);
  const auto frames = reader.Take(EncodeFrameOf("{}") + EncodeFrameOf("[]") + third.substr(0, 6));
  ASSERT_TRUE(frames.ok());
  EXPECT_THAT(*frames, ElementsAre("{}", "[]"));
  EXPECT_EQ(reader.waiting(), 6u);
  const auto rest = reader.Take(third.substr(6));
  ASSERT_TRUE(rest.ok());
  EXPECT_THAT(*rest, ElementsAre("{\"c\":3}"));
}

TEST(FrameReader, RefusesALongFrameByItsHeadAlone) {
  FrameReader reader(100);
  const auto refused = reader.Take(EncodeFrameOf(std::string(101, ' ')).substr(0, 4));
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("101 bytes; at most 100"));
  FrameReader wider(100);
  wider.set_max_frame(101);
  EXPECT_TRUE(wider.Take(EncodeFrameOf(std::string(101, ' '))).ok());
}

TEST(FrameReader, RefusesAnEmptyFrame) {
  FrameReader reader(100);
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Take(absl::string_view("\0\0\0\0", 4)).status()));
}

TEST(FrameReader, WaitsForALengthThatIsNotWhole) {
  FrameReader reader(100);
  const auto frames = reader.Take(absl::string_view("\0\0\0", 3));
  ASSERT_TRUE(frames.ok());
  EXPECT_THAT(*frames, IsEmpty());
}

}  // namespace
}  // namespace hlaunch
