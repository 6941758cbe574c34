// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/greeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace hlaunch {
namespace {

const std::string kSecret(kSecretSize, 's');

// How a greeting ended at both ends.
struct Ends {
  GreetingState dialer = GreetingState::kOpen, acceptor = GreetingState::kOpen;
  Refusal reason = Refusal::kNone;
};

Hello From(Rank from, Rank to, int world = 4, Round round = 7) {
  return MakeHello(from, to, world, round, /*keyed=*/true, "node");
}

Ends Greet(const Hello& dialing, const Hello& accepting, absl::string_view secret = kSecret,
           absl::string_view group = "g") {
  DialingGreeting dialer(DeriveGreetingKey(secret, group), dialing);
  AcceptingGreeting acceptor(DeriveGreetingKey(kSecret, "g"), accepting);
  Ends ends;
  std::string answer, proof, nothing;
  ends.acceptor = acceptor.Receive(dialer.First(), &answer);
  ends.dialer = dialer.Receive(answer, &proof);
  if (ends.acceptor == GreetingState::kOpen) ends.acceptor = acceptor.Receive(proof, &nothing);
  ends.reason = dialer.reason();
  if (ends.acceptor == GreetingState::kRefused) {
    EXPECT_EQ(acceptor.reason(), dialer.reason()) << "both ends know why";
  }
  return ends;
}

TEST(Greeting, ProvesBothEndsToEachOther) {
  const Ends ends = Greet(From(1, 0), From(0, 0));
  EXPECT_EQ(ends.dialer, GreetingState::kProven);
  EXPECT_EQ(ends.acceptor, GreetingState::kProven);
}

TEST(Greeting, BothEndsKnowWhyOneIsRefused) {
  EXPECT_EQ(Greet(From(1, 0), From(0, 0), "another").reason, Refusal::kOtherSecret);
  EXPECT_EQ(Greet(From(1, 0), From(0, 0), kSecret, "h").reason, Refusal::kOtherSecret);
  EXPECT_EQ(Greet(From(1, 0, 4, 6), From(0, 0)).reason, Refusal::kEarlierRound);
  EXPECT_EQ(Greet(From(1, 0, 4, 8), From(0, 0)).reason, Refusal::kLaterRound);
  EXPECT_EQ(Greet(From(1, 0, 5), From(0, 0)).reason, Refusal::kOtherWorld);
  EXPECT_EQ(Greet(From(1, 2), From(0, 0)).reason, Refusal::kOtherRank);
  EXPECT_EQ(Greet(From(4, 0), From(0, 0)).reason, Refusal::kOtherRank);
  EXPECT_EQ(Greet(From(-1, 0), From(0, 0)).reason, Refusal::kOtherRank);
  EXPECT_EQ(Greet(From(0, 0), From(0, 0)).reason, Refusal::kOtherRank);
  Hello unkeyed = From(1, 0);
  unkeyed.keyed = 0;
  EXPECT_EQ(Greet(unkeyed, From(0, 0)).reason, Refusal::kOtherSecret);
}

TEST(Greeting, WhatIsNoRankIsRefusedAtItsFirstBytes) {
  AcceptingGreeting acceptor(DeriveGreetingKey(kSecret, "g"), From(0, 0));
  std::string reply;
  EXPECT_EQ(acceptor.Receive("GET", &reply), GreetingState::kRefused);
  EXPECT_EQ(acceptor.reason(), Refusal::kNotARank);
  EXPECT_EQ(reply.size(), 1u);
}

// Where a rank's memory is, and the number by which it is known, hears only who has the secret.
TEST(Greeting, SaysWhereTheMemoryIsOnlyToWhoHasProvenHimself) {
  const PullProof own = OwnPullProof();
  const std::string address(reinterpret_cast<const char*>(&own.address), sizeof own.address);
  const std::string value(reinterpret_cast<const char*>(&own.value), sizeof own.value);
  const auto tells = [&](const std::string& words) {
    return absl::StrContains(words, address) || absl::StrContains(words, value);
  };
  const GreetingKey key = DeriveGreetingKey(kSecret, "g");
  AcceptingGreeting acceptor(key, From(0, 0));
  DialingGreeting dialer(key, From(1, 0));
  std::string answer, proof, nothing;
  EXPECT_FALSE(tells(dialer.First()));
  acceptor.Receive(dialer.First(), &answer);
  EXPECT_FALSE(tells(answer));
  ASSERT_EQ(dialer.Receive(answer, &proof), GreetingState::kProven);
  ASSERT_EQ(acceptor.Receive(proof, &nothing), GreetingState::kProven);
  EXPECT_EQ(acceptor.pull_proof().address, own.address);
  EXPECT_EQ(acceptor.pull_proof().value, own.value);
  // And what is said there cannot be changed on the way.
  AcceptingGreeting another(key, From(0, 0));
  DialingGreeting again(key, From(1, 0));
  another.Receive(again.First(), &answer);
  ASSERT_EQ(again.Receive(answer, &proof), GreetingState::kProven);
  ++proof[1];
  EXPECT_EQ(another.Receive(proof, &nothing), GreetingState::kRefused);
}

// A recorded proof is worth nothing to the same acceptor, whose own bytes are fresh.
TEST(Greeting, ARecordedOneProvesNothing) {
  DialingGreeting dialer(DeriveGreetingKey(kSecret, "g"), From(1, 0));
  AcceptingGreeting first(DeriveGreetingKey(kSecret, "g"), From(0, 0));
  AcceptingGreeting second(DeriveGreetingKey(kSecret, "g"), From(0, 0));
  std::string answer, proof, nothing;
  first.Receive(dialer.First(), &answer);
  ASSERT_EQ(dialer.Receive(answer, &proof), GreetingState::kProven);
  EXPECT_EQ(first.Receive(proof, &nothing), GreetingState::kProven);
  EXPECT_EQ(second.Receive(dialer.First(), &answer), GreetingState::kOpen);
  EXPECT_EQ(second.Receive(proof, &nothing), GreetingState::kRefused);
  EXPECT_EQ(second.reason(), Refusal::kOtherSecret);
}

// Neither the acceptor's own words nor another rank's proof for it prove anything.
TEST(Greeting, AReflectedOneProvesNothing) {
  AcceptingGreeting acceptor(DeriveGreetingKey(kSecret, "g"), From(0, 0));
  const Hello hello = From(1, 0);
  std::string answer, nothing;
  acceptor.Receive({reinterpret_cast<const char*>(&hello), sizeof hello}, &answer);
  const std::string own = answer.substr(1 + sizeof hello);
  EXPECT_EQ(acceptor.Receive(std::string(1 + sizeof(PullProof), '\0') + own, &nothing),
            GreetingState::kRefused);

  // A stranger that dialed rank 1 passes rank 1's answer to rank 0, which dials the stranger.
  DialingGreeting dialer(DeriveGreetingKey(kSecret, "g"), From(0, 1));
  AcceptingGreeting one(DeriveGreetingKey(kSecret, "g"), From(1, 0));
  Hello strangers = From(2, 1);
  one.Receive({reinterpret_cast<const char*>(&strangers), sizeof strangers}, &answer);
  EXPECT_EQ(dialer.Receive(answer, &nothing), GreetingState::kRefused);
  EXPECT_TRUE(dialer.refused_by_me());
}

TEST(Greeting, ComesInAnyParts) {
  DialingGreeting dialer(DeriveGreetingKey(kSecret, "g"), From(1, 0));
  AcceptingGreeting acceptor(DeriveGreetingKey(kSecret, "g"), From(0, 0));
  const auto feed = [](auto& end, const std::string& bytes) {
    std::string reply, all;
    for (const char byte : bytes) {
      end.Receive({&byte, 1}, &reply);
      all += reply;
      reply.clear();
    }
    return all;
  };
  const std::string answer = feed(acceptor, dialer.First());
  const std::string proof = feed(dialer, answer);
  std::string nothing;
  EXPECT_EQ(acceptor.Receive(proof, &nothing), GreetingState::kProven);
}

TEST(ParseSecret, TakesHexadecimalDigitsAndRepeatsNone) {
  EXPECT_EQ(*ParseSecret(""), "");
  EXPECT_EQ(*ParseSecret(absl::BytesToHexString(kSecret)), kSecret);
  for (const char* wrong : {"0123", "zz", "hunter2"}) {
    const absl::Status status = ParseSecret(wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr(wrong)));
  }
}

}  // namespace
}  // namespace hlaunch
