// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/comm_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/net/socket/route.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

const std::vector<InterfaceAddress> kHost = {{"lo", "127.0.0.1"},    {"docker0", "172.17.0.1"},
                                             {"eth0", "10.0.0.5"},   {"eth1", "192.168.7.5"},
                                             {"eth10", "10.9.0.5"},  {"lo", "::1"},
                                             {"eth1", "2001:db8::5"}};

std::string Chosen(absl::string_view wish, absl::string_view route, bool several_hosts = true) {
  const auto chosen = ChooseAddress(kHost, wish, route, several_hosts);
  return chosen.ok() ? *chosen : std::string(chosen.status().message());
}

TEST(ChooseAddress, IsThatOfTheRouteWithoutAWish) {
  EXPECT_EQ(Chosen("", "192.168.7.5"), "192.168.7.5");
  EXPECT_EQ(Chosen("", "2001:db8::5"), "2001:db8::5");
  EXPECT_EQ(Chosen("", "127.0.0.1", false), "127.0.0.1");
  EXPECT_EQ(Chosen("", "127.0.0.2", false), "127.0.0.2");  // Loopback, though not listed.
  EXPECT_EQ(Chosen("", "10.77.0.1"), "10.77.0.1");
}

// Debian maps a host's own name to 127.0.1.1.
TEST(ChooseAddress, IsNoLoopbackWhereThereAreOtherHosts) {
  EXPECT_EQ(Chosen("", "127.0.1.1"), "10.0.0.5");
  EXPECT_EQ(Chosen("", "::1"), "2001:db8::5");
  EXPECT_EQ(Chosen("", ""), "10.0.0.5");
  EXPECT_EQ(*ChooseAddress({{"lo", "127.0.0.1"}}, "", "", true), "127.0.0.1");
  // An agent stands in for the store and says which interface leads to the others.
  const std::vector<InterfaceAddress> two = {{"lo", "127.0.0.1"},
                                             {"eth0", "192.168.0.7"},
                                             {"docker1", "10.0.0.7"},
                                             {"docker1", "fd00::7"}};
  EXPECT_EQ(*ChooseAddress(two, "", "127.0.0.1", true, "docker1"), "10.0.0.7");
  EXPECT_EQ(*ChooseAddress(two, "eth", "127.0.0.1", true, "docker1"), "192.168.0.7");
  EXPECT_EQ(*ChooseAddress(two, "", "192.168.0.7", true, "docker1"), "192.168.0.7");
  EXPECT_EQ(*ChooseAddress(two, "", "127.0.0.1", true, "gone"), "192.168.0.7");
  EXPECT_EQ(*ChooseAddress({}, "", "", true), "127.0.0.1");
}

TEST(ChooseAddress, FollowsTheWish) {
  EXPECT_EQ(Chosen("eth1", "10.0.0.5"), "192.168.7.5");
  EXPECT_EQ(Chosen("eth1", "10.9.0.5"), "10.9.0.5");  // A prefix that also matches eth10.
  EXPECT_EQ(Chosen("=eth1", "10.9.0.5"), "192.168.7.5");
  EXPECT_EQ(Chosen("=eth1", "::1"), "2001:db8::5");
  EXPECT_EQ(Chosen("ib,docker", "10.0.0.5"), "172.17.0.1");
  EXPECT_EQ(Chosen("^eth0,docker", "10.0.0.5"), "192.168.7.5");
  EXPECT_EQ(Chosen("^=eth1,docker0", "192.168.7.5"), "10.0.0.5");
  EXPECT_EQ(Chosen("lo", "10.0.0.5"), "127.0.0.1");
}

TEST(ChooseAddress, AWishThatNothingFulfilsNamesWhatIsThere) {
  EXPECT_THAT(Chosen("ib0", "10.0.0.5"),
              AllOf(HasSubstr("HLAUNCH_SOCKET_IFNAME=ib0"),
                    EndsWith("there are docker0, eth0, eth1, eth10, lo")));  // No name twice.
  EXPECT_THAT(Chosen("=eth", "10.0.0.5"), HasSubstr("HLAUNCH_SOCKET_IFNAME"));
}

TEST(InterfaceAddresses, AreThisHostsOwn) {
  bool loopback = false;
  for (const InterfaceAddress& address : InterfaceAddresses()) {
    EXPECT_TRUE(IsOwnAddress(address.literal)) << address.interface << " " << address.literal;
    loopback = loopback || address.literal == "127.0.0.1";
  }
  EXPECT_TRUE(loopback);
}

}  // namespace
}  // namespace hlaunch
