// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/wire/voter_convert.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hlaunch {
namespace {

using Request = v1::PassWitnessMessageRequest;

const VoterMember kSelf{7, "node0", "10.0.0.1:29400"};
const VoterMember kOther{8, "node1", "[fe80::1]:29401"};

VoterMessage Append() {
  VoterMessage message;
  message.from = kSelf.incarnation;
  message.to = kOther.incarnation;
  message.term = 3;
  message.ballot = {3, 5};
  message.entry =
      std::make_shared<VoterEntry>(VoterEntry{{3, 5}, 9, {kSelf, kOther}, std::string("a\0b", 3)});
  message.beat = 11;
  message.confirmed = 10;
  message.asked = 4;
  message.granted = true;
  message.taken = 5;
  return message;
}

TEST(VoterConvertTest, AMessageArrivesAsItWasSent) {
  const auto letter = FromProto(ToProto(Append(), "job", kSelf));
  ASSERT_TRUE(letter.ok()) << letter.status();
  EXPECT_EQ(letter->from.address, kSelf.address);
  const VoterMessage& m = letter->message;
  EXPECT_EQ(
      std::tuple(m.kind, m.from, m.to, m.term, m.beat, m.confirmed, m.asked, m.granted, m.taken),
      std::tuple(VoterMessage::Kind::kAppend, 7u, 8u, 3u, 11u, 10u, 4u, true, 5u));
  EXPECT_EQ(m.ballot, (Ballot{3, 5}));
  EXPECT_EQ(m.entry->version, 9u);
  EXPECT_EQ(m.entry->record, std::string("a\0b", 3));
  EXPECT_EQ(m.entry->members[1].address, kOther.address);
  EXPECT_EQ(m.entry->members[1].name, kOther.name);
}

TEST(VoterConvertTest, ALargeRecordIsNotCarried) {
  VoterMessage message = Append();
  VoterEntry large = *message.entry;
  large.record = std::string(kMaxCarriedRecordBytes + 1, 'a');
  message.entry = std::make_shared<VoterEntry>(large);
  const auto letter = FromProto(ToProto(message, "job", kSelf));
  ASSERT_TRUE(letter.ok()) << letter.status();
  EXPECT_EQ(letter->lacks_bytes, large.record.size());
  EXPECT_EQ(letter->message.entry->record, "");
  EXPECT_EQ(letter->message.entry->version, large.version);
}

TEST(VoterConvertTest, WhatIsOutOfItsRangeIsRefused) {
  const std::vector<std::function<void(Request*)>> damages = {
      [](Request* m) { m->clear_kind(); },
      [](Request* m) { m->set_kind(static_cast<Request::Kind>(99)); },
      [](Request* m) { m->clear_from(); },
      [](Request* m) { m->mutable_from()->set_incarnation(0); },
      [](Request* m) { m->mutable_from()->set_host(std::string(300, 'a')); },
      [](Request* m) { m->mutable_from()->set_host("a\nb"); },
      [](Request* m) { m->mutable_from()->set_address("node0"); },
      [](Request* m) { m->mutable_from()->set_port(0); },
      [](Request* m) { m->mutable_from()->set_port(65536); },
      [](Request* m) { m->set_term(~uint64_t{0}); },
      [](Request* m) { m->set_asked(~uint64_t{0}); },
      [](Request* m) { m->mutable_ballot()->set_term(~uint64_t{0}); },
      [](Request* m) { m->mutable_ballot()->set_index(6); },  // It differs from its entry's.
      [](Request* m) { m->mutable_entry()->clear_members(); },
      [](Request* m) { *m->mutable_entry()->add_members() = m->from(); },  // A duplicate.
      [](Request* m) {
        for (int i = 0; i < kMaxVoters; ++i) {
          v1::Voter one = m->from();
          one.set_incarnation(100 + i);
          *m->mutable_entry()->add_members() = one;
        }
      },
      [](Request* m) {
        m->mutable_entry()->set_record(std::string(kMaxCarriedRecordBytes + 1, 'a'));
      },
      [](Request* m) { m->mutable_entry()->set_record_bytes(1); },  // The record is there.
      [](Request* m) {
        m->mutable_entry()->clear_record();
        m->mutable_entry()->set_record_bytes(kMaxVoterRecordBytes + 1);
      },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Request message = ToProto(Append(), "job", kSelf);
    damages[i](&message);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status())) << i;
  }
}

// Any bytes are taken whole or refused, and what is taken can be sent on.
TEST(VoterConvertTest, DamagedBytesAreTakenOrRefused) {
  std::mt19937 random(1);
  std::string good;
  ToProto(Append(), "job", kSelf).SerializeToString(&good);
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int k = 1 + static_cast<int>(random() % 3); k > 0; --k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Request message;
    if (!message.ParseFromString(bytes)) continue;
    const auto letter = FromProto(message);
    if (!letter.ok()) continue;
    ++taken;
    EXPECT_TRUE(FromProto(ToProto(letter->message, "job", letter->from)).ok());
  }
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace hlaunch
