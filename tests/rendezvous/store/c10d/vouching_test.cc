// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/access/vouching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Instant kStart = Instant() + std::chrono::hours(1);
constexpr uint16_t kPort = 4711;

StoreAddress At(const std::string& literal) { return *ParseStoreAddress(literal); }

std::string BytesOf(const VouchMessage& message) {
  std::string bytes;
  PutVouchMessage(&bytes, message);
  return bytes;
}

// An agent's greeting, as it comes from an untranslated address.
absl::Status Greet(Vouching& vouching, Vouching::Agent agent, const std::string& address,
                   const std::vector<StoreAddress>& others = {}) {
  return vouching.Take(agent, At(address), 1000, BytesOf(VouchGreeting{At(address), 1000, others}));
}

absl::Status Say(Vouching& vouching, Vouching::Agent agent, Vouching::Client client, Vouch vouch,
                 uint32_t user = 0) {
  return vouching.Take(agent, At("10.0.0.2"), 1000, BytesOf(VouchAnswer{client, vouch, user}));
}

// The clients that `agent` is asked about now.
std::vector<uint64_t> Asked(Vouching& vouching, Vouching::Agent agent) {
  VouchReader reader;
  std::vector<uint64_t> clients;
  const auto messages = reader.Take(vouching.TakeQuestions()[agent]);
  for (const VouchMessage& message : *messages) {
    clients.push_back(std::get<VouchQuestion>(message).number);
  }
  return clients;
}

TEST(Vouching, AsksTheAgentOfTheClientsHostOnce) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  ASSERT_TRUE(Greet(vouching, 2, "10.0.0.3").ok());
  vouching.Came(7, At("10.0.0.3"), kPort, kStart);
  EXPECT_EQ(vouching.next(), Instant());
  auto questions = vouching.TakeQuestions();
  ASSERT_THAT(questions, SizeIs(1));
  VouchReader reader;
  const auto asked = reader.Take(questions[2]);
  const auto& question = std::get<VouchQuestion>(asked->at(0));
  EXPECT_EQ(question.number, 7U);
  EXPECT_EQ(question.address, At("10.0.0.3"));
  EXPECT_EQ(question.port, kPort);
  EXPECT_THAT(vouching.TakeQuestions(), IsEmpty());
  EXPECT_EQ(vouching.next(), kStart + Vouching::kPatience);
}

TEST(Vouching, AsksForManyClientsInOneMessage) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  for (uint64_t client = 5; client < 8; ++client) {
    vouching.Came(client, At("10.0.0.2"), kPort, kStart);
  }
  EXPECT_THAT(Asked(vouching, 1), ElementsAre(5, 6, 7));
}

TEST(Vouching, ServesWhomTheAgentCallsItsOwn) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  vouching.Came(7, At("10.0.0.2"), kPort, kStart);
  EXPECT_THAT(Asked(vouching, 1), ElementsAre(7));
  ASSERT_TRUE(Say(vouching, 1, 7, Vouch::kOwn).ok());
  const auto verdicts = vouching.TakeVerdicts(kStart);
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_EQ(verdicts[0].client, 7U);
  EXPECT_TRUE(verdicts[0].served);
  EXPECT_EQ(verdicts[0].reason, "");
  EXPECT_EQ(vouching.next(), Instant::max());
}

TEST(JudgeAnswer, RefusesAnotherUserAndNamesHimAndTheWayOut) {
  const auto verdict = JudgeAnswer({7, Vouch::kOther, 1001}, At("10.0.0.2"));
  EXPECT_FALSE(verdict.served);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("10.0.0.2"), HasSubstr("user 1001"),
                                    HasSubstr("--store-allow=members,10.0.0.2")));
  const auto nobodys = JudgeAnswer({7, Vouch::kNobody, 0}, At("10.0.0.2"));
  EXPECT_FALSE(nobodys.served);
  EXPECT_TRUE(nobodys.perhaps_gone);
  EXPECT_FALSE(JudgeAnswer({7, static_cast<Vouch>(9), 0}, At("10.0.0.2")).served);
}

TEST(JudgeAnswer, ServesAndSaysItWhereTheKernelDoesNotTell) {
  const auto verdict = JudgeAnswer({7, Vouch::kUntold, 0}, At("10.0.0.2"));
  EXPECT_TRUE(verdict.served);
  EXPECT_THAT(verdict.reason, HasSubstr("10.0.0.2"));
}

TEST(Vouching, WaitsForAnAgentThatComesLate) {
  Vouching vouching;
  vouching.Came(7, At("10.0.0.9"), kPort, kStart);
  EXPECT_EQ(vouching.next(), kStart + Vouching::kPatience);
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2", {At("10.0.0.9")}).ok());
  EXPECT_THAT(Asked(vouching, 1), ElementsAre(7));
}

TEST(Vouching, RefusesWhomNoAgentVouchesForInTime) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  vouching.Came(7, At("10.0.0.2"), kPort, kStart);
  vouching.Came(8, At("10.0.0.9"), kPort, kStart);
  EXPECT_THAT(vouching.TakeVerdicts(kStart), IsEmpty());
  const auto verdicts = vouching.TakeVerdicts(kStart + Vouching::kPatience);
  ASSERT_THAT(verdicts, SizeIs(2));
  EXPECT_FALSE(verdicts[0].served);
  EXPECT_THAT(verdicts[0].reason, HasSubstr("the job's agent there does not say"));
  EXPECT_FALSE(verdicts[1].served);
  EXPECT_THAT(verdicts[1].reason, AllOf(HasSubstr("10.0.0.9"), HasSubstr("no agent of the job")));
}

TEST(Vouching, NodesOfOneHostMayHaveDifferentUsers) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  ASSERT_TRUE(Greet(vouching, 2, "10.0.0.2").ok());
  vouching.Came(7, At("10.0.0.2"), kPort, kStart);
  EXPECT_THAT(Asked(vouching, 1), ElementsAre(7));
  ASSERT_TRUE(Say(vouching, 1, 7, Vouch::kOther, 1002).ok());
  EXPECT_THAT(vouching.TakeVerdicts(kStart), IsEmpty());
  EXPECT_THAT(Asked(vouching, 2), ElementsAre(7));
  ASSERT_TRUE(Say(vouching, 2, 7, Vouch::kOwn).ok());
  const auto verdicts = vouching.TakeVerdicts(kStart);
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].served);
}

TEST(Vouching, WhomAllDenyIsRefusedUnlessAnotherAgentComesSoon) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  for (const Vouching::Client client : {7, 8}) {
    vouching.Came(client, At("10.0.0.2"), kPort, kStart);
    ASSERT_TRUE(Say(vouching, 1, client, Vouch::kOther, 1002).ok());
  }
  vouching.TakeQuestions();
  EXPECT_EQ(vouching.next(), kStart + Vouching::kDeniedPatience);
  ASSERT_TRUE(Greet(vouching, 2, "10.0.0.2").ok());
  EXPECT_THAT(Asked(vouching, 2), ElementsAre(7, 8));
  ASSERT_TRUE(Say(vouching, 2, 7, Vouch::kOwn).ok());
  ASSERT_TRUE(Say(vouching, 2, 8, Vouch::kNobody).ok());
  const auto served = vouching.TakeVerdicts(kStart);
  ASSERT_THAT(served, SizeIs(1));
  EXPECT_EQ(served[0].client, 7U);
  const auto refused = vouching.TakeVerdicts(kStart + Vouching::kDeniedPatience);
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_FALSE(refused[0].served);
  EXPECT_THAT(refused[0].reason, HasSubstr("user 1002"));
}

TEST(Vouching, AnAgentMayVouchForWhomTheKernelCallsAnothers) {
  Vouching vouching;
  vouching.Came(7, At("127.0.0.1"), kPort, kStart, "it is of the user 1002");
  vouching.Came(8, At("127.0.0.1"), kPort, kStart, "it is of the user 1003");
  ASSERT_TRUE(Greet(vouching, 1, "127.0.0.1").ok());
  EXPECT_THAT(Asked(vouching, 1), ElementsAre(7, 8));
  ASSERT_TRUE(Say(vouching, 1, 7, Vouch::kOwn).ok());
  ASSERT_TRUE(Say(vouching, 1, 8, Vouch::kOther, 1003).ok());
  const auto verdicts = vouching.TakeVerdicts(kStart + Vouching::kDeniedPatience);
  ASSERT_THAT(verdicts, SizeIs(2));
  EXPECT_TRUE(verdicts[0].served);
  EXPECT_FALSE(verdicts[1].served);
  EXPECT_EQ(verdicts[1].reason, "it is of the user 1003");
}

TEST(Vouching, AsksAnewIfTheAgentLeavesBeforeItAnswers) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  vouching.Came(7, At("10.0.0.2"), kPort, kStart);
  EXPECT_THAT(Asked(vouching, 1), ElementsAre(7));
  vouching.Left(1);
  EXPECT_THAT(vouching.TakeQuestions(), IsEmpty());
  ASSERT_TRUE(Greet(vouching, 2, "10.0.0.2").ok());
  EXPECT_THAT(Asked(vouching, 2), ElementsAre(7));
}

TEST(Vouching, HearsOnlyTheAgentThatWasAsked) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  ASSERT_TRUE(Greet(vouching, 2, "10.0.0.3").ok());
  vouching.Came(7, At("10.0.0.3"), kPort, kStart);
  ASSERT_TRUE(Say(vouching, 1, 7, Vouch::kOwn).ok());
  EXPECT_THAT(vouching.TakeVerdicts(kStart), IsEmpty());
}

TEST(Vouching, ServesAllOfAnAddressThatIsTranslatedAndSaysIt) {
  Vouching vouching;
  ASSERT_TRUE(vouching
                  .Take(1, At("192.0.2.1"), 1000,
                        BytesOf(VouchGreeting{At("10.0.0.2"), 1000, {At("10.0.0.2")}}))
                  .ok());
  vouching.Came(7, At("192.0.2.1"), kPort, kStart);
  vouching.Came(8, At("10.0.0.2"), kPort, kStart);  // That is another host of that address.
  const auto verdicts = vouching.TakeVerdicts(kStart);
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_EQ(verdicts[0].client, 7U);
  EXPECT_TRUE(verdicts[0].served);
  EXPECT_THAT(verdicts[0].reason, AllOf(HasSubstr("192.0.2.1"), HasSubstr("translated")));
}

TEST(Vouching, ForgetsAClientThatHasGone) {
  Vouching vouching;
  ASSERT_TRUE(Greet(vouching, 1, "10.0.0.2").ok());
  vouching.Came(7, At("10.0.0.2"), kPort, kStart);
  vouching.Came(8, At("10.0.0.9"), kPort, kStart);
  vouching.Gone(7);
  vouching.Gone(8);
  ASSERT_TRUE(Say(vouching, 1, 7, Vouch::kOwn).ok());
  EXPECT_THAT(vouching.TakeVerdicts(kStart + Vouching::kPatience), IsEmpty());
}

TEST(Vouching, AnAgentThatSaysNonsenseIsRefused) {
  const std::string greeting = BytesOf(VouchGreeting{At("10.0.0.2"), 1000, {}});
  for (const std::string& bytes :
       {std::string("x"), BytesOf(VouchAnswer{7, Vouch::kOwn, 0}), greeting + greeting,
        greeting + BytesOf(VouchQuestion{7, At("10.0.0.2"), kPort})}) {
    Vouching vouching;
    EXPECT_TRUE(absl::IsInvalidArgument(vouching.Take(1, At("10.0.0.2"), 1000, bytes)));
    vouching.Left(1);
  }
}

TEST(VouchReader, TakesMessagesInPieces) {
  const std::string bytes = BytesOf(VouchGreeting{At("10.0.0.2"), 1000, {At("fd00::2")}}) +
                            BytesOf(VouchAnswer{1ULL << 40, Vouch::kOther, 1001});
  VouchReader reader;
  std::vector<VouchMessage> messages;
  for (const char byte : bytes) {
    const auto taken = reader.Take(absl::string_view(&byte, 1));
    ASSERT_TRUE(taken.ok());
    messages.insert(messages.end(), taken->begin(), taken->end());
  }
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_THAT(std::get<VouchGreeting>(messages[0]).others, ElementsAre(At("fd00::2")));
  EXPECT_EQ(std::get<VouchAnswer>(messages[1]).number, 1ULL << 40);
  EXPECT_EQ(std::get<VouchAnswer>(messages[1]).user, 1001U);
}

}  // namespace
}  // namespace hlaunch
