// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/silent_clients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

const Instant kBegin{seconds(1000)};

StoreAddress From(uint8_t last) {
  StoreAddress address{};
  address[15] = last;
  return address;
}

SilentClients Make(size_t strangers, size_t all = 1000) {
  return SilentClients({strangers, seconds(60), all});
}

TEST(SilentClients, TheOldestStrangersGoOnceTheirTimeIsUp) {
  SilentClients clients = Make(2);
  for (uint8_t i = 1; i <= 4; ++i) clients.Came(i, From(i), kBegin + seconds(i));
  EXPECT_TRUE(clients.crowded());
  EXPECT_THAT(clients.TakeSuperfluous(kBegin + seconds(60)), IsEmpty());
  EXPECT_EQ(clients.next(), kBegin + seconds(61));
  EXPECT_THAT(clients.TakeSuperfluous(kBegin + seconds(100)), ElementsAre(1, 2));
  EXPECT_FALSE(clients.crowded());
  EXPECT_EQ(clients.next(), Instant::max());
}

TEST(SilentClients, FewMayBeSilentForEver) {
  SilentClients clients = Make(2);
  clients.Came(1, From(1), kBegin);
  clients.Came(2, From(1), kBegin);
  EXPECT_THAT(clients.TakeSuperfluous(kBegin + seconds(100'000)), IsEmpty());
}

// PyTorch before 2.1 opens a second connection and may never write to it.
TEST(SilentClients, ASilentSiblingOfOneThatHasSpokenIsNoStranger) {
  SilentClients clients = Make(0);
  clients.Came(1, From(1), kBegin);
  clients.Came(2, From(1), kBegin);
  clients.Came(3, From(2), kBegin);
  clients.Spoke(1);
  clients.Came(4, From(1), kBegin);
  clients.Gone(1);
  EXPECT_THAT(clients.TakeSuperfluous(kBegin + seconds(100'000)), ElementsAre(3));
  clients.Gone(2);
  clients.Gone(4);
  EXPECT_FALSE(clients.crowded());
}

TEST(SilentClients, BeyondAllLimitsTheOldestGoesAtOnceStrangersFirst) {
  SilentClients clients = Make(1000, /*all=*/2);
  clients.Came(1, From(1), kBegin);
  clients.Came(2, From(1), kBegin);
  clients.Spoke(1);  // Connection 2 is its sibling.
  clients.Came(3, From(2), kBegin);
  clients.Came(4, From(3), kBegin);
  EXPECT_THAT(clients.TakeSuperfluous(kBegin), ElementsAre(3));
  clients.Spoke(4);
  clients.Came(5, From(1), kBegin);
  clients.Came(6, From(1), kBegin);
  EXPECT_THAT(clients.TakeSuperfluous(kBegin), ElementsAre(2));
}

TEST(SilentClients, WhoHasGoneOrSpokenIsForgotten) {
  SilentClients clients = Make(0);
  clients.Came(1, From(1), kBegin);
  clients.Came(2, From(2), kBegin);
  clients.Gone(1);
  clients.Gone(1);
  clients.Spoke(2);
  clients.Spoke(2);
  EXPECT_THAT(clients.TakeSuperfluous(kBegin + seconds(100)), IsEmpty());
  clients.Clear();
  clients.Came(3, From(2), kBegin);  // In a new round no client is known.
  EXPECT_TRUE(clients.crowded());
}

}  // namespace
}  // namespace hlaunch
