// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/hosting.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hlaunch {
namespace {

using Addresses = std::vector<std::string>;

const std::vector<LocalAddress> kHost = {{"lo", "127.0.0.1"},
                                         {"lo", "::1"},
                                         {"eth0", "10.77.0.10"},
                                         {"eth0", "fd00::10"},
                                         {"ib0", "192.168.5.10"}};

JobSpec Spec(JobMode mode, const std::string& host, std::optional<int> node_rank = std::nullopt) {
  JobSpec spec;
  spec.mode = mode;
  spec.policy.max_nodes = 2;
  spec.endpoint = {host, 29400};
  spec.node_rank = node_rank;
  return spec;
}

struct Row {
  const char* what;
  JobSpec spec;
  absl::StatusOr<Addresses> resolved;
  bool hosts;
  const char* bind_address;
  const char* reason;
};

TEST(DecideHosting, FollowsAddressOrRank) {
  const absl::Status unknown = absl::InvalidArgumentError("node0 does not resolve: unknown");
  const Row rows[] = {
      {"own name", Spec(JobMode::kEndpoint, "node0"), Addresses{"10.77.0.10"}, true, "",
       "node0 resolves to 10.77.0.10, which is eth0 of this host"},
      {"second interface", Spec(JobMode::kEndpoint, "node0-ib"), Addresses{"192.168.5.10"}, true,
       "", "node0-ib resolves to 192.168.5.10, which is ib0 of this host"},
      {"one of several", Spec(JobMode::kEndpoint, "node0"), Addresses{"10.9.9.9", "fd00::10"}, true,
       "", "node0 resolves to fd00::10, which is eth0 of this host"},
      {"Debian's own name", Spec(JobMode::kEndpoint, "node0"), Addresses{"127.0.1.1"}, true, "",
       "node0 resolves to 127.0.1.1, which is this host's loopback"},
      {"another's name", Spec(JobMode::kEndpoint, "node1"), Addresses{"10.77.0.11"}, false, "",
       "node1 resolves to 10.77.0.11, which is no address of this host"},
      {"own literal", Spec(JobMode::kEndpoint, "10.77.0.10"), Addresses{"10.77.0.10"}, true, "",
       "10.77.0.10 is eth0 of this host"},
      {"another's literal", Spec(JobMode::kEndpoint, "10.77.0.11"), Addresses{"10.77.0.11"}, false,
       "", "10.77.0.11 is no address of this host"},
      {"loopback literal", Spec(JobMode::kEndpoint, "127.0.0.1"), Addresses{"127.0.0.1"}, true,
       "127.0.0.1", "127.0.0.1 is lo of this host"},
      {"IPv6 loopback", Spec(JobMode::kEndpoint, "::1"), Addresses{"::1"}, true, "::1",
       "::1 is lo of this host"},
      {"localhost", Spec(JobMode::kEndpoint, "localhost"), Addresses{"::1", "127.0.0.1"}, true,
       "127.0.0.1", "localhost resolves to ::1, which is lo of this host"},
      {"no such name", Spec(JobMode::kEndpoint, "node0"), unknown, false, "",
       "node0 does not resolve: unknown"},
      {"own name, not known yet", Spec(JobMode::kEndpoint, "pod-0.svc"), unknown, true, "",
       "pod-0.svc does not resolve yet and is this host's name"},
      {"longer name, not known yet", Spec(JobMode::kEndpoint, "pod-01"), unknown, false, "",
       "node0 does not resolve: unknown"},
      {"rank does not host an endpoint", Spec(JobMode::kEndpoint, "node1", 0),
       Addresses{"10.77.0.11"}, false, "",
       "node1 resolves to 10.77.0.11, which is no address of this host"},
      {"static rank 0", Spec(JobMode::kStatic, "service", 0), Addresses{"10.96.0.1"}, true, "",
       "this is node rank 0"},
      {"static rank 0, unknown name", Spec(JobMode::kStatic, "node0", 0), unknown, true, "",
       "this is node rank 0"},
      {"static rank 0 on loopback", Spec(JobMode::kStatic, "127.0.0.1", 0), Addresses{"127.0.0.1"},
       true, "127.0.0.1", "this is node rank 0"},
      {"static rank 1 on the same host", Spec(JobMode::kStatic, "node0", 1),
       Addresses{"10.77.0.10"}, false, "", "this is node rank 1 and rank 0 hosts at node0:29400"},
      {"static without rank", Spec(JobMode::kStatic, "node0"), Addresses{"10.77.0.10"}, true, "",
       "node0 resolves to 10.77.0.10, which is eth0 of this host"},
      {"listening", Spec(JobMode::kListenAndPrint, ""), Addresses{}, true, "",
       "no other place was named"},
      {"alone", Spec(JobMode::kSingleNode, ""), Addresses{}, false, "",
       "a single node meets nobody"},
  };
  for (const Row& row : rows) {
    const HostingVerdict verdict = DecideHosting(row.spec, row.resolved, kHost, "pod-0");
    EXPECT_EQ(verdict.hosts, row.hosts) << row.what;
    EXPECT_EQ(verdict.bind_address, row.bind_address) << row.what;
    EXPECT_EQ(verdict.reason, row.reason) << row.what;
  }
}

TEST(PickReachableAddress, PrefersTheDefaultRoute) {
  EXPECT_EQ(PickReachableAddress("192.168.5.10", kHost), "192.168.5.10");
}

TEST(PickReachableAddress, ElseTakesTheFirstThatOthersReach) {
  EXPECT_EQ(PickReachableAddress(std::nullopt, kHost), "10.77.0.10");
  EXPECT_EQ(PickReachableAddress(std::nullopt, {{"lo", "127.0.0.1"},
                                                {"eth0", "fe80::1%eth0"},
                                                {"eth0", "169.254.1.1"},
                                                {"eth0", "fd00::10"}}),
            "fd00::10");
  EXPECT_EQ(PickReachableAddress(std::nullopt, {{"lo", "127.0.0.1"}, {"lo", "::1"}}), std::nullopt);
}

TEST(ListLocalAddresses, KnowsLoopback) {
  const auto local = ListLocalAddresses();
  ASSERT_TRUE(local.ok());
  EXPECT_TRUE(std::any_of(local->begin(), local->end(), [](const LocalAddress& own) {
    return own.address == "127.0.0.1" && !own.interface.empty();
  }));
}

}  // namespace
}  // namespace hlaunch
