// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/membership/join_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::MatchesRegex;
using testing::Not;

constexpr char kPin[] = "0123456789abcdef0123456789abcdef";

TEST(MakeJoinToken, MakesAnotherOneEachTime) {
  const JoinToken a = MakeJoinToken(kPin);
  const JoinToken b = MakeJoinToken(kPin);
  EXPECT_THAT(a.id, MatchesRegex("[0-9a-f]{16}"));
  EXPECT_THAT(a.secret, MatchesRegex("[0-9a-f]{48}"));
  EXPECT_EQ(a.pin, kPin);
  EXPECT_NE(a.id, b.id);
  EXPECT_NE(a.secret, b.secret);
}

TEST(ReadJoinToken, ReadsWhatWasWritten) {
  for (int i = 0; i < 100; ++i) {
    const JoinToken token = MakeJoinToken(kPin);
    EXPECT_THAT(TextOf(token), MatchesRegex("hlj1\\.[A-Za-z0-9_-]{43}\\.[0-9a-f]{32}"));
    const auto read = ReadJoinToken(TextOf(token));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, token);
  }
}

TEST(ReadJoinToken, RefusesWhatIsNotWholeAndShowsNothingOfIt) {
  const std::string whole = TextOf(MakeJoinToken(kPin));
  std::string upper = whole;
  upper[whole.size() - 2] = 'E';
  std::string other_bits = whole;  // Only four bits of the last letter belong to the token.
  char& last = other_bits[5 + 42];
  last = last == 'A' ? 'B' : static_cast<char>(last + 1);
  for (const std::string& text :
       {std::string(), std::string("hlj1."), whole.substr(1), whole.substr(0, whole.size() - 1),
        absl::StrCat(whole, "0"), absl::StrCat(whole, "\n"), absl::StrCat("hlj2", whole.substr(4)),
        upper, other_bits, absl::StrCat("hlj1.", std::string(43, '!'), ".", kPin)}) {
    const auto read = ReadJoinToken(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(read.status().message(), ReadJoinToken("").status().message());
  }
}

TEST(HashOfSecret, TellsSecretsApartAndNotWhatTheyAre) {
  EXPECT_EQ(HashOfSecret(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_NE(HashOfSecret("a"), HashOfSecret("b"));
}

}  // namespace
}  // namespace hlaunch
