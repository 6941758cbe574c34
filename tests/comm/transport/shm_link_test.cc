// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/shm_link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace hlaunch {
namespace {

std::vector<std::byte> Counting(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 7 + i / 251);
  return bytes;
}

// Both ends in one process. Without a true proof the receiver may not read the sender's memory.
class ShmLink : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sockets), 0);
    auto mine = ShmMapping::Make();
    ASSERT_TRUE(mine.ok());
    auto theirs = ShmMapping::Map(UniqueFd(::dup(mine->fd())));
    ASSERT_TRUE(theirs.ok());
    PullProof proof = MyPullProof();
    if (!GetParam()) ++proof.value;
    out_ = MakeShmOutLink(UniqueFd(sockets[0]), *std::move(mine));
    in_ = MakeShmInLink(UniqueFd(sockets[1]), *std::move(theirs), ::getpid(), proof,
                        SingleCopy::kAlways);
  }

  std::unique_ptr<OutLink> out_;
  std::unique_ptr<InLink> in_;
};

TEST_P(ShmLink, CarriesMessagesOfAllSizesManyTimesAround) {
  size_t whole = 0;
  for (int round = 0; round < 300; ++round) {
    const auto sent = Counting(round % 10 == 0 ? 300000 + round : round * 37);
    Outgoing message{{0, {}, static_cast<uint64_t>(round)}, sent};
    std::vector<std::byte> received(sent.size());
    bool handed_over = false, taken = false;
    for (int step = 0; !taken; ++step) {
      ASSERT_LT(step, 10000) << "no progress";
      if (!handed_over) handed_over = out_->Push(&message);
      const FrameHead* const head = in_->Front();
      ASSERT_NE(head, nullptr);
      EXPECT_EQ(head->number, static_cast<uint64_t>(round));
      ASSERT_EQ(head->size, sent.size());
      taken = in_->Take(received);
    }
    out_->Poll();
    EXPECT_TRUE(message.done && out_->Settled());
    whole += received == sent;
  }
  EXPECT_EQ(whole, 300u);
}

TEST_P(ShmLink, LargeMessageIsCopiedOnceWhereTheKernelLetsIt) {
  const auto sent = Counting(100000);
  Outgoing message{{}, sent};
  out_->Push(&message);
  EXPECT_EQ(message.done, !GetParam()) << "handed over as bytes, or left where it is";
}

TEST_P(ShmLink, WhatWasWithdrawnIsNotTaken) {
  const auto sent = Counting(100000);
  Outgoing message{{}, sent};
  out_->Push(&message);
  out_->Tell({News::kFailed, {absl::CancelledError("enough"), 3}});
  out_->Withdraw();
  std::vector<std::byte> received(sent.size());
  ASSERT_NE(in_->Front(), nullptr);
  if (GetParam()) {
    EXPECT_FALSE(in_->Take(received));
  }
  const auto heard = in_->Hear();
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard[0].failure.status.message(), "enough");
  EXPECT_EQ(heard[0].failure.rank, 3);
}

TEST_P(ShmLink, WakesWhoAsked) {
  std::byte byte{9};
  Outgoing message{{}, {&byte, 1}};
  EXPECT_TRUE(in_->Arm());
  out_->Push(&message);
  char wake;
  EXPECT_EQ(::recv(in_->fd(), &wake, 1, MSG_DONTWAIT | MSG_PEEK), 1);
  EXPECT_FALSE(in_->Arm()) << "there is something now";
}

TEST_P(ShmLink, FullRingTakesNoMoreUntilSomethingIsTaken) {
  std::byte byte{1};
  std::vector<Outgoing> messages(1000, {{}, {&byte, 1}});
  size_t sent = 0;
  while (sent < messages.size() && out_->Push(&messages[sent])) ++sent;
  ASSERT_LT(sent, messages.size());
  while (!out_->Arm()) continue;  // Says once what it had not seen yet.
  char wake;
  size_t taken = 0;
  while (::recv(out_->fd(), &wake, 1, MSG_DONTWAIT) != 1) {
    ASSERT_LT(taken, sent) << "all were taken, and the sender sleeps";
    ASSERT_NE(in_->Front(), nullptr);
    in_->Take({&byte, 1});
    ++taken;
  }
  EXPECT_TRUE(out_->Push(&messages[sent]));
}

TEST_P(ShmLink, WhoeverSleepsItselfWakesASenderFirst) {
  std::byte byte{1};
  std::vector<Outgoing> messages(1000, {{}, {&byte, 1}});
  size_t sent = 0;
  while (sent < messages.size() && out_->Push(&messages[sent])) ++sent;
  while (!out_->Arm()) continue;
  ASSERT_NE(in_->Front(), nullptr);
  in_->Take({&byte, 1});
  in_->Arm();
  char wake;
  EXPECT_EQ(::recv(out_->fd(), &wake, 1, MSG_DONTWAIT), 1);
}

TEST_P(ShmLink, EndOfTheSocketIsADeath) {
  out_.reset();
  const auto heard = in_->Hear();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].kind, News::kGone);
}

TEST_P(ShmLink, GoodbyeIsHeardThoughTheLastWordToItWasNotRead) {
  in_->Tell({News::kLeft});
  out_->Tell({News::kLeft});
  out_.reset();
  const std::vector<News> heard = in_->Hear();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].kind, News::kLeft);
  EXPECT_EQ(heard[1].kind, News::kGone);
}

INSTANTIATE_TEST_SUITE_P(All, ShmLink, testing::Bool(), [](const auto& reads) {
  return reads.param ? "ReceiverMayReadSender" : "ReceiverMayNot";
});

// A region that its maker can cut short would kill who reads it.
TEST(ShmMapping, RefusesWhatCouldBeCutShort) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  auto real = ShmMapping::Make();
  ASSERT_EQ(::ftruncate(fd.get(), ::lseek(real->fd(), 0, SEEK_END)), 0);
  EXPECT_FALSE(ShmMapping::Map(std::move(fd)).ok());
}

}  // namespace
}  // namespace hlaunch
