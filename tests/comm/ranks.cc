// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/comm/ranks.h"

#include <memory>
#include <thread>

#include "comm/loopback_transport.h"

namespace hlaunch {

std::vector<std::string> RunAsThreads(int size, const RankBody& body) {
  auto group = LoopbackTransport::MakeGroup(size);
  std::vector<std::string> results(size);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank, transport = std::move(group[rank])] {
      TestRank self{*transport, [&] { transport->Vanish(); }};
      results[rank] = body(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace hlaunch
