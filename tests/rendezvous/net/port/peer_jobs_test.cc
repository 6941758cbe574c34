// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/peer_jobs.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

using testing::Eq;
using testing::Optional;

sockaddr_in Loopback(const char* literal, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, literal, &address.sin_addr);
  return address;
}

// Both ends of a connection from 127.0.0.1 to `to`. It uses the source port `from` if that is not
// 0.
struct Connection {
  Connection(const ListeningSocket& listening, const char* to, uint16_t from = 0)
      : client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(client.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in own = Loopback("127.0.0.1", from);
    const sockaddr_in other = Loopback(to, listening.port);
    EXPECT_EQ(::bind(client.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&other), sizeof other), 0);
    int accepted = -1;
    while (accepted < 0) accepted = ::accept(listening.fd.get(), nullptr, nullptr);
    server = UniqueFd(accepted);
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    port = ntohs(bound.sin_port);
  }

  UniqueFd client;
  UniqueFd server;
  uint16_t port = 0;
};

TEST(PeerJobs, KnowsWhatEachConnectionIsOf) {
  const ListeningSocket listening = Listen("", 0).value();
  PeerJobs peers;
  const Connection ours(listening, "127.0.0.1"), all(listening, "127.0.0.1");
  EXPECT_TRUE(peers.Add(ours.server.get(), "ours"));
  EXPECT_TRUE(peers.Add(all.server.get(), ""));
  EXPECT_THAT(peers.JobOf("127.0.0.1", ours.port), Optional(Eq("ours")));
  EXPECT_THAT(peers.JobOf("127.0.0.1", all.port), Optional(Eq("")));
  EXPECT_EQ(peers.JobOf("127.0.0.2", ours.port), std::nullopt);
  EXPECT_EQ(peers.JobOf("127.0.0.1", 1), std::nullopt);
}

// The second connection has the same source address and port but another target address. gRPC
// cannot tell the two apart.
TEST(PeerJobs, RefusesAnotherJobFromAPlaceThatIsTaken) {
  const ListeningSocket listening = Listen("", 0).value();
  PeerJobs peers;
  Connection ours(listening, "127.0.0.1");
  EXPECT_TRUE(peers.Add(ours.server.get(), "ours"));
  const Connection same(listening, "127.0.0.2", ours.port);
  EXPECT_FALSE(peers.Add(same.server.get(), ""));
  EXPECT_FALSE(peers.Add(same.server.get(), "theirs"));
  EXPECT_THAT(peers.JobOf("127.0.0.1", ours.port), Optional(Eq("ours")));
  EXPECT_TRUE(peers.Add(same.server.get(), "ours"));
  EXPECT_TRUE(peers.Add(same.server.get(), "ours"));
}

TEST(PeerJobs, TakesAPlaceAnewOnceItsConnectionHasGone) {
  const ListeningSocket listening = Listen("", 0).value();
  PeerJobs peers;
  Connection gone(listening, "127.0.0.1");
  EXPECT_TRUE(peers.Add(gone.server.get(), "ours"));
  const Connection next(listening, "127.0.0.2", gone.port);
  gone.server.Close();
  EXPECT_TRUE(peers.Add(next.server.get(), "theirs"));
  EXPECT_THAT(peers.JobOf("127.0.0.1", gone.port), Optional(Eq("theirs")));
}

}  // namespace
}  // namespace hlaunch
