// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/witnesses/witness_sender.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/listening/listen.h"

namespace hlaunch {
namespace {

// A host that is cut off comes back, but TCP may retransmit only minutes later.
TEST(WitnessSender, GoesOverANewConnectionWhereNobodyAnswers) {
  const ListeningSocket mute = Listen("127.0.0.1", 0).value();
  const WitnessMember host{1, "node0", absl::StrCat("127.0.0.1:", mute.port)};
  WitnessSender sender{Trust()};
  std::vector<UniqueFd> connections;
  for (int i = 0; i < 200 && connections.size() < 2; ++i) {
    sender.Send(host, {});
    pollfd wait = {mute.fd.get(), POLLIN, 0};
    if (::poll(&wait, 1, 50) == 1) {
      connections.emplace_back(::accept4(mute.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
  }
  EXPECT_EQ(connections.size(), 2u);
}

}  // namespace
}  // namespace hlaunch
