// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/peer_ways.h"

#include <sys/socket.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/connect.h"
#include "tests/fakes/memory_store.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<PeerWays> Ways(int node, int size) {
  return std::make_unique<PeerWays>(
      JointPlan{"127.0.0.1", 0, 3, node, size, absl::StrCat("node", node)}, "127.0.0.1");
}

TEST(PeerWays, ReachesAllThatListenWhateverTheyDo) {
  MemoryStore store;
  auto first = Ways(0, 3), second = Ways(1, 3), third = Ways(2, 3);
  EXPECT_THAT(first->Look(seconds(60)), IsEmpty());  // It knows no other node.
  for (PeerWays* ways : {first.get(), second.get(), third.get()}) {
    ASSERT_TRUE(ways->Announce(store).ok());
  }
  ASSERT_TRUE(first->Learn(store, MonotonicClock().Now() + seconds(60)).ok());
  for (int look = 0; look < 3; ++look) EXPECT_THAT(first->Look(seconds(60)), IsEmpty());
  third.reset();  // Its host refuses the connection, which counts as reached.
  EXPECT_THAT(first->Look(seconds(60)), IsEmpty());
}

// The kernel does not answer, because the queue of this listener is full.
TEST(PeerWays, NamesWhoDoesNotAnswer) {
  const auto full = Listen("127.0.0.1", 0);
  ASSERT_TRUE(full.ok());
  ASSERT_EQ(::listen(full->fd.get(), 0), 0);
  std::vector<UniqueFd> queue;
  for (int i = 0; i < 3; ++i) {
    int error = 0;
    queue.push_back(BeginToConnect("127.0.0.1", full->port, &error));
  }
  MemoryStore store;
  auto ways = Ways(0, 3), other = Ways(2, 3);
  ASSERT_TRUE(ways->Announce(store).ok());
  ASSERT_TRUE(other->Announce(store).ok());
  ASSERT_TRUE(store.Set("hlaunch/watch/3/way/1", absl::StrCat(full->port, " 127.0.0.1")).ok());
  ASSERT_TRUE(ways->Learn(store, MonotonicClock().Now() + seconds(60)).ok());
  EXPECT_THAT(ways->Look(milliseconds(300)), ElementsAre(1));
}

TEST(PeerWays, WhatALookCameToCrossesAsACheck) {
  for (const std::vector<int>& unreached : {std::vector<int>{}, {2, 5}}) {
    const auto line = FromLine(ToLine(ToResult(unreached)));
    ASSERT_TRUE(line);
    EXPECT_EQ(UnreachedOf(*line), unreached);
  }
  EXPECT_EQ(UnreachedOf({"fabric", {}, "", CheckState::kOk, "", ""}), std::nullopt);
  CheckResult nonsense = ToResult(std::vector<int>{1});
  nonsense.detail = "[1";
  EXPECT_EQ(UnreachedOf(nonsense), std::nullopt);
}

}  // namespace
}  // namespace hlaunch
