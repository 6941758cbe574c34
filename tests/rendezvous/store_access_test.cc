// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

StoreAddress Address(absl::string_view literal) { return ParseStoreAllow(literal)->known[0].first; }

bool Admits(absl::string_view allow, absl::string_view source) {
  return DecideAdmission(*ParseStoreAllow(allow), Address(source)).admitted;
}

TEST(DecideAdmission, AdmitsAddressesAndRangesOfBothFamilies) {
  EXPECT_TRUE(Admits("10.0.0.7", "10.0.0.7"));
  EXPECT_FALSE(Admits("10.0.0.7", "10.0.0.8"));
  EXPECT_TRUE(Admits("10.1.0.0/16, fd00::/9", "10.1.255.3"));
  EXPECT_FALSE(Admits("10.1.0.0/16", "10.2.0.1"));
  EXPECT_TRUE(Admits("10.1.0.0/16,fd00::/9", "fd7f::1"));
  EXPECT_FALSE(Admits("10.1.0.0/16,fd00::/9", "fd80::1"));
  EXPECT_TRUE(Admits("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(Admits("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(Admits("10.0.0.7", "::ffff:10.0.0.7"));  // As a listener for both families sees it.
}

TEST(DecideAdmission, AdmitsThisHost) {
  EXPECT_TRUE(Admits("10.0.0.7", "127.0.0.1"));
  EXPECT_TRUE(Admits("10.0.0.7", "127.3.2.1"));
  EXPECT_TRUE(Admits("10.0.0.7", "::1"));
}

TEST(DecideAdmission, SaysWhoIsRefusedAndWhatToSet) {
  const AdmissionVerdict verdict =
      DecideAdmission(*ParseStoreAllow("10.0.0.0/8"), Address("192.0.2.5"));
  EXPECT_THAT(verdict.reason, testing::HasSubstr("192.0.2.5"));
  EXPECT_THAT(verdict.reason, testing::HasSubstr("--store-allow"));
  EXPECT_EQ(DecideAdmission(*ParseStoreAllow("10.0.0.0/8"), Address("10.3.3.3")).reason, "");
}

TEST(DecideAdmission, WarnsOfAStrangerWhereNoneAreRefused) {
  StoreAccess access = *ParseStoreAllow("10.0.0.0/8");
  access.refuse_others = false;
  const AdmissionVerdict verdict = DecideAdmission(access, Address("192.0.2.5"));
  EXPECT_TRUE(verdict.admitted);
  EXPECT_THAT(verdict.reason, testing::HasSubstr("192.0.2.5"));
}

TEST(ParseStoreAllow, NamesWhatIsWrong) {
  for (const char* entry : {"", "node0", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                            "fd00::/129", "10.0.0.0/8/8", "1.2.3.4:80"}) {
    const auto access = ParseStoreAllow(absl::string_view(entry));
    ASSERT_TRUE(absl::IsInvalidArgument(access.status())) << entry;
    EXPECT_THAT(std::string(access.status().message()), testing::HasSubstr(entry));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseStoreAllow("10.0.0.1,x").status()));
}

}  // namespace
}  // namespace hlaunch
