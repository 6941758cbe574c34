// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/handshake_queue.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/net/port/traffic_watch.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

// A listener on loopback, and connections to it from any of loopback's addresses.
class HandshakeQueueTest : public testing::Test {
 protected:
  HandshakeQueueTest() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Address(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = address.sin_port;
  }

  static sockaddr_in Address(in_addr_t literal) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(literal);
    return address;
  }

  // The server's end of a connection from 127.0.0.`last`.
  UniqueFd From(int last) {
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in from = Address((INADDR_LOOPBACK & ~0xffu) + static_cast<in_addr_t>(last));
    EXPECT_EQ(::bind(client.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    sockaddr_in to = Address(INADDR_LOOPBACK);
    to.sin_port = port_;
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    clients_.push_back(std::move(client));
    return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  // Begins the handshakes that may begin; returns the addresses.
  std::vector<std::string> Begin(Instant now = Instant()) {
    std::vector<std::string> begun;
    for (UniqueFd fd = queue_.Next(); fd.valid(); fd = queue_.Next()) {
      begun.push_back(PeerHost(fd.get()));
      guards_.push_back(std::make_shared<ConnectionGuard>(ConnectionGuard::Kind::kTls, floods_));
      queue_.Begun(fd.get(), guards_.back(), now);
      taken_.push_back(std::move(fd));
    }
    return begun;
  }

  static void Finish(ConnectionGuard& guard) {
    guard.Received(std::string("\x16\3\3\0\1x", 6));
    guard.Sent("hello");
    guard.Received(std::string("\x17\3\3\0\1x", 6));
    guard.Sent("settings");
  }

  UniqueFd listener_;
  uint16_t port_ = 0;
  std::shared_ptr<std::atomic<uint64_t>> floods_ = std::make_shared<std::atomic<uint64_t>>(0);
  HandshakeQueue queue_{100};
  std::vector<UniqueFd> clients_;
  std::vector<UniqueFd> taken_;
  std::vector<std::shared_ptr<ConnectionGuard>> guards_;
};

TEST_F(HandshakeQueueTest, OneAddressLeavesRoomForTheOthers) {
  const Instant later = Instant(seconds(1));
  for (size_t i = 0; i < HandshakeQueue::kMostOfOne + 2; ++i) {
    EXPECT_EQ(queue_.Add(From(1), later), "");
  }
  EXPECT_EQ(Begin().size(), HandshakeQueue::kMostOfOne);
  EXPECT_EQ(queue_.Add(From(2), later), "");
  EXPECT_THAT(Begin(), ElementsAre("127.0.0.2"));
  EXPECT_TRUE(queue_.waits());
  Finish(*guards_.front());
  EXPECT_EQ(queue_.Look(Instant()), 0u);
  EXPECT_THAT(Begin(), ElementsAre("127.0.0.1"));
  taken_.front().Close();  // It was over already.
  taken_[1].Close();       // gRPC has closed it.
  EXPECT_EQ(queue_.Look(Instant()), 0u);
  EXPECT_THAT(Begin(), ElementsAre("127.0.0.1"));
  EXPECT_FALSE(queue_.waits());
}

TEST_F(HandshakeQueueTest, AddressesHaveTheirTurnOneAfterAnother) {
  for (const int from : {1, 1, 2, 3, 2}) queue_.Add(From(from), Instant(seconds(1)));
  EXPECT_THAT(Begin(),
              ElementsAre("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1", "127.0.0.2"));
}

TEST_F(HandshakeQueueTest, FewAreUnderWayInAll) {
  for (size_t i = 0; i < HandshakeQueue::kMost + 1; ++i) {
    queue_.Add(From(1 + static_cast<int>(i % 100)), Instant(seconds(1)));
    queue_.Look(Instant());
    Begin();
  }
  EXPECT_EQ(queue_.under_way(), HandshakeQueue::kMost);
  EXPECT_TRUE(queue_.waits());
}

TEST_F(HandshakeQueueTest, NeitherAHandshakeNorAWaitLastsForEver) {
  queue_.Add(From(1), Instant());
  EXPECT_EQ(Begin().size(), 1u);
  for (size_t i = 0; i < HandshakeQueue::kMostOfOne; ++i) queue_.Add(From(1), Instant(seconds(1)));
  EXPECT_EQ(Begin().size(), HandshakeQueue::kMostOfOne - 1);
  EXPECT_EQ(queue_.Look(Instant(seconds(1))), 1u);
  EXPECT_FALSE(queue_.waits());
  EXPECT_EQ(queue_.Look(Instant() + HandshakeQueue::kPatience), HandshakeQueue::kMostOfOne);
  EXPECT_EQ(queue_.under_way(), 0u);
  char byte = 0;
  EXPECT_EQ(::recv(clients_.front().get(), &byte, 1, 0), 0);
}

TEST_F(HandshakeQueueTest, TooManyThatWaitCostTheAddressWithTheMostItsOldest) {
  HandshakeQueue small(2);
  const Instant later = Instant(seconds(1));
  EXPECT_EQ(small.Add(From(1), later), "");
  EXPECT_EQ(small.Add(From(1), later), "");
  EXPECT_EQ(small.Add(From(2), later), "127.0.0.1");
  char byte = 0;
  EXPECT_EQ(::recv(clients_.front().get(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace hlaunch
