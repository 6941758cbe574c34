// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/snapshot_exchange.h"

#include <gtest/gtest.h>

#include "asio/io_context.hpp"
#include "tests/rendezvous/no_threads.h"

namespace hlaunch {
namespace {

TEST(SnapshotExchange, SaysThatNoThreadIsLeft) {
  asio::io_context loop;
  SnapshotExchange exchange(loop, Assignment());
  absl::Status told;
  {
    const NoThreads none;
    exchange.Swap("", [&](absl::StatusOr<SnapshotExchange::Told> all) { told = all.status(); });
  }
  loop.run();
  EXPECT_TRUE(absl::IsResourceExhausted(told)) << told;
  EXPECT_FALSE(exchange.busy());
}

}  // namespace
}  // namespace hlaunch
