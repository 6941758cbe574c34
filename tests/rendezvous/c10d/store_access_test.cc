// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/c10d/store_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

StoreAddress Address(absl::string_view literal) { return ParseStoreAllow(literal)->known[0].first; }

bool Admits(absl::string_view allow, absl::string_view source) {
  return DecideAdmission(*ParseStoreAllow(allow), Address(source), Address("10.9.9.9")).admitted;
}

// The verdict in a round with these members, at the host `own`.
AdmissionVerdict InRound(const StoreAccess& wished, absl::string_view source,
                         absl::string_view local = "10.0.0.1",
                         const std::string& own = "10.0.0.1") {
  const StoreAccess access = AccessOfRound(wished, {"10.0.0.9", "10.0.0.2", "fd00::2%eth0"}, own);
  return DecideAdmission(access, Address(source), Address(local));
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
  EXPECT_TRUE(Admits("10.0.0.7", "::ffff:10.0.0.7"));  // The form that a dual-stack listener sees.
}

TEST(DecideAdmission, AdmitsThisHost) {
  EXPECT_TRUE(Admits("10.0.0.7", "127.0.0.1"));
  EXPECT_TRUE(Admits("10.0.0.7", "127.3.2.1"));
  EXPECT_TRUE(Admits("10.0.0.7", "::1"));
  EXPECT_TRUE(Admits("10.0.0.7", "10.9.9.9"));  // The source is the address that it called.
}

TEST(DecideAdmission, SaysWhoIsRefusedAndWhatToSet) {
  const AdmissionVerdict verdict =
      DecideAdmission(*ParseStoreAllow("10.0.0.0/8"), Address("192.0.2.5"), Address("10.0.0.1"));
  EXPECT_THAT(verdict.reason, testing::HasSubstr("192.0.2.5"));
  EXPECT_THAT(verdict.reason, testing::HasSubstr("--store-allow"));
  EXPECT_EQ(
      DecideAdmission(*ParseStoreAllow("10.0.0.0/8"), Address("10.3.3.3"), Address("10.0.0.1"))
          .reason,
      "");
}

TEST(DecideAdmission, KnowsTheMembersOfTheRoundAndRefusesOthers) {
  const StoreAccess unless_told;  // Without --store-allow.
  for (const char* member : {"10.0.0.2", "10.0.0.9", "fd00::2", "10.0.0.1", "127.0.0.1"}) {
    EXPECT_EQ(InRound(unless_told, member).reason, "") << member;
    EXPECT_EQ(InRound(*ParseStoreAllow("members"), member).reason, "") << member;
  }
  EXPECT_FALSE(InRound(unless_told, "10.0.0.3").admitted);
  EXPECT_THAT(InRound(unless_told, "10.0.0.3").reason,
              testing::HasSubstr("--store-allow=members,10.0.0.3"));
  EXPECT_FALSE(InRound(*ParseStoreAllow("members"), "10.0.0.3").admitted);
  EXPECT_TRUE(InRound(*ParseStoreAllow("members, 10.0.0.3"), "10.0.0.3").admitted);
  EXPECT_FALSE(InRound(*ParseStoreAllow("10.0.0.3"), "10.0.0.2").admitted);  // It is not named.
  for (const char* stranger : {"10.0.0.3", "fd00::3"}) {
    EXPECT_EQ(InRound(*ParseStoreAllow("all"), stranger).reason, "") << stranger;
  }
}

TEST(DecideAdmission, NamesStrangersWhereAddressesAreTranslatedUnlessItIsToRefuseThem) {
  const AdmissionVerdict named = InRound(StoreAccess(), "10.0.0.3", "192.168.0.1", "");
  EXPECT_TRUE(named.admitted);
  EXPECT_THAT(named.reason, testing::HasSubstr("10.0.0.3"));
  EXPECT_FALSE(InRound(*ParseStoreAllow("members"), "10.0.0.3", "192.168.0.1", "").admitted);
}

TEST(DecideAdmission, ServesAtMasterAddrAndLoopbackAlone) {
  const StoreAccess access;
  EXPECT_TRUE(InRound(access, "10.0.0.2", "10.0.0.1").admitted);
  EXPECT_TRUE(InRound(access, "10.0.0.2", "::ffff:10.0.0.1").admitted);
  EXPECT_TRUE(InRound(access, "127.0.0.1", "127.0.0.1").admitted);
  const AdmissionVerdict elsewhere = InRound(access, "10.0.0.2", "192.168.0.1");
  EXPECT_FALSE(elsewhere.admitted);
  EXPECT_THAT(elsewhere.reason,
              testing::AllOf(testing::HasSubstr("192.168.0.1"),
                             testing::HasSubstr("MASTER_ADDR, which is 10.0.0.1")));
  // MASTER_ADDR leads here through a NAT or a virtual address, so connections do not show it.
  EXPECT_TRUE(InRound(access, "10.0.0.2", "192.168.0.1", "").admitted);
  // All nodes are on one host: no other host needs the store.
  EXPECT_FALSE(InRound(access, "10.0.0.2", "10.0.0.1", "127.0.0.1").admitted);
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
