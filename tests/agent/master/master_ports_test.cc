// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/master/master_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hlaunch {
namespace {

using testing::ElementsAre;

std::vector<int> Distances(const MasterPorts& ports) {
  std::vector<int> distances;
  for (const ListeningSocket& neighbour : ports.neighbours) {
    distances.push_back(neighbour.port - ports.store.port);
  }
  return distances;
}

TEST(OpenMasterPorts, TakesAPortWhoseNeighboursAreFree) {
  std::vector<MasterPorts> nodes;  // Of one host: none may have what another holds.
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
  EXPECT_EQ(GaudiCachePort(29500), 41075);  // 29600 is 0x73A0, 41075 is 0xA073.
  EXPECT_EQ(GaudiCachePort(65535), 25344);  // 99 is 0x0063, 25344 is 0x6300.
  const auto ports = OpenMasterPorts({"127.0.0.1"});
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_TRUE(Reserve(GaudiCachePort(ports->store.port)).ok());
}

TEST(OpenMasterPorts, KeepsTheNamedPortThoughANeighbourIsTaken) {
  uint16_t port = 0;
  ListeningSocket taken;
  {
    MasterPorts free = OpenMasterPorts({"127.0.0.1"}).value();
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
  MasterPortsWish wish;
  wish.worker = true;
  const auto ports = OpenMasterPorts(wish);
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_TRUE(absl::IsAlreadyExists(Reserve(ports->store.port).status()));
  EXPECT_TRUE(Listen("", ports->store.port).ok());  // As torch's TCPStore.
}

TEST(OpenMasterPorts, LeavesAPortThatAnotherListenerServes) {
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
