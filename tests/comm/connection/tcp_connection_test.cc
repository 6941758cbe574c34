// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/tcp_connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "tests/comm/connection/counting.h"

namespace hlaunch {
namespace {

constexpr char kHandshake[] = "here I am";

// Both ends are in one process, with stream sockets between them.
class TcpConnection : public testing::Test {
 protected:
  static std::pair<UniqueFd, UniqueFd> Pair() {
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
    return {UniqueFd(sockets[0]), UniqueFd(sockets[1])};
  }

  void Make(int streams) {
    auto [mine, theirs] = Pair();
    out_ = MakeTcpOutConnection(std::move(mine), streams, [this](int stream) -> ExtraStream {
      auto [here, there] = Pair();
      EXPECT_EQ(static_cast<size_t>(stream), arriving_.size() + 1);
      arriving_.push_back(std::move(there));
      return {std::move(here),
              [](int fd) { return ::send(fd, kHandshake, std::strlen(kHandshake), 0) > 0; }};
    });
    in_ = MakeTcpInConnection(std::move(theirs));
  }

  // Gives the opened streams to the receiver, after their handshake.
  void AcceptStreams() {
    for (size_t i = 0; i < arriving_.size(); ++i) {
      char said[sizeof kHandshake];
      ASSERT_EQ(::recv(arriving_[i].get(), said, std::strlen(kHandshake), 0),
                static_cast<ssize_t>(std::strlen(kHandshake)));
      ASSERT_TRUE(in_->AddStream(static_cast<int>(i) + 1, std::move(arriving_[i])));
    }
    arriving_.clear();
  }

  // Moves `sent` to the other end and calls `each` between the steps.
  std::vector<std::byte> Move(const std::vector<std::byte>& sent,
                              const std::function<void(int step)>& each) {
    Outgoing message{{0, {}, 5}, sent};
    std::vector<std::byte> received(sent.size());
    bool handed_over = false, taken = false;
    for (int step = 0; !taken; ++step) {
      if (step > 100000) return {};
      if (!handed_over) handed_over = out_->Push(&message);
      each(step);
      const FrameHead* const head = in_->Front();
      if (head == nullptr) continue;
      EXPECT_EQ(head->number, 5u);
      EXPECT_EQ(head->size, sent.size());
      EXPECT_EQ(head->call, Call());
      taken = in_->Take(received);
    }
    return received;
  }

  std::unique_ptr<OutConnection> out_;
  std::unique_ptr<InConnection> in_;
  std::vector<UniqueFd> arriving_;
};

TEST_F(TcpConnection, LargeMessagesGoOverAllStreams) {
  Make(4);
  for (const size_t size : {kStripedFrom, kStripedFrom + 1, 3 * kStripedFrom + 4095}) {
    const auto sent = Counting(size);
    EXPECT_EQ(Move(sent, [&](int) { AcceptStreams(); }), sent);
  }
  EXPECT_EQ(out_->stream_fds().size(), 3u);
}

TEST_F(TcpConnection, SmallMessagesOpenNoStreams) {
  Make(4);
  const auto sent = Counting(kStripedFrom - 1);
  EXPECT_EQ(Move(sent, [](int) {}), sent);
  EXPECT_TRUE(out_->stream_fds().empty());
}

TEST_F(TcpConnection, PartsThatComeBeforeTheirStreamIsKnownAreNotLost) {
  Make(3);
  const auto sent = Counting(2 * kStripedFrom);
  EXPECT_EQ(Move(sent,
                 [&](int step) {
                   if (step == 50) AcceptStreams();
                 }),
            sent);
}

TEST_F(TcpConnection, GoesOnWithoutStreamsThatCannotBeOpened) {
  auto [mine, theirs] = Pair();
  out_ = MakeTcpOutConnection(std::move(mine), 4, [](int) { return ExtraStream(); });
  in_ = MakeTcpInConnection(std::move(theirs));
  const auto sent = Counting(kStripedFrom);
  EXPECT_EQ(Move(sent, [](int) {}), sent);
}

TEST_F(TcpConnection, AStreamTooManyIsRefused) {
  Make(1);
  EXPECT_FALSE(in_->AddStream(0, UniqueFd()));
  EXPECT_FALSE(in_->AddStream(kMostStreams, UniqueFd()));
  EXPECT_TRUE(in_->AddStream(1, Pair().first));
  EXPECT_FALSE(in_->AddStream(1, Pair().first)) << "it is there already";
}

TEST_F(TcpConnection, AHeadThatNamesTooManyStreamsIsADeath) {
  auto [mine, theirs] = Pair();
  in_ = MakeTcpInConnection(std::move(theirs));
  FrameHead head;
  head.size = 8;
  head.call.unused = 200;
  ASSERT_EQ(::send(mine.get(), &head, sizeof head, 0), static_cast<ssize_t>(sizeof head));
  EXPECT_EQ(in_->Front(), nullptr);
  const auto notices = in_->ReadNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].kind, Notice::kDisconnected);
}

TEST_F(TcpConnection, AStreamThatEndsInTheMiddleIsADeath) {
  Make(2);
  const auto sent = Counting(2 * kStripedFrom);
  Outgoing message{{0, {}, 5}, sent};
  ASSERT_FALSE(out_->Push(&message));
  arriving_.clear();  // The streams close without a message.
  auto [here, there] = Pair();
  here.Close();
  ASSERT_TRUE(in_->AddStream(1, std::move(there)));
  ASSERT_NE(in_->Front(), nullptr);
  std::vector<std::byte> received(sent.size());
  EXPECT_FALSE(in_->Take(received));
  const auto notices = in_->ReadNotices();
  ASSERT_FALSE(notices.empty());
  EXPECT_EQ(notices.back().kind, Notice::kDisconnected);
}

TEST_F(TcpConnection, AStreamThatOnlyItsSenderFindsBrokenIsADeathForBoth) {
  Make(2);
  const auto sent = Counting(2 * kStripedFrom);
  Outgoing message{{0, {}, 5}, sent};
  ASSERT_FALSE(out_->Push(&message));
  arriving_.clear();  // As if the network had dropped it: the receiver never saw it.
  ASSERT_FALSE(out_->Push(&message));
  ASSERT_NE(in_->Front(), nullptr);
  std::vector<std::byte> received(sent.size());
  EXPECT_FALSE(in_->Take(received));
  for (const auto& notices : {out_->ReadNotices(), in_->ReadNotices()}) {
    ASSERT_FALSE(notices.empty());
    EXPECT_EQ(notices.back().kind, Notice::kDisconnected);
  }
}

}  // namespace
}  // namespace hlaunch
