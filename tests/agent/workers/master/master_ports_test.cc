// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/master/master_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;

// Gives this test its own loopback, where no other process takes the ports that it expects. Without
// root it stays on the shared one.
void EnterOwnNetwork() {
  if (::unshare(CLONE_NEWNET) != 0) return;
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback = {};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  ASSERT_EQ(::ioctl(socket.get(), SIOCSIFFLAGS, &loopback), 0);
}

std::vector<int> Distances(const MasterPorts& ports) {
  std::vector<int> distances;
  for (const ListeningSocket& neighbour : ports.neighbours) {
    distances.push_back(neighbour.port - ports.store.port);
  }
  return distances;
}

TEST(OpenMasterPorts, TakesAPortWhoseNeighboursAreFree) {
  EnterOwnNetwork();
  std::vector<MasterPorts> nodes;  // Nodes of one host must not share ports.
  for (int i = 0; i < 20; ++i) {
    auto ports = OpenMasterPorts({"127.0.0.1"});
    ASSERT_TRUE(ports.ok()) << ports.status();
    EXPECT_THAT(Distances(*ports), ElementsAre(1, 2));
    EXPECT_NE(ports->coordinator.port, 0);
    EXPECT_TRUE(absl::IsAlreadyExists(Listen("127.0.0.1", ports->store.port).status()));
    EXPECT_TRUE(absl::IsAlreadyExists(Reserve(ports->coordinator.port).status()));
    nodes.push_back(std::move(ports).value());
  }
}

TEST(OpenMasterPorts, LeavesThePortOfGaudisCacheFree) {
  EnterOwnNetwork();
  EXPECT_EQ(GaudiCachePort(29500), 41075);  // 29600 is 0x73A0, 41075 is 0xA073.
  EXPECT_EQ(GaudiCachePort(65535), 25344);  // 99 is 0x0063, 25344 is 0x6300.
  const auto ports = OpenMasterPorts({"127.0.0.1"});
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_TRUE(Reserve(GaudiCachePort(ports->store.port)).ok());
}

TEST(OpenMasterPorts, KeepsTheNamedPortThoughANeighbourIsTaken) {
  EnterOwnNetwork();
  uint16_t port = 0;
  ListeningSocket taken;
  {
    MasterPorts free = OpenMasterPorts({"127.0.0.1"}).value();
    ASSERT_THAT(Distances(free), ElementsAre(1, 2));
    port = free.store.port;
    taken = std::move(free.neighbours[1]);
  }
  const auto ports = OpenMasterPorts({"127.0.0.1", port});
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_EQ(ports->store.port, port);
  EXPECT_THAT(Distances(*ports), ElementsAre(1));
  EXPECT_TRUE(absl::IsAlreadyExists(OpenMasterPorts({"127.0.0.1", port}).status()));
}

TEST(OpenMasterPorts, ReservesThePortThatRank0WillServe) {
  EnterOwnNetwork();
  MasterPortsWish wish;
  wish.worker = true;
  const auto ports = OpenMasterPorts(wish);
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_TRUE(absl::IsAlreadyExists(Reserve(ports->store.port).status()));
  EXPECT_TRUE(Listen("", ports->store.port).ok());  // Binds like torch's TCPStore.
}

TEST(OpenMasterPorts, LeavesAPortThatAnotherListenerServes) {
  EnterOwnNetwork();
  const ListeningSocket shared = Listen("", 0).value();
  MasterPortsWish wish;
  wish.port = shared.port;
  wish.served = true;
  const auto ports = OpenMasterPorts(wish);
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_EQ(ports->store.port, shared.port);
  EXPECT_FALSE(ports->store.fd.valid());
  EXPECT_NE(ports->coordinator.port, 0);
}

}  // namespace
}  // namespace hlaunch
