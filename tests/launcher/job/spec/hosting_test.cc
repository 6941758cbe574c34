// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/hosting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Role = HostingRole;
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
  spec.node.rank = node_rank;
  return spec;
}

JobSpec IsHost(bool is_host, JobSpec spec) {
  spec.node.is_host = is_host;
  return spec;
}

struct Row {
  const char* what;
  JobSpec spec;
  absl::StatusOr<Addresses> resolved;
  Role role;
  const char* bind_address;
  const char* reason;
};

TEST(DecideHosting, FollowsAddressOrRank) {
  const absl::Status unknown = absl::UnavailableError("node0 does not resolve: unknown");
  const Row rows[] = {
      {"own name", Spec(JobMode::kEndpoint, "node0"), Addresses{"10.77.0.10"}, Role::kHosts, "",
       "node0 resolves to 10.77.0.10, which is eth0 of this host"},
      {"second interface", Spec(JobMode::kEndpoint, "node0-ib"), Addresses{"192.168.5.10"},
       Role::kHosts, "", "node0-ib resolves to 192.168.5.10, which is ib0 of this host"},
      {"one of several", Spec(JobMode::kEndpoint, "node0"), Addresses{"10.9.9.9", "fd00::10"},
       Role::kHosts, "", "node0 resolves to fd00::10, which is eth0 of this host"},
      {"Debian's own name", Spec(JobMode::kEndpoint, "node0"), Addresses{"127.0.1.1"}, Role::kHosts,
       "", "node0 resolves to 127.0.1.1, which is this host's loopback"},
      {"another's name", Spec(JobMode::kEndpoint, "node1"), Addresses{"10.77.0.11"}, Role::kJoins,
       "",
       "node1 resolves to 10.77.0.11, which is no address of this host, and this node is not node "
       "rank 0"},
      {"own literal", Spec(JobMode::kEndpoint, "10.77.0.10"), Addresses{"10.77.0.10"}, Role::kHosts,
       "", "10.77.0.10 is eth0 of this host"},
      {"another's literal", Spec(JobMode::kEndpoint, "10.77.0.11"), Addresses{"10.77.0.11"},
       Role::kJoins, "", "10.77.0.11 is no address of this host, and this node is not node rank 0"},
      {"loopback literal", Spec(JobMode::kEndpoint, "127.0.0.1"), Addresses{"127.0.0.1"},
       Role::kHosts, "127.0.0.1", "127.0.0.1 is lo of this host"},
      {"IPv6 loopback", Spec(JobMode::kEndpoint, "::1"), Addresses{"::1"}, Role::kHosts, "::1",
       "::1 is lo of this host"},
      {"localhost", Spec(JobMode::kEndpoint, "localhost"), Addresses{"::1", "127.0.0.1"},
       Role::kHosts, "127.0.0.1", "localhost resolves to ::1, which is lo of this host"},
      {"no such name", Spec(JobMode::kEndpoint, "node0"), unknown, Role::kJoins, "",
       "node0 does not resolve: unknown"},
      {"own name, not known yet", Spec(JobMode::kEndpoint, "pod-0.svc"), unknown, Role::kHosts, "",
       "pod-0.svc does not resolve yet and is this host's name"},
      {"longer name, not known yet", Spec(JobMode::kEndpoint, "pod-01"), unknown, Role::kJoins, "",
       "node0 does not resolve: unknown"},
      {"a rank but 0 does not offer", Spec(JobMode::kEndpoint, "node1", 1), Addresses{"10.77.0.11"},
       Role::kJoins, "",
       "node1 resolves to 10.77.0.11, which is no address of this host, and this node is not node "
       "rank 0"},
      {"rank 0 offers", Spec(JobMode::kEndpoint, "lb", 0), Addresses{"10.96.0.1"}, Role::kOffers,
       "", "lb resolves to 10.96.0.1, which is no address of this host, and this is node rank 0"},
      {"is_host offers", IsHost(true, Spec(JobMode::kEndpoint, "lb")), Addresses{"10.96.0.1"},
       Role::kOffers, "",
       "lb resolves to 10.96.0.1, which is no address of this host, and is_host=1"},
      {"is_host=0 beats rank 0", IsHost(false, Spec(JobMode::kEndpoint, "lb", 0)),
       Addresses{"10.96.0.1"}, Role::kJoins, "",
       "lb resolves to 10.96.0.1, which is no address of this host, and is_host=0 forbids to host"},
      {"is_host=0 beats the address", IsHost(false, Spec(JobMode::kEndpoint, "node0")),
       Addresses{"10.77.0.10"}, Role::kJoins, "",
       "node0 resolves to 10.77.0.10, which is eth0 of this host, and is_host=0 forbids to host"},
      {"the owner needs no rank", Spec(JobMode::kEndpoint, "node0", 1), Addresses{"10.77.0.10"},
       Role::kHosts, "", "node0 resolves to 10.77.0.10, which is eth0 of this host"},
      {"rank 0 offers before the name is known", Spec(JobMode::kEndpoint, "lb", 0), unknown,
       Role::kOffers, "", "node0 does not resolve: unknown, and this is node rank 0"},
      {"IPv4 within IPv6", Spec(JobMode::kEndpoint, "::ffff:10.77.0.10"),
       Addresses{"::ffff:10.77.0.10"}, Role::kHosts, "", "::ffff:10.77.0.10 is eth0 of this host"},
      {"static with is_host", IsHost(true, Spec(JobMode::kStatic, "lb")), Addresses{"10.96.0.1"},
       Role::kHosts, "",
       "lb resolves to 10.96.0.1, which is no address of this host, and is_host=1"},
      {"static rank 0", Spec(JobMode::kStatic, "service", 0), Addresses{"10.96.0.1"}, Role::kHosts,
       "", "this is node rank 0"},
      {"static rank 0, unknown name", Spec(JobMode::kStatic, "node0", 0), unknown, Role::kHosts, "",
       "this is node rank 0"},
      {"static rank 0 on loopback", Spec(JobMode::kStatic, "127.0.0.1", 0), Addresses{"127.0.0.1"},
       Role::kHosts, "127.0.0.1", "this is node rank 0"},
      {"static rank 1 on the same host", Spec(JobMode::kStatic, "node0", 1),
       Addresses{"10.77.0.10"}, Role::kJoins, "",
       "this is node rank 1 and rank 0 hosts at node0:29400"},
      {"static without rank", Spec(JobMode::kStatic, "node0"), Addresses{"10.77.0.10"},
       Role::kHosts, "", "node0 resolves to 10.77.0.10, which is eth0 of this host"},
      {"listening", Spec(JobMode::kListenAndPrint, ""), Addresses{}, Role::kHosts, "",
       "no other place was named"},
      {"alone", Spec(JobMode::kSingleNode, ""), Addresses{}, Role::kJoins, "",
       "a single node meets nobody"},
  };
  for (const Row& row : rows) {
    const HostingVerdict verdict = DecideHosting(row.spec, row.resolved, kHost, "pod-0");
    EXPECT_EQ(verdict.role, row.role) << row.what;
    EXPECT_EQ(verdict.bind_address, row.bind_address) << row.what;
    EXPECT_EQ(verdict.reason, row.reason) << row.what;
  }
}

// Else nobody would listen at the endpoint for the rest of the job if its owner came too early.
TEST(DecideEndpointDuty, IsForTheNodeToWhichTheEndpointMayLead) {
  const JobSpec endpoint = Spec(JobMode::kEndpoint, "node0");
  for (const Role role : {Role::kHosts, Role::kOffers}) {
    EXPECT_EQ(DecideEndpointDuty(endpoint, {role, false, false}), EndpointDuty::kFound);
    EXPECT_EQ(DecideEndpointDuty(endpoint, {role, true, true}), EndpointDuty::kStandBy);
    EXPECT_EQ(DecideEndpointDuty(endpoint, {role, true, false}), EndpointDuty::kNothing);
  }
  for (const bool contacted : {false, true}) {
    const EndpointSight other{Role::kJoins, contacted, contacted};
    EXPECT_EQ(DecideEndpointDuty(endpoint, other), EndpointDuty::kNothing);
    const EndpointSight first{Role::kHosts, contacted, contacted};
    const JobSpec fixed = Spec(JobMode::kStatic, "node0", 0);
    EXPECT_EQ(DecideEndpointDuty(fixed, first), EndpointDuty::kNothing);
  }
}

struct SilenceRow {
  const char* what;
  JobSpec spec;
  Silence silence;
  const char* says;
};

Silence Heard(Resolved resolved, std::optional<int> error, bool listens = false) {
  return {std::chrono::seconds(10), std::move(resolved), kHost, listens, error};
}

TEST(ExplainSilence, HasItsOwnWordsForEveryForm) {
  const std::string ours = " (this host: eth0 10.77.0.10, eth0 fd00::10, ib0 192.168.5.10); ";
  const std::string elsewhere = "lb resolves to 10.96.0.1, which is no address of this host";
  const std::string no_rank = elsewhere + ", and this node is not node rank 0" + ours;
  const std::string give =
      "; start hlaunch on the host that owns the address; if it is a virtual address or a service, "
      "give one node --node-rank 0 or --rdzv-conf is_host=1";
  const Addresses lb = {"10.96.0.1"};
  const SilenceRow rows[] = {
      {"refused", Spec(JobMode::kEndpoint, "lb"), Heard(lb, ECONNREFUSED),
       "is refused: its host is up"},
      {"dropped", Spec(JobMode::kEndpoint, "lb"), Heard(lb, ETIMEDOUT),
       "a firewall drops the port"},
      {"no way", Spec(JobMode::kEndpoint, "lb"), Heard(lb, ENETUNREACH),
       "there is no way there: Network is unreachable"},
      {"taken", Spec(JobMode::kEndpoint, "lb"), Heard(lb, 0),
       "a connection is taken there, but no"},
  };
  for (const SilenceRow& row : rows) {
    const HostingVerdict verdict = DecideHosting(row.spec, row.silence.resolved, kHost, "pod-0");
    const std::string line = ExplainSilence(row.spec, verdict, row.silence);
    EXPECT_THAT(line, StartsWith("nobody answers at lb:29400 for 10 s: " + no_rank)) << row.what;
    EXPECT_THAT(line, HasSubstr(row.says)) << row.what;
    EXPECT_THAT(line, EndsWith(give)) << row.what;
  }
}

TEST(ExplainSilence, AdvisesWhatHelps) {
  const Resolved unknown = absl::UnavailableError("cannot resolve 'lb': no name server answers");
  const SilenceRow rows[] = {
      {"no such name", Spec(JobMode::kEndpoint, "lb"), Heard(unknown, std::nullopt),
       "nobody answers at lb:29400 for 10 s: cannot resolve 'lb': no name server answers; correct "
       "the name, or give the address in digits"},
      {"offers", Spec(JobMode::kEndpoint, "lb", 0),
       Heard(Addresses{"10.96.0.1"}, ECONNREFUSED, true),
       "and this is node rank 0 (this host: eth0 10.77.0.10, eth0 fd00::10, ib0 192.168.5.10); "
       "this node listens on port 29400 and nobody was led here; that port is refused: its host is "
       "up, and no hlaunch hosts there yet, or a firewall rejects the port; check that lb leads to "
       "this host's port 29400"},
      {"static", Spec(JobMode::kStatic, "lb", 1), Heard(Addresses{"10.96.0.1"}, ECONNREFUSED),
       "no hlaunch hosts there yet, or a firewall rejects the port; start node rank 0 there"},
  };
  for (const SilenceRow& row : rows) {
    const HostingVerdict verdict = DecideHosting(row.spec, row.silence.resolved, kHost, "pod-0");
    EXPECT_THAT(ExplainSilence(row.spec, verdict, row.silence), EndsWith(row.says)) << row.what;
  }
}

TEST(ExplainLoneliness, SaysWhyThisNodeHosts) {
  const JobSpec spec = Spec(JobMode::kEndpoint, "node0");
  const HostingVerdict verdict = DecideHosting(spec, Addresses{"10.77.0.10"}, kHost, "");
  EXPECT_THAT(
      ExplainLoneliness(spec, verdict, std::chrono::seconds(10)),
      StartsWith("this node hosts the rendezvous at node0:29400, since node0 resolves to "
                 "10.77.0.10, which is eth0 of this host; no other node has come for 10 s"));
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
