// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/judge_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "rendezvous/net/trust/token_greeting.h"
#include "tests/rendezvous/client_hello.h"
#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using Kind = FirstWords::Kind;
using To = ConnectionVerdict::To;

TEST(ReadFirstWords, FindsTheNameThatAClientAsksFor) {
  const FirstWords words = ReadFirstWords(HelloFor("abc.hlaunch"));
  EXPECT_EQ(words.kind, Kind::kTls);
  EXPECT_EQ(words.server_name, "abc.hlaunch");
  EXPECT_EQ(ReadFirstWords(HelloFor("")).kind, Kind::kTls);
  EXPECT_EQ(ReadFirstWords(HelloFor("")).server_name, "");
}

TEST(ReadFirstWords, AsksForMoreUntilTheHelloIsWhole) {
  const std::string hello = HelloFor("abc.hlaunch");
  EXPECT_EQ(ReadFirstWords("").kind, Kind::kNone);
  for (size_t size = 1; size < hello.size(); ++size) {
    const FirstWords words = ReadFirstWords(absl::string_view(hello).substr(0, size));
    EXPECT_EQ(words.kind, Kind::kMore);
    EXPECT_EQ(words.needed, size < 5 ? 5 : hello.size());
  }
  EXPECT_EQ(ReadFirstWords(hello + "more").kind, Kind::kTls);
}

TEST(ReadFirstWords, TellsOtherProtocolsByTheirFirstByte) {
  EXPECT_EQ(ReadFirstWords("PRI * HTTP/2.0").kind, Kind::kHttp2);
  EXPECT_EQ(ReadFirstWords(absl::string_view("\0\xCE", 2)).kind, Kind::kOther);
  EXPECT_EQ(ReadFirstWords("GET /").kind, Kind::kOther);
}

TEST(ReadFirstWords, TakesNoHelloThatContradictsItself) {
  const std::string hello = HelloFor("abc.hlaunch");
  // In turn, each length claims more bytes than there are.
  for (const size_t at : {6, 43, 51, 55, 57}) {
    std::string broken = hello;
    broken[at] = '\x7f';
    EXPECT_NE(ReadFirstWords(broken).server_name, "abc.hlaunch") << at;
  }
  EXPECT_EQ(ReadFirstWords(absl::string_view("\x16\x03\x01\xff\xff", 5)).kind, Kind::kOther);
  EXPECT_EQ(ReadFirstWords(std::string("\x16\x03\x01\0\x09\x02nonsense", 14)).kind, Kind::kOther);
}

TEST(JudgeConnection, WithATokenAnEncryptedConnectionBeginsWithAGreeting) {
  const Trust trust = Trust::OfToken(kToken).value();
  const std::string name = trust.server_name();
  const FirstWords greeting = ReadFirstWords(ClientGreeting(trust, NewNonce()).hello());
  EXPECT_EQ(JudgeConnection(greeting, {name, false, true}).to, To::kGreeted);
  // Whoever has read a client's first bytes knows the name.
  for (const std::string& asked : {name, std::string("def.hlaunch")}) {
    const auto replayed = JudgeConnection(ReadFirstWords(HelloFor(asked)), {name, false, true});
    EXPECT_EQ(replayed.to, To::kNobody);
    EXPECT_THAT(replayed.reason, HasSubstr("it did not prove that it holds the token"));
    EXPECT_EQ(absl::BytesToHexString(replayed.answer), "15030300020270");
  }
  const auto scanner = JudgeConnection(ReadFirstWords(HelloFor("")), {name, false, true});
  EXPECT_EQ(scanner.reason, "it is not hlaunch");
  EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor("node0")), {name, false, true}).reason,
            "it has no token, but certificates, or it is not hlaunch");
  const auto clear = JudgeConnection(ReadFirstWords("PRI"), {name, false, true});
  EXPECT_EQ(clear.to, To::kNobody);
  EXPECT_EQ(clear.reason, "it has no token");
  EXPECT_THAT(clear.answer, HasSubstr("401"));
  EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name).substr(0, 20)), {name, false, true}).to,
            To::kNobody);
}

TEST(JudgeConnection, TellsAClientWithATokenThatThereIsNoneHere) {
  EXPECT_EQ(JudgeConnection(ReadFirstWords("PRI"), {"", false, true}).to, To::kGrpc);
  const auto tls = JudgeConnection(ReadFirstWords(HelloFor("abc.hlaunch")), {"", false, true});
  EXPECT_EQ(tls.to, To::kNobody);
  EXPECT_EQ(tls.reason, "it has a token and there is none here");
  EXPECT_EQ(absl::BytesToHexString(tls.answer), "15030300020231");
}

TEST(JudgeConnection, WithCertificatesTakesEveryHelloButThatOfAToken) {
  for (const char* name : {"", "node0.example.org"}) {
    EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name)), {kAnyServerName, false, true}).to,
              To::kGrpc);
    EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name)), {"", false, true}).reason,
              "it has certificates and there are none here");
  }
  const auto token =
      JudgeConnection(ReadFirstWords(HelloFor("abc.hlaunch")), {kAnyServerName, false, true});
  EXPECT_EQ(token.to, To::kNobody);
  EXPECT_EQ(token.reason, "it has a token and certificates are demanded here");
  EXPECT_EQ(absl::BytesToHexString(token.answer), "15030300020274");
  const auto clear = JudgeConnection(ReadFirstWords("PRI"), {kAnyServerName, false, true});
  EXPECT_EQ(clear.to, To::kNobody);
  EXPECT_EQ(clear.reason, "it has no certificate");
}

TEST(ReadFirstWords, KnowsAGreetingOnceItIsWhole) {
  const std::string hello = ClientGreeting(Holder(), NewNonce()).hello();
  for (size_t size = 1; size < hello.size(); ++size) {
    const FirstWords words = ReadFirstWords(absl::string_view(hello).substr(0, size));
    EXPECT_EQ(words.kind, Kind::kMore);
    EXPECT_EQ(words.needed, hello.size());
  }
  const FirstWords words = ReadFirstWords(hello + "PRI");
  EXPECT_EQ(words.kind, Kind::kGreeting);
  EXPECT_EQ(words.needed, hello.size());
  EXPECT_EQ(words.server_name, Holder().server_name());
}

TEST(JudgeConnection, InClearTakesAGreetingAlone) {
  const std::string name = Holder().server_name();
  const PortRule in_clear = {name, true, true};
  const FirstWords greeting = ReadFirstWords(ClientGreeting(Holder(), NewNonce()).hello());
  EXPECT_EQ(JudgeConnection(greeting, in_clear).to, To::kGreeted);
  const Trust encrypting = Trust::OfToken(kToken).value();
  const auto encrypts =
      JudgeConnection(ReadFirstWords(ClientGreeting(encrypting, NewNonce()).hello()), in_clear);
  EXPECT_EQ(encrypts.to, To::kNobody);
  EXPECT_THAT(encrypts.reason, HasSubstr("it encrypts (--tls on) and here is --tls off"));
  EXPECT_EQ(encrypts.answer, RefusalOfHello(GreetingRefusal::kInClear));
  EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name)), in_clear).to, To::kNobody);
  const auto clear = JudgeConnection(ReadFirstWords("PRI"), in_clear);
  EXPECT_EQ(clear.to, To::kNobody);
  EXPECT_EQ(clear.reason, "it has no token");
  EXPECT_EQ(JudgeConnection(ReadFirstWords(absl::string_view("\0\xCE", 2)), in_clear).to,
            To::kC10d);
}

TEST(JudgeConnection, TellsAClientThatGreetsWhatIsDemandedHere) {
  const std::string name = Holder().server_name();
  const FirstWords greeting = ReadFirstWords(ClientGreeting(Holder(), NewNonce()).hello());
  const std::pair<PortRule, std::pair<GreetingRefusal, const char*>> cases[] = {
      {{name, false, true}, {GreetingRefusal::kEncrypts, "it has --tls off"}},
      {{"def.hlaunch", false, true}, {GreetingRefusal::kOtherToken, "it has another token"}},
      {{"def.hlaunch", true, true}, {GreetingRefusal::kOtherToken, "it has another token"}},
      {{"", false, true}, {GreetingRefusal::kNoToken, "there is none here"}},
      {{kAnyServerName, false, true},
       {GreetingRefusal::kCertificates, "certificates are demanded"}},
  };
  for (const auto& [rule, told] : cases) {
    const ConnectionVerdict verdict = JudgeConnection(greeting, rule);
    EXPECT_EQ(verdict.to, To::kNobody);
    EXPECT_EQ(verdict.answer, RefusalOfHello(told.first));
    EXPECT_THAT(verdict.reason, HasSubstr(told.second));
  }
}

TEST(JudgeConnection, GivesWhatIsNeitherToTheStoreIfThereIsOne) {
  for (const std::string& bytes : {std::string(), std::string("\0\xCE", 2)}) {
    EXPECT_EQ(JudgeConnection(ReadFirstWords(bytes), {"abc.hlaunch", false, true}).to, To::kC10d);
    EXPECT_EQ(JudgeConnection(ReadFirstWords(bytes), {"", false, false}).to, To::kNobody);
  }
}

}  // namespace
}  // namespace hlaunch
