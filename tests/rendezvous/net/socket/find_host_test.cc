// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/find_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NameServices, AreFilesAndDnsWhereNothingIsSaid) {
  EXPECT_EQ(OwnNameServices(""), "files dns");
  EXPECT_FALSE(NamesOtherServices(""));
  EXPECT_EQ(OwnNameServices("passwd: files sss\n# hosts: sss\n"), "files dns");
  EXPECT_FALSE(NamesOtherServices("passwd: files sss\n# hosts: sss\n"));
}

TEST(NameServices, AreThoseOfTheFileThatNeedNoLibrary) {
  const auto debian = "hosts:          files mdns4_minimal [NOTFOUND=return] dns\n";
  EXPECT_EQ(OwnNameServices(debian), "files dns");
  EXPECT_TRUE(NamesOtherServices(debian));
  const auto fedora =
      "passwd: sss\nhosts:\tfiles myhostname resolve [!UNAVAIL = return] dns # all\n";
  EXPECT_EQ(OwnNameServices(fedora), "files dns");
  EXPECT_TRUE(NamesOtherServices(fedora));
  EXPECT_EQ(OwnNameServices("hosts: files\n"), "files");
  EXPECT_FALSE(NamesOtherServices("hosts: files\n"));
  EXPECT_FALSE(NamesOtherServices("hosts: dns [!UNAVAIL=return] files"));
  EXPECT_EQ(OwnNameServices("hosts: dns [!UNAVAIL=return] files"), "dns files");
  EXPECT_EQ(OwnNameServices("hosts: sss"), "files dns");
}

TEST(AddressesInGetent, AreEachToldOnce) {
  EXPECT_THAT(AddressesInGetent("10.0.0.7       STREAM node7.example\n10.0.0.7       DGRAM  \n"
                                "fd00::7\tSTREAM \n"),
              ElementsAre("10.0.0.7", "fd00::7"));
  EXPECT_THAT(AddressesInGetent(""), IsEmpty());
  EXPECT_THAT(AddressesInGetent("usage: getent\n"), IsEmpty());
}

TEST(FindHost, KnowsThisHostAndLiterals) {
  EXPECT_THAT(FindHost("localhost").literals, Contains("127.0.0.1"));
  EXPECT_THAT(FindHost("192.0.2.1").literals, ElementsAre("192.0.2.1"));
  EXPECT_EQ(FindHost("192.0.2.1").error, 0);
}

TEST(FindHost, SaysWhyNot) {
  const FoundHost found = FindHost("no..name");
  EXPECT_NE(found.error, 0);
  EXPECT_NE(found.why, "");
  EXPECT_THAT(found.literals, IsEmpty());
}

}  // namespace
}  // namespace hlaunch
