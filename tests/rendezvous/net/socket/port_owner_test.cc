// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/peer/port_owner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

TEST(FindPortOwner, Names_the_process_that_listens) {
  for (const char* const address : {"127.0.0.1", "::1", ""}) {
    const auto listening = Listen(address, 0);
    ASSERT_TRUE(listening.ok()) << listening.status();
    const auto owner = FindPortOwner(listening->port);
    ASSERT_TRUE(owner) << address;
    EXPECT_EQ(owner->pid, ::getpid());
    std::string name;
    std::getline(std::ifstream("/proc/self/comm") >> std::ws, name);
    EXPECT_EQ(owner->name, name);
  }
}

TEST(FindPortOwner, Finds_none_where_nobody_listens) {
  const auto kept = Reserve(0);  // It is bound, and does not listen.
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(FindPortOwner(kept->port));
}

TEST(FindPortOwner, Knows_hlaunch_by_its_name) {
  EXPECT_TRUE(IsHlaunch({1, "hlaunch-agent"}));
  EXPECT_FALSE(IsHlaunch({1, "python3"}));
}

}  // namespace
}  // namespace hlaunch
