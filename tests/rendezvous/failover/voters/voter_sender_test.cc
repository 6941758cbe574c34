// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/voters/voter_sender.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

// A host that is cut off comes back, but TCP may retransmit only minutes later.
TEST(VoterSender, GoesOverANewConnectionWhereNobodyAnswers) {
  const ListeningSocket mute = Listen("127.0.0.1", 0).value();
  const VoterMember host{1, "node0", absl::StrCat("127.0.0.1:", mute.port)};
  VoterSender sender{Trust()};
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

// A voter is cut off and ends while its last message is on the way: whatever was the last to know
// of the connection must not be a callback of gRPC.
TEST(VoterSender, MayEndBeforeItsCalls) {
  const ListeningSocket mute = Listen("127.0.0.1", 0).value();
  const VoterMember host{1, "node0", absl::StrCat("127.0.0.1:", mute.port)};
  for (int i = 0; i < 3; ++i) {
    auto sender = std::make_unique<VoterSender>(Trust());
    for (int message = 0; message < 4; ++message) sender->Send(host, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(300 * i));
    sender.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // Its calls would end meanwhile.
  }
}

// So many addresses are too many: the first ones are forgotten while calls to them are under way.
TEST(VoterSender, ForgetsAddressesWhoseCallsAreUnderWay) {
  const ListeningSocket mute = Listen("127.0.0.1", 0).value();
  VoterSender sender{Trust()};
  for (int i = 1; i < 70; ++i) {
    sender.Send({1, "node0", absl::StrCat("127.0.0.", i, ":", mute.port)}, {});
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  sender.Send({1, "node0", absl::StrCat("127.0.0.1:", mute.port)}, {});
}

}  // namespace
}  // namespace hlaunch
