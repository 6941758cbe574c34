// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/host_end.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

TEST(EndsWithHost, BySomebodysWishAlone) {
  EXPECT_TRUE(EndsWithHost(kExitSignalBase + SIGTERM));
  EXPECT_TRUE(EndsWithHost(kExitTimeout));
  for (const int other : {kExitAgentLost, kExitNoResources, kExitNodeLost, kExitRendezvousLost}) {
    EXPECT_FALSE(EndsWithHost(other)) << other;
  }
}

}  // namespace
}  // namespace hlaunch
