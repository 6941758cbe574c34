// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/token_greeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "rendezvous/net/trust/job_token.h"
#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

Trust OfJob(const std::string& job, const std::string& token = kToken) {
  return Holder(MakeJobToken(token, job).value());
}
std::string Nonce(char c) { return std::string(kNonceBytes, c); }

// A conversation between two peers with these trusts.
struct Greeting {
  Greeting(const Trust& client_has, const Trust& server_has)
      : client(client_has, Nonce('c')), server(server_has, client.hello(), Nonce('s')) {}

  bool Succeeds() const {
    const auto proof = client.Prove(server.answer());
    return proof.ok() && server.IsProof(*proof);
  }

  ClientGreeting client;
  ServerGreeting server;
};

std::string RefusedFor(const absl::StatusOr<std::string>& proof) {
  EXPECT_EQ(proof.status().code(), absl::StatusCode::kPermissionDenied) << proof.status();
  return std::string(proof.status().message());
}

TEST(ReadHello, IsWholeOnceItsLastByteHasCome) {
  for (const Trust& trust : {Holder(), OfJob("ann-7"), OfJob(std::string(256, 'j'))}) {
    const std::string hello = ClientGreeting(trust, Nonce('c')).hello();
    ASSERT_LE(hello.size(), kMostHelloBytes);
    for (size_t size = 1; size < hello.size(); ++size) {
      const TokenHello part = ReadHello(absl::string_view(hello).substr(0, size));
      ASSERT_EQ(part.kind, TokenHello::Kind::kMore) << size;
      ASSERT_GT(part.size, size);
      ASSERT_LE(part.size, hello.size());
    }
    const TokenHello whole = ReadHello(hello + "PRI * HTTP/2.0");
    EXPECT_EQ(whole.kind, TokenHello::Kind::kWhole);
    EXPECT_EQ(whole.size, hello.size());
    EXPECT_EQ(whole.server_name, trust.server_name());
    EXPECT_EQ(whole.job_id, trust.job().value_or(""));
  }
}

TEST(ReadHello, SaysWhetherTlsFollows) {
  EXPECT_FALSE(ReadHello(ClientGreeting(Holder(), Nonce('c')).hello()).encrypts);
  const Trust encrypts = Trust::OfToken(kToken).value();
  EXPECT_TRUE(ReadHello(ClientGreeting(encrypts, Nonce('c')).hello()).encrypts);
}

TEST(ReadHello, TakesNothingElseForOne) {
  for (const char* bytes :
       {"PRI * HTTP/2.0", "\x16\x03\x01", "hlaunch\x02", "hlauncher", "\x15hl"}) {
    EXPECT_EQ(ReadHello(bytes).kind, TokenHello::Kind::kNone) << bytes;
  }
}

TEST(ReadHello, RefusesAJobsIdThatIsTooLong) {
  std::string hello = ClientGreeting(Holder(), Nonce('c')).hello();
  hello[hello.size() - 2] = 1;
  hello[hello.size() - 1] = 1;  // The length is 257 now.
  EXPECT_EQ(ReadHello(hello).kind, TokenHello::Kind::kNone);
}

TEST(TokenGreeting, SucceedsBetweenHoldersOfTheSame) {
  EXPECT_TRUE(Greeting(Holder(), Holder()).Succeeds());
  const Greeting of_job(OfJob("ann-7"), Holder());
  EXPECT_TRUE(of_job.Succeeds());
  EXPECT_EQ(of_job.server.job_id(), "ann-7");
  EXPECT_EQ(Greeting(Holder(), Holder()).server.job_id(), "");
}

TEST(TokenGreeting, ToldOfAnotherTokenTheClientProvesNothing) {
  const Greeting greeting(Holder(), Holder(kOtherToken));
  EXPECT_THAT(RefusedFor(greeting.client.Prove(greeting.server.answer())),
              HasSubstr("does not hold this node's token"));
  EXPECT_FALSE(Greeting(OfJob("a", kOtherToken), Holder()).Succeeds());
}

// The holder of a job's token can name another job but cannot prove it.
TEST(TokenGreeting, AJobsTokenProvesThatJobAlone) {
  const Trust ours = OfJob("ours");
  const ClientGreeting client(ours, Nonce('c'));
  std::string forged = client.hello();
  forged.replace(forged.size() - 4, 4, "them");
  const ServerGreeting server(Holder(), forged, Nonce('s'));
  EXPECT_EQ(server.job_id(), "them");
  EXPECT_FALSE(client.Prove(server.answer()).ok());
  // Nor can it answer the job's other nodes as the service that holds the whole token.
  EXPECT_EQ(ServerGreeting(ours, ClientGreeting(Holder(), Nonce('d')).hello(), Nonce('s')).answer(),
            "");
}

// Each HMAC belongs to one side: a side's own words cannot be sent back as the peer's.
TEST(TokenGreeting, NothingCanBeReflected) {
  const Greeting greeting(Holder(), Holder());
  const std::string proof = greeting.client.Prove(greeting.server.answer()).value();
  const std::string head = greeting.server.answer().substr(0, 8 + kNonceBytes);
  EXPECT_FALSE(greeting.client.Prove(head + proof.substr(8)).ok());
  EXPECT_FALSE(greeting.server.IsProof(proof.substr(0, 8) + greeting.server.answer().substr(24)));
  EXPECT_FALSE(greeting.client.Prove(greeting.client.hello()).ok());
}

// Each side's nonce is new, so a recorded conversation is useless against either.
TEST(TokenGreeting, NothingCanBeUsedAgain) {
  const Greeting recorded(Holder(), Holder());
  const std::string proof = recorded.client.Prove(recorded.server.answer()).value();
  EXPECT_FALSE(ServerGreeting(Holder(), recorded.client.hello(), Nonce('t')).IsProof(proof));
  EXPECT_FALSE(ClientGreeting(Holder(), Nonce('d')).Prove(recorded.server.answer()).ok());
  EXPECT_NE(NewNonce(), NewNonce());
}

TEST(TokenGreeting, AnswersAndProofsMustBeWhole) {
  const Greeting greeting(Holder(), Holder());
  const std::string& answer = greeting.server.answer();
  ASSERT_EQ(answer.size(), kAnswerBytes);
  for (size_t size = 0; size < answer.size(); ++size) {
    const auto proof = greeting.client.Prove(answer.substr(0, size));
    EXPECT_TRUE(proof.ok() && proof->empty()) << size;
  }
  EXPECT_FALSE(greeting.client.Prove(answer + "x").ok());
  const std::string proof = greeting.client.Prove(answer).value();
  ASSERT_EQ(proof.size(), kProofBytes);
  EXPECT_FALSE(greeting.server.IsProof(proof.substr(0, proof.size() - 1)));
  EXPECT_FALSE(greeting.server.IsProof(proof + "x"));
  EXPECT_FALSE(greeting.server.IsProof(""));
}

TEST(TokenGreeting, EveryBitCounts) {
  const Greeting greeting(Holder(), Holder());
  const std::string proof = greeting.client.Prove(greeting.server.answer()).value();
  for (size_t i = 0; i < kAnswerBytes; ++i) {
    std::string answer = greeting.server.answer();
    answer[i] = static_cast<char>(answer[i] ^ 1);
    EXPECT_FALSE(greeting.client.Prove(answer).ok()) << i;
  }
  for (size_t i = 0; i < kProofBytes; ++i) {
    std::string broken = proof;
    broken[i] = static_cast<char>(broken[i] ^ 1);
    EXPECT_FALSE(greeting.server.IsProof(broken)) << i;
  }
}

TEST(TokenGreeting, SaysWhatDiffersAndWhatToDo) {
  const ClientGreeting client(Holder(), Nonce('c'));
  const auto told = [&](GreetingRefusal why) {
    EXPECT_TRUE(client.Prove(RefusalOfHello(why).substr(0, 8)).ok());  // The reason follows.
    return RefusedFor(client.Prove(RefusalOfHello(why)));
  };
  EXPECT_THAT(told(GreetingRefusal::kEncrypts), HasSubstr("give all nodes the same --tls"));
  EXPECT_THAT(told(GreetingRefusal::kInClear), HasSubstr("the rendezvous has --tls off"));
  EXPECT_THAT(told(GreetingRefusal::kOtherToken),
              HasSubstr("this node's token is not the rendezvous' token (its fingerprint here: " +
                        Holder().fingerprint()));
  EXPECT_THAT(told(GreetingRefusal::kNoToken), HasSubstr("the rendezvous has none"));
  EXPECT_THAT(told(GreetingRefusal::kCertificates), HasSubstr("--tls-cert"));
  EXPECT_THAT(told(static_cast<GreetingRefusal>(200)),
              HasSubstr("for reason 200, which this version of hlaunch does not know"));
}

TEST(TokenGreeting, TakesNoOtherProtocolForAnAnswer) {
  const ClientGreeting client(Holder(), Nonce('c'));
  for (const char* bytes : {"HTTP/1.1 400 Bad Request\r\n", "\x15\x03\x03", "h-launch"}) {
    const auto proof = client.Prove(bytes);
    EXPECT_EQ(proof.status().code(), absl::StatusCode::kUnavailable) << bytes;
  }
}

TEST(TokenGreeting, SaysNothingThatIsSecret) {
  const Greeting greeting(Holder(), Holder());
  const std::string said = greeting.client.hello() + greeting.server.answer();
  EXPECT_EQ(said.find(kToken), std::string::npos);
  EXPECT_EQ(said.find(Holder().GreetingKeyFor("")), std::string::npos);
  EXPECT_NE(Holder().GreetingKeyFor(""), Holder().GreetingKeyFor("job"));
}

}  // namespace
}  // namespace hlaunch
