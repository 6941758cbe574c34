// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/access/store_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

StoreAddress Address(absl::string_view literal) { return ParseStoreAllow(literal)->known[0].first; }

Admission AdmissionOf(absl::string_view allow, absl::string_view source) {
  return DecideAdmission(*ParseStoreAllow(allow), Address(source), Address("10.9.9.9")).admission;
}

bool Admits(absl::string_view allow, absl::string_view source) {
  return AdmissionOf(allow, source) == Admission::kServe;
}

bool Admits(const AdmissionVerdict& verdict) { return verdict.admission == Admission::kServe; }

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

TEST(DecideAdmission, AsksTheKernelWhoseAConnectionOfThisHostIs) {
  // In the last one the source is the address that it called.
  for (const char* source : {"127.0.0.1", "127.3.2.1", "::1", "10.9.9.9"}) {
    EXPECT_EQ(AdmissionOf("10.0.0.7", source), Admission::kAskKernel) << source;
    EXPECT_EQ(AdmissionOf("all", source), Admission::kServe) << source;
  }
  EXPECT_EQ(AdmissionOf("members,127.0.0.0/8", "127.0.0.1"), Admission::kServe);
}

TEST(DecideAdmission, AsksAgentsWhoseTheConnectionsOfMembersAre) {
  StoreAccess access;
  access.vouched = true;
  EXPECT_EQ(InRound(access, "10.0.0.2").admission, Admission::kAskAgent);
  EXPECT_EQ(InRound(access, "10.0.0.3").admission, Admission::kRefuse);
  EXPECT_EQ(InRound(access, "10.0.0.1").admission, Admission::kAskKernel);
  // Where MASTER_ADDR is translated, no address says enough.
  EXPECT_EQ(InRound(access, "10.0.0.3", "192.168.0.1", "").admission, Admission::kAskAgent);
  access.any_user = true;
  EXPECT_EQ(InRound(access, "10.0.0.2").admission, Admission::kServe);
  EXPECT_EQ(InRound(access, "10.0.0.1").admission, Admission::kServe);
  EXPECT_EQ(InRound(access, "10.0.0.3").admission, Admission::kRefuse);
  StoreAccess named = *ParseStoreAllow("members,10.0.0.9");
  named.vouched = true;
  EXPECT_EQ(InRound(named, "10.0.0.9").admission, Admission::kServe);
  EXPECT_EQ(InRound(named, "10.0.0.2").admission, Admission::kAskAgent);
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
  EXPECT_FALSE(Admits(InRound(unless_told, "10.0.0.3")));
  EXPECT_THAT(InRound(unless_told, "10.0.0.3").reason,
              testing::HasSubstr("--store-allow=members,10.0.0.3"));
  EXPECT_FALSE(Admits(InRound(*ParseStoreAllow("members"), "10.0.0.3")));
  EXPECT_TRUE(Admits(InRound(*ParseStoreAllow("members, 10.0.0.3"), "10.0.0.3")));
  EXPECT_FALSE(Admits(InRound(*ParseStoreAllow("10.0.0.3"), "10.0.0.2")));  // It is not named.
  for (const char* stranger : {"10.0.0.3", "fd00::3"}) {
    EXPECT_EQ(InRound(*ParseStoreAllow("all"), stranger).reason, "") << stranger;
  }
}

TEST(DecideAdmission, NamesStrangersWhereAddressesAreTranslatedUnlessItIsToRefuseThem) {
  const AdmissionVerdict named = InRound(StoreAccess(), "10.0.0.3", "192.168.0.1", "");
  EXPECT_TRUE(Admits(named));
  EXPECT_THAT(named.reason, testing::HasSubstr("10.0.0.3"));
  EXPECT_FALSE(Admits(InRound(*ParseStoreAllow("members"), "10.0.0.3", "192.168.0.1", "")));
}

TEST(DecideAdmission, ServesAtMasterAddrAndLoopbackAlone) {
  const StoreAccess access;
  EXPECT_TRUE(Admits(InRound(access, "10.0.0.2", "10.0.0.1")));
  EXPECT_TRUE(Admits(InRound(access, "10.0.0.2", "::ffff:10.0.0.1")));
  EXPECT_EQ(InRound(access, "127.0.0.1", "127.0.0.1").admission, Admission::kAskKernel);
  const AdmissionVerdict elsewhere = InRound(access, "10.0.0.2", "192.168.0.1");
  EXPECT_FALSE(Admits(elsewhere));
  EXPECT_THAT(elsewhere.reason,
              testing::AllOf(testing::HasSubstr("192.168.0.1"),
                             testing::HasSubstr("MASTER_ADDR, which is 10.0.0.1")));
  // MASTER_ADDR leads here through a NAT or a virtual address, so connections do not show it.
  EXPECT_TRUE(Admits(InRound(access, "10.0.0.2", "192.168.0.1", "")));
  // All nodes are on one host: no other host needs the store.
  EXPECT_FALSE(Admits(InRound(access, "10.0.0.2", "10.0.0.1", "127.0.0.1")));
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
