// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/place_job.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;

HostRoom Room(const std::string& name, int all, std::vector<int> free, int slots = 4) {
  HostRoom room;
  room.name = name;
  if (all > 0) room.kinds["hpu"] = {all, std::move(free)};
  room.slots = room.slots_free = slots;
  return room;
}

std::vector<int> Upto(int count) {
  std::vector<int> ids;
  for (int id = 0; id < count; ++id) ids.push_back(id);
  return ids;
}

HostRoom Empty(const std::string& name, int devices = 8) {
  return Room(name, devices, Upto(devices));
}

HostRoom Closed(const std::string& name, const std::string& why) {
  HostRoom room = Empty(name);
  room.closed = why;
  return room;
}

JobRequest Need(int nodes, int workers) {
  JobRequest request;
  request.min_nodes = request.max_nodes = nodes;
  request.workers = workers;
  return request;
}

std::vector<std::string> HostsOf(const Placement& placement) {
  std::vector<std::string> hosts;
  for (const PlacedNode& node : placement.nodes) hosts.push_back(node.host);
  return hosts;
}

TEST(PlaceJob, SaysWhatAJobWaitsFor) {
  HostRoom half = Room("node4", 8, Upto(6));
  half.used = true;
  const Placement placement =
      PlaceJob(Need(2, 8), {Empty("node1"), Closed("node3", "is drained: ECC"), half});
  EXPECT_THAT(placement.nodes, testing::IsEmpty());
  EXPECT_EQ(placement.reason,
            "needs 2 nodes with 8 free hpu; 1 has them, node3 is drained: ECC, node4 has 6 free");
  EXPECT_TRUE(placement.waits_for_jobs);
}

TEST(PlaceJob, SaysThatNoHostsCouldEverHaveAJob) {
  const Placement placement = PlaceJob(Need(2, 16), {Empty("node1"), Empty("node2")});
  EXPECT_FALSE(placement.waits_for_jobs);
  EXPECT_EQ(placement.reason,
            "needs 2 nodes with 16 hpu; none could have them, node1 has 8, node2 has 8");
}

TEST(PlaceJob, HoldsUpNobodyForADrainedHost) {
  const Placement placement =
      PlaceJob(Need(2, 8), {Empty("node1"), Closed("node2", "is drained: ECC")});
  EXPECT_FALSE(placement.waits_for_jobs);
  EXPECT_EQ(placement.reason, "needs 2 nodes with 8 hpu; 1 could have them, node2 is drained: ECC");
}

TEST(PlaceJob, NumbersNodesInTheOrderOfNames) {
  const Placement placement =
      PlaceJob(Need(3, 8), {Empty("node10"), Empty("node9"), Empty("node1")});
  EXPECT_THAT(HostsOf(placement), ElementsAre("node1", "node9", "node10"));
}

TEST(PlaceJob, TakesTheHostThatFitsTightest) {
  const Placement placement =
      PlaceJob(Need(1, 2), {Empty("node1"), Room("node2", 8, {5, 7, 6}), Room("node3", 8, {0})});
  ASSERT_THAT(HostsOf(placement), ElementsAre("node2"));
  EXPECT_THAT(placement.nodes[0].devices, ElementsAre(5, 7));
  EXPECT_EQ(placement.kind, "hpu");
}

TEST(PlaceJob, TakesAllFreeDevicesOfAHost) {
  const Placement placement = PlaceJob(Need(1, 0), {Room("node1", 8, {1, 2}), Empty("node2", 8)});
  ASSERT_THAT(HostsOf(placement), ElementsAre("node2"));
  EXPECT_EQ(placement.nodes[0].workers, 8);
}

TEST(PlaceJob, TakesSlotsWhereNoHostHasDevices) {
  const Placement placement = PlaceJob(Need(1, 3), {Room("node1", 0, {}, 2), Room("node2", 0, {})});
  ASSERT_THAT(HostsOf(placement), ElementsAre("node2"));
  EXPECT_EQ(placement.nodes[0].slots, 3);
  EXPECT_EQ(placement.kind, "");
}

TEST(PlaceJob, DoesNotTakeSlotsWhereSomeHostHasDevices) {
  HostRoom taken = Room("node1", 8, {});
  taken.used = true;
  const Placement placement = PlaceJob(Need(1, 2), {taken, Room("node2", 0, {})});
  EXPECT_THAT(placement.nodes, testing::IsEmpty());
  EXPECT_TRUE(placement.waits_for_jobs);
}

TEST(PlaceJob, TakesSlotsOfAnyHostIfNoDevicesAreWanted) {
  JobRequest request = Need(1, 2);
  request.devices = "none";
  EXPECT_THAT(HostsOf(PlaceJob(request, {Empty("node1")})), ElementsAre("node1"));
}

TEST(PlaceJob, GivesAJobThatAsksForOneOfSomeKindsNoSlots) {
  JobRequest request = Need(1, 0);
  request.devices = "cuda,rocm";
  const Placement none = PlaceJob(request, {Empty("node1"), Room("node2", 0, {})});
  EXPECT_THAT(none.nodes, testing::IsEmpty());
  EXPECT_FALSE(none.waits_for_jobs);
  HostRoom amd = Room("node3", 0, {});
  amd.kinds = {{"rocm", {4, Upto(4)}}};
  const Placement placement = PlaceJob(request, {Empty("node1"), Room("node2", 0, {}), amd});
  ASSERT_THAT(HostsOf(placement), ElementsAre("node3"));
  EXPECT_EQ(placement.kind, "rocm");
  EXPECT_EQ(placement.nodes[0].workers, 4);
}

TEST(PlaceJob, GivesAllNodesTheSameKind) {
  HostRoom other = Empty("node2");
  other.kinds = {{"cuda", {8, Upto(8)}}};
  EXPECT_THAT(PlaceJob(Need(2, 8), {Empty("node1"), other}).nodes, testing::IsEmpty());
}

TEST(PlaceJob, KeepsToNamedHosts) {
  JobRequest request = Need(1, 8);
  request.hosts = {"node2", "node7"};
  EXPECT_THAT(HostsOf(PlaceJob(request, {Empty("node1"), Empty("node2")})), ElementsAre("node2"));
  EXPECT_EQ(PlaceJob(request, {Empty("node1")}).reason,
            "needs 1 node for 8 workers; none could have them, node2 is no host here, node7 is no "
            "host here");
}

TEST(PlaceJob, KeepsToLabels) {
  JobRequest request = Need(1, 8);
  request.labels = {"fast", "big"};
  HostRoom one = Empty("node1"), both = Empty("node2");
  one.labels = {"fast"};
  both.labels = {"big", "fast"};
  EXPECT_THAT(HostsOf(PlaceJob(request, {one, both})), ElementsAre("node2"));
}

TEST(PlaceJob, GivesAnExclusiveJobEmptyHosts) {
  JobRequest request = Need(1, 2);
  request.exclusive = true;
  HostRoom used = Room("node1", 8, Upto(6));
  used.used = true;
  EXPECT_THAT(HostsOf(PlaceJob(request, {used, Empty("node2")})), ElementsAre("node2"));
  EXPECT_EQ(PlaceJob(request, {used}).reason,
            "needs 1 node with 2 free hpu for itself alone; none have them, node1 is used by other "
            "jobs");
}

TEST(PlaceJob, KeepsOthersFromAnExclusiveJobsHosts) {
  HostRoom room = Room("node1", 8, Upto(6));
  room.used = room.exclusive = true;
  EXPECT_EQ(PlaceJob(Need(1, 2), {room}).reason,
            "needs 1 node with 2 free hpu; none have them, node1 is held by one job alone");
}

TEST(PlaceJob, TakesAsManyNodesAsThereAre) {
  JobRequest request = Need(2, 8);
  request.max_nodes = 4;
  request.spares = 1;
  const std::vector<HostRoom> three = {Empty("node1"), Empty("node2"), Empty("node3")};
  EXPECT_THAT(HostsOf(PlaceJob(request, three)), ElementsAre("node1", "node2", "node3"));
  request.max_nodes = 2;
  const Placement placement = PlaceJob(request, three);
  EXPECT_EQ(placement.nodes.size(), 3u);
  EXPECT_EQ(placement.spares, 1);
}

TEST(PlaceJob, CountsHostsBeyondTheFirstFew) {
  std::vector<HostRoom> hosts;
  for (int i = 1; i <= 20; ++i) hosts.push_back(Room("node" + std::to_string(i), 8, {0}));
  EXPECT_EQ(PlaceJob(Need(1, 8), hosts).reason,
            "needs 1 node with 8 free hpu; none have them, node1 has 1 free, node2 has 1 free, "
            "node3 has 1 free, node4 has 1 free, node5 has 1 free, node6 has 1 free, and 14 more "
            "hosts have not");
}

}  // namespace
}  // namespace hlaunch
