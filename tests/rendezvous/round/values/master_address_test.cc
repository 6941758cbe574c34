// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/master_address.h"

#include "gtest/gtest.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

TEST(MasterAddress, IsWhereAllMembersReachNodeRankZero) {
  struct Member {
    std::string address, route_address;
  };
  struct Case {
    std::string what;
    std::vector<Member> members;
    std::string master;
  };
  const Case cases[] = {
      {"one node", {{"127.0.0.1", "127.0.0.1"}}, "127.0.0.1"},
      {"one node, IPv6", {{"::1", "::1"}}, "::1"},
      {"nothing known", {{"", ""}}, "127.0.0.1"},
      {"rank 0 elsewhere", {{"10.0.0.7", "10.0.0.1"}, {"127.0.0.1", "127.0.0.1"}}, "10.0.0.7"},
      {"rank 0 hosts", {{"127.0.0.1", "127.0.0.1"}, {"10.0.0.7", "10.0.0.1"}}, "10.0.0.1"},
      {"Debian's loopback", {{"127.0.1.1", "127.0.1.1"}, {"10.0.0.7", "10.0.0.1"}}, "10.0.0.1"},
      {"rank 0 hosts, IPv6", {{"::1", "::1"}, {"fd00::7", "fd00::1"}}, "fd00::1"},
      {"IPv4 in IPv6", {{"::ffff:127.0.0.1", "::1"}, {"fd00::7", "fd00::1"}}, "fd00::1"},
      {"two agents on the host and one elsewhere",
       {{"127.0.0.1", "127.0.0.1"}, {"127.0.0.1", "127.0.0.1"}, {"10.0.0.7", "10.0.0.1"}},
       "10.0.0.1"},
      {"all on one host", {{"127.0.0.1", "127.0.0.1"}, {"127.0.0.1", "127.0.0.1"}}, "127.0.0.1"},
  };
  for (const Case& c : cases) {
    std::vector<NodeInfo> infos(c.members.size());
    std::vector<const NodeInfo*> members;
    for (size_t i = 0; i < infos.size(); ++i) {
      infos[i].address = c.members[i].address;
      infos[i].route_address = c.members[i].route_address;
      members.push_back(&infos[i]);
    }
    EXPECT_EQ(MasterAddress(members), c.master) << c.what;
  }
}

TEST(SelectAnnounced, TakesWhatOneHostAloneHasIPv4First) {
  EXPECT_EQ(SelectAnnounced({"127.0.0.1", "::1", "fd00::2", "10.0.0.2", "169.254.0.2",
                             "fe80::2%eth0", "10.1.0.2"}),
            (std::vector<std::string>{"10.0.0.2", "10.1.0.2", "fd00::2"}));
  EXPECT_EQ(SelectAnnounced(std::vector<std::string>(100, "10.0.0.2")).size(), kMaxOtherAddresses);
}

TEST(MemberAddresses, AreAllThatTheNodesAnnounceAndFewerOfEachOfManyNodes) {
  NodeInfo node;
  node.address = node.seen_address = "10.0.0.2";
  node.other_addresses = {"10.0.0.2", "10.1.0.2", "fd00::2"};
  const std::vector<const NodeInfo*> one = {&node};
  EXPECT_EQ(MemberAddresses(one), (std::vector<std::string>{"10.0.0.2", "10.1.0.2", "fd00::2"}));
  const std::vector<const NodeInfo*> many(kMaxMemberAddresses / 2, &node);
  EXPECT_EQ(MemberAddresses(many), (std::vector<std::string>{"10.0.0.2", "10.1.0.2"}));
}

TEST(MemberAddresses, AreWhereTheMembersWorkersComeFrom) {
  struct Member {
    std::string address, route_address, seen_address;
  };
  struct Case {
    std::string what;
    std::vector<Member> members;
    std::vector<std::string> addresses;
  };
  const Case cases[] = {
      {"one node", {{"127.0.0.1", "127.0.0.1", ""}}, {}},
      {"a rendezvous elsewhere",
       {{"10.0.0.7", "10.0.0.1", "10.0.0.7"}, {"10.0.0.8", "10.0.0.1", "10.0.0.8"}},
       {"10.0.0.7", "10.0.0.8"}},
      {"two nodes on a host",
       {{"10.0.0.7", "10.0.0.1", ""}, {"10.0.0.7", "10.0.0.1", ""}},
       {"10.0.0.7"}},
      {"the second node's rendezvous, on two networks",
       {{"10.0.0.7", "10.0.0.1", "10.0.0.7"},
        {"127.0.0.1", "127.0.0.1", "127.0.0.1"},
        {"10.1.0.8", "10.1.0.1", "10.1.0.8"}},
       {"10.0.0.1", "10.0.0.7", "10.1.0.1", "10.1.0.8"}},
      {"behind a NAT", {{"192.168.0.7", "10.0.0.1", "10.0.0.254"}}, {"10.0.0.254", "192.168.0.7"}},
  };
  for (const Case& c : cases) {
    std::vector<NodeInfo> infos(c.members.size());
    std::vector<const NodeInfo*> members;
    for (size_t i = 0; i < infos.size(); ++i) {
      infos[i].address = c.members[i].address;
      infos[i].route_address = c.members[i].route_address;
      infos[i].seen_address = c.members[i].seen_address;
      members.push_back(&infos[i]);
    }
    EXPECT_EQ(MemberAddresses(members), c.addresses) << c.what;
  }
}

TEST(IsLoopback, MeansNobodyElseCanReachIt) {
  for (const char* address : {"", "127.0.0.1", "127.0.1.1", "127.255.0.3", "0.0.0.0", "::", "::1",
                              "::ffff:127.0.1.1", "localhost", "nonsense"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address :
       {"10.1.2.3", "128.0.0.1", "fd00::1", "fe80::1%eth0", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

}  // namespace
}  // namespace hlaunch
