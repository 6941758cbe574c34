// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/tcp_link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

namespace hlaunch {
namespace {

constexpr char kHello[] = "here I am";

std::vector<std::byte> Counting(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 7 + i / 251);
  return bytes;
}

// Both ends in one process, with stream sockets between them.
class TcpLink : public testing::Test {
 protected:
  static std::pair<UniqueFd, UniqueFd> Pair() {
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
    return {UniqueFd(sockets[0]), UniqueFd(sockets[1])};
  }

  void Make(int streams) {
    auto [mine, theirs] = Pair();
    out_ = MakeTcpOutLink(std::move(mine), streams, [this](int stream) -> Side {
      auto [here, there] = Pair();
      EXPECT_EQ(static_cast<size_t>(stream), arriving_.size() + 1);
      arriving_.push_back(std::move(there));
      return {std::move(here), kHello};
    });
    in_ = MakeTcpInLink(std::move(theirs));
  }

  // Lets the sides in that have been opened, without their hello.
  void LetIn() {
    for (size_t i = 0; i < arriving_.size(); ++i) {
      char said[sizeof kHello];
      ASSERT_EQ(::recv(arriving_[i].get(), said, std::strlen(kHello), 0),
                static_cast<ssize_t>(std::strlen(kHello)));
      ASSERT_TRUE(in_->AddSide(static_cast<int>(i) + 1, std::move(arriving_[i])));
    }
    arriving_.clear();
  }

  // Moves `sent` to the other end; `each` is called between the steps.
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

  std::unique_ptr<OutLink> out_;
  std::unique_ptr<InLink> in_;
  std::vector<UniqueFd> arriving_;
};

TEST_F(TcpLink, LargeMessagesGoOverAllStreams) {
  Make(4);
  for (const size_t size : {kStripedFrom, kStripedFrom + 1, 3 * kStripedFrom + 4095}) {
    const auto sent = Counting(size);
    EXPECT_EQ(Move(sent, [&](int) { LetIn(); }), sent);
  }
  EXPECT_EQ(out_->side_fds().size(), 3u);
}

TEST_F(TcpLink, SmallMessagesOpenNoStreams) {
  Make(4);
  const auto sent = Counting(kStripedFrom - 1);
  EXPECT_EQ(Move(sent, [](int) {}), sent);
  EXPECT_TRUE(out_->side_fds().empty());
}

TEST_F(TcpLink, PartsThatComeBeforeTheirStreamIsKnownAreNotLost) {
  Make(3);
  const auto sent = Counting(2 * kStripedFrom);
  EXPECT_EQ(Move(sent,
                 [&](int step) {
                   if (step == 50) LetIn();
                 }),
            sent);
}

TEST_F(TcpLink, GoesOnWithoutStreamsThatCannotBeOpened) {
  auto [mine, theirs] = Pair();
  out_ = MakeTcpOutLink(std::move(mine), 4, [](int) { return Side(); });
  in_ = MakeTcpInLink(std::move(theirs));
  const auto sent = Counting(kStripedFrom);
  EXPECT_EQ(Move(sent, [](int) {}), sent);
}

TEST_F(TcpLink, AStreamTooManyIsRefused) {
  Make(1);
  EXPECT_FALSE(in_->AddSide(0, UniqueFd()));
  EXPECT_FALSE(in_->AddSide(kMostStreams, UniqueFd()));
  EXPECT_TRUE(in_->AddSide(1, Pair().first));
  EXPECT_FALSE(in_->AddSide(1, Pair().first)) << "it is there already";
}

TEST_F(TcpLink, AHeadThatNamesTooManyStreamsIsADeath) {
  auto [mine, theirs] = Pair();
  in_ = MakeTcpInLink(std::move(theirs));
  FrameHead head;
  head.size = 8;
  head.call.unused = 200;
  ASSERT_EQ(::send(mine.get(), &head, sizeof head, 0), static_cast<ssize_t>(sizeof head));
  EXPECT_EQ(in_->Front(), nullptr);
  const auto heard = in_->Hear();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].kind, News::kGone);
}

TEST_F(TcpLink, AStreamThatEndsInTheMiddleIsADeath) {
  Make(2);
  const auto sent = Counting(2 * kStripedFrom);
  Outgoing message{{0, {}, 5}, sent};
  ASSERT_FALSE(out_->Push(&message));
  arriving_.clear();  // It is closed without a word.
  auto [here, there] = Pair();
  here.Close();
  ASSERT_TRUE(in_->AddSide(1, std::move(there)));
  ASSERT_NE(in_->Front(), nullptr);
  std::vector<std::byte> received(sent.size());
  EXPECT_FALSE(in_->Take(received));
  const auto heard = in_->Hear();
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard.back().kind, News::kGone);
}

TEST_F(TcpLink, AStreamThatOnlyItsSenderFindsBrokenIsADeathForBoth) {
  Make(2);
  const auto sent = Counting(2 * kStripedFrom);
  Outgoing message{{0, {}, 5}, sent};
  ASSERT_FALSE(out_->Push(&message));
  arriving_.clear();  // As if the network had dropped it: the receiver never knew it.
  ASSERT_FALSE(out_->Push(&message));
  ASSERT_NE(in_->Front(), nullptr);
  std::vector<std::byte> received(sent.size());
  EXPECT_FALSE(in_->Take(received));
  for (const auto& heard : {out_->Hear(), in_->Hear()}) {
    ASSERT_FALSE(heard.empty());
    EXPECT_EQ(heard.back().kind, News::kGone);
  }
}

}  // namespace
}  // namespace hlaunch
