// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/sealed_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

const std::string kKey = RecordKeyOf("a token");

TEST(SealedText, IsReadByWhoHasTheToken) {
  for (const std::string& text : {std::string(), std::string("abc"), std::string(100'000, '\0')}) {
    const std::string sealed = SealText(kKey, "a", text);
    EXPECT_TRUE(IsSealed(sealed));
    EXPECT_LT(sealed.size(), text.size() + 50);
    const auto opened = OpenText(RecordKeyOf("a token"), "a", sealed);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(*opened, text);
  }
  EXPECT_THAT(SealText(kKey, "a", "the secret"), testing::Not(testing::HasSubstr("secret")));
  EXPECT_NE(SealText(kKey, "a", "abc"), SealText(kKey, "a", "abc"));
}

TEST(SealedText, IsOfNoUseToOthersOrUnderAnotherName) {
  const std::string sealed = SealText(kKey, "a", "abc");
  EXPECT_TRUE(absl::IsDataLoss(OpenText(RecordKeyOf("another"), "a", sealed).status()));
  EXPECT_TRUE(absl::IsDataLoss(OpenText(kKey, "b", sealed).status()));
  EXPECT_TRUE(absl::IsDataLoss(OpenText("", "a", sealed).status()));
  EXPECT_TRUE(absl::IsDataLoss(OpenText(kKey, "a", "abc").status()));
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(absl::IsDataLoss(OpenText(kKey, "a", changed).status())) << i;
    EXPECT_TRUE(absl::IsDataLoss(OpenText(kKey, "a", sealed.substr(0, i)).status())) << i;
  }
}

TEST(SealedText, IsNotMadeWithoutAKey) { EXPECT_EQ(SealText("", "a", "abc"), ""); }

}  // namespace
}  // namespace hlaunch
