// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/traffic_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TrafficAllowance, CoversAnAgentForADay) {
  TrafficAllowance allowance{Instant()};
  uint64_t total = 256 << 10;
  for (seconds at(1); at < hours(24); at += seconds(1)) {
    total += 1000;
    ASSERT_TRUE(allowance.Covers(total, Instant(at))) << at.count();
  }
}

TEST(TrafficAllowance, DoesNotCoverAFloodAfterAQuietDay) {
  TrafficAllowance allowance{Instant()};
  EXPECT_TRUE(allowance.Covers(1000, Instant(hours(24))));
  EXPECT_TRUE(allowance.Covers(300'000, Instant(hours(24) + seconds(1))));
  EXPECT_FALSE(allowance.Covers(700'000, Instant(hours(24) + seconds(2))));
}

// Two ends of a connection over loopback; its client has the address `source`.
struct LoopbackConnection {
  explicit LoopbackConnection(in_addr_t source = INADDR_LOOPBACK) {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    client = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(source);
    EXPECT_EQ(::bind(client.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    server = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  // The client sends `bytes` and the server takes them.
  void Send(size_t bytes) {
    const std::string block(32 << 10, 'x');
    std::string taken(block.size(), '\0');
    for (size_t sent = 0; sent < bytes; sent += block.size()) {
      ASSERT_EQ(::send(client.get(), block.data(), block.size(), MSG_NOSIGNAL), block.size());
      ASSERT_EQ(::recv(server.get(), taken.data(), taken.size(), MSG_WAITALL), taken.size());
    }
  }

  UniqueFd client;
  UniqueFd server;
};

TEST(TrafficWatch, ClosesWhoSendsTooMuchAndBarsItForAWhile) {
  LoopbackConnection connection;
  const LoopbackConnection other;
  TrafficWatch watch;
  watch.Add(connection.server.get(), nullptr, Instant());
  watch.Add(other.server.get(), nullptr, Instant());
  connection.Send(1 << 20);
  EXPECT_FALSE(watch.IsBarred("127.0.0.1", Instant()));
  EXPECT_THAT(watch.Look(Instant()), ElementsAre("127.0.0.1"));
  char byte = 0;
  EXPECT_EQ(::recv(connection.client.get(), &byte, 1, 0), 0);
  EXPECT_EQ(::send(other.client.get(), &byte, 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(watch.IsBarred("127.0.0.1", Instant(seconds(29))));
  EXPECT_FALSE(watch.IsBarred("127.0.0.1", Instant(seconds(31))));
  EXPECT_THAT(watch.Look(Instant(seconds(1))), IsEmpty());
}

TEST(TrafficWatch, BarsASourceThatHasGoneMeanwhile) {
  LoopbackConnection connection;
  TrafficWatch watch;
  watch.Add(connection.server.get(), nullptr, Instant());
  connection.Send(1 << 20);
  const linger reset = {1, 0};
  ASSERT_EQ(::setsockopt(connection.client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  connection.client.Close();
  EXPECT_THAT(watch.Look(Instant()), ElementsAre("127.0.0.1"));
  EXPECT_TRUE(watch.IsBarred("127.0.0.1", Instant()));
}

TEST(TrafficWatch, BarsTheSourceOfAFloodThoughItsOwnerHasClosedIt) {
  auto floods = std::make_shared<std::atomic<uint64_t>>(0);
  const auto guard = std::make_shared<ConnectionGuard>(ConnectionGuard::Kind::kClear, floods);
  LoopbackConnection connection;
  TrafficWatch watch;
  watch.Add(connection.server.get(), guard, Instant());
  EXPECT_THAT(watch.Look(Instant()), IsEmpty());
  std::string streams(24, 'x');  // In place of the preface.
  for (int i = 0; i < 100; ++i) streams += std::string("\0\0\0\1\5\0\0\0\1", 9);
  EXPECT_FALSE(guard->Received(streams));
  EXPECT_EQ(*floods, 1u);
  connection.server.Close();
  EXPECT_THAT(watch.Look(Instant()), ElementsAre("127.0.0.1"));
  EXPECT_TRUE(watch.IsBarred("127.0.0.1", Instant(seconds(29))));
}

TEST(TrafficWatch, BarsASourceAfterAnyNumberThatNeverCameAgain) {
  TrafficWatch watch;
  const auto floods = [&](in_addr_t source, Instant now) {
    LoopbackConnection connection(source);
    watch.Add(connection.server.get(), nullptr, now);
    connection.Send(TrafficAllowance::kBurstBytes + 1);
    EXPECT_EQ(watch.Look(now).size(), 1u);
  };
  for (size_t i = 0; i < TrafficWatch::kMaxBarred; ++i) {
    floods(0x7f010001 + static_cast<in_addr_t>(i), Instant());  // 127.1.0.1 and so on.
  }
  EXPECT_TRUE(watch.IsBarred("127.1.0.1", Instant()));
  floods(INADDR_LOOPBACK, Instant(seconds(31)));
  EXPECT_TRUE(watch.IsBarred("127.0.0.1", Instant(seconds(32))));
}

TEST(TrafficWatch, LeavesADescriptorAloneThatHasBecomeAnothers) {
  const LoopbackConnection watched;
  LoopbackConnection other;
  TrafficWatch watch;
  watch.Add(watched.server.get(), nullptr, Instant());
  ASSERT_EQ(::dup3(other.server.get(), watched.server.get(), O_CLOEXEC), watched.server.get());
  other.Send(1 << 20);
  EXPECT_THAT(watch.Look(Instant()), IsEmpty());
  char byte = 0;
  EXPECT_EQ(::send(other.client.get(), &byte, 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(::recv(other.server.get(), &byte, 1, 0), 1);
}

}  // namespace
}  // namespace hlaunch
