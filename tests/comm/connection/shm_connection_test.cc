// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/shm_connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "comm/connection/shm_region.h"
#include "tests/comm/connection/counting.h"

namespace hlaunch {
namespace {

// Both ends are in one process. Without a true proof the receiver may not read the sender's memory.
class ShmConnection : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sockets), 0);
    auto mine = ShmMapping::Make();
    ASSERT_TRUE(mine.ok());
    auto theirs = ShmMapping::Map(UniqueFd(::dup(mine->fd())));
    ASSERT_TRUE(theirs.ok());
    region_ = mine->operator->();
    PullProof proof = OwnPullProof();
    if (!GetParam()) ++proof.value;
    out_ = MakeShmOutConnection(UniqueFd(sockets[0]), *std::move(mine));
    in_ = MakeShmInConnection(UniqueFd(sockets[1]), *std::move(theirs), ::getpid(), proof,
                              SingleCopy::kAlways);
  }

  shm::Region* region_ = nullptr;
  std::unique_ptr<OutConnection> out_;
  std::unique_ptr<InConnection> in_;
};

TEST_P(ShmConnection, CarriesMessagesOfAllSizesManyTimesAround) {
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

TEST_P(ShmConnection, LargeMessageIsCopiedOnceWhereTheKernelLetsIt) {
  const auto sent = Counting(100000);
  Outgoing message{{}, sent};
  out_->Push(&message);
  EXPECT_EQ(message.done, !GetParam()) << "handed over as bytes, or left where it is";
}

TEST_P(ShmConnection, WhatWasWithdrawnIsNotTaken) {
  const auto sent = Counting(100000);
  Outgoing message{{}, sent};
  out_->Push(&message);
  out_->SendNotice({Notice::kFailed, {absl::CancelledError("enough"), 3}});
  out_->Withdraw();
  std::vector<std::byte> received(sent.size());
  ASSERT_NE(in_->Front(), nullptr);
  if (GetParam()) {
    EXPECT_FALSE(in_->Take(received));
  }
  const auto notices = in_->ReadNotices();
  ASSERT_FALSE(notices.empty());
  EXPECT_EQ(notices[0].failure.status.message(), "enough");
  EXPECT_EQ(notices[0].failure.rank, 3);
}

// A broken sender may rewrite a slot at any time: the receiver must not read past it.
TEST_P(ShmConnection, AMessageThatChangesItsKindIsADeath) {
  const auto sent = Counting(10000);
  for (const auto other : {shm::kInSlot, shm::kToPull}) {
    SetUp();
    Outgoing message{{}, sent};
    out_->Push(&message);
    ASSERT_NE(in_->Front(), nullptr);
    region_->slots[0].stamp.store(shm::Stamp(0, other));
    std::vector<std::byte> received(sent.size());
    EXPECT_FALSE(in_->Take(received));
    EXPECT_EQ(received, std::vector<std::byte>(sent.size())) << "bytes of a slot";
    const auto notices = in_->ReadNotices();
    ASSERT_FALSE(notices.empty());
    EXPECT_EQ(notices.back().kind, Notice::kDisconnected);
  }
}

TEST_P(ShmConnection, WakesWhoAsked) {
  std::byte byte{9};
  Outgoing message{{}, {&byte, 1}};
  EXPECT_TRUE(in_->Arm());
  out_->Push(&message);
  char wake;
  EXPECT_EQ(::recv(in_->fd(), &wake, 1, MSG_DONTWAIT | MSG_PEEK), 1);
  EXPECT_FALSE(in_->Arm()) << "there is something now";
}

TEST_P(ShmConnection, FullRingTakesNoMoreUntilSomethingIsTaken) {
  std::byte byte{1};
  std::vector<Outgoing> messages(1000, {{}, {&byte, 1}});
  size_t sent = 0;
  while (sent < messages.size() && out_->Push(&messages[sent])) ++sent;
  ASSERT_LT(sent, messages.size());
  while (!out_->Arm()) continue;  // It reports once what it had not seen yet.
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

TEST_P(ShmConnection, WhoeverSleepsItselfWakesASenderFirst) {
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

TEST_P(ShmConnection, EndOfTheSocketIsADeath) {
  out_.reset();
  const auto notices = in_->ReadNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].kind, Notice::kDisconnected);
}

TEST_P(ShmConnection, GoodbyeIsHeardThoughTheLastWordToItWasNotRead) {
  in_->SendNotice({Notice::kLeft});
  out_->SendNotice({Notice::kLeft});
  out_.reset();
  const std::vector<Notice> notices = in_->ReadNotices();
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_EQ(notices[0].kind, Notice::kLeft);
  EXPECT_EQ(notices[1].kind, Notice::kDisconnected);
}

INSTANTIATE_TEST_SUITE_P(All, ShmConnection, testing::Bool(), [](const auto& reads) {
  return reads.param ? "ReceiverMayReadSender" : "ReceiverMayNot";
});

// A region that its maker can truncate would kill the process that reads it.
TEST(ShmMapping, RefusesWhatCouldBeCutShort) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  auto real = ShmMapping::Make();
  ASSERT_EQ(::ftruncate(fd.get(), ::lseek(real->fd(), 0, SEEK_END)), 0);
  EXPECT_FALSE(ShmMapping::Map(std::move(fd)).ok());
}

}  // namespace
}  // namespace hlaunch
