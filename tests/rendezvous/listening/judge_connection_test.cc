// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/listening/judge_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "tests/rendezvous/client_hello.h"

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
  // Each length in turn says more than there is.
  for (const size_t at : {6, 43, 51, 55, 57}) {
    std::string broken = hello;
    broken[at] = '\x7f';
    EXPECT_NE(ReadFirstWords(broken).server_name, "abc.hlaunch") << at;
  }
  EXPECT_EQ(ReadFirstWords(absl::string_view("\x16\x03\x01\xff\xff", 5)).kind, Kind::kOther);
  EXPECT_EQ(ReadFirstWords(std::string("\x16\x03\x01\0\x09\x02nonsense", 14)).kind, Kind::kOther);
}

TEST(JudgeConnection, HandsOnOnlyWhoNamesTheServer) {
  const std::string name = "abc.hlaunch";
  EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name)), name, true).to, To::kGrpc);
  const auto other = JudgeConnection(ReadFirstWords(HelloFor("def.hlaunch")), name, true);
  EXPECT_EQ(other.to, To::kNobody);
  EXPECT_EQ(other.reason, "it has another token");
  EXPECT_EQ(absl::BytesToHexString(other.answer), "15030300020270");
  const auto scanner = JudgeConnection(ReadFirstWords(HelloFor("")), name, true);
  EXPECT_EQ(scanner.reason, "it is not hlaunch");
  EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor("node0")), name, true).reason,
            "it has no token, but certificates, or it is not hlaunch");
  const auto clear = JudgeConnection(ReadFirstWords("PRI"), name, true);
  EXPECT_EQ(clear.to, To::kNobody);
  EXPECT_EQ(clear.reason, "it has no token");
  EXPECT_THAT(clear.answer, HasSubstr("401"));
  EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name).substr(0, 20)), name, true).to,
            To::kNobody);
}

TEST(JudgeConnection, TellsAClientWithATokenThatThereIsNoneHere) {
  EXPECT_EQ(JudgeConnection(ReadFirstWords("PRI"), "", true).to, To::kGrpc);
  const auto tls = JudgeConnection(ReadFirstWords(HelloFor("abc.hlaunch")), "", true);
  EXPECT_EQ(tls.to, To::kNobody);
  EXPECT_EQ(tls.reason, "it has a token and there is none here");
  EXPECT_EQ(absl::BytesToHexString(tls.answer), "15030300020231");
}

TEST(JudgeConnection, WithCertificatesTakesEveryHelloButThatOfAToken) {
  for (const char* name : {"", "node0.example.org"}) {
    EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name)), kAnyServerName, true).to, To::kGrpc);
    EXPECT_EQ(JudgeConnection(ReadFirstWords(HelloFor(name)), "", true).reason,
              "it has certificates and there are none here");
  }
  const auto token = JudgeConnection(ReadFirstWords(HelloFor("abc.hlaunch")), kAnyServerName, true);
  EXPECT_EQ(token.to, To::kNobody);
  EXPECT_EQ(token.reason, "it has a token and certificates are demanded here");
  EXPECT_EQ(absl::BytesToHexString(token.answer), "15030300020274");
  const auto clear = JudgeConnection(ReadFirstWords("PRI"), kAnyServerName, true);
  EXPECT_EQ(clear.to, To::kNobody);
  EXPECT_EQ(clear.reason, "it has no certificate");
}

TEST(JudgeConnection, GivesWhatIsNeitherToTheStoreIfThereIsOne) {
  for (const std::string& bytes : {std::string(), std::string("\0\xCE", 2)}) {
    EXPECT_EQ(JudgeConnection(ReadFirstWords(bytes), "abc.hlaunch", true).to, To::kC10d);
    EXPECT_EQ(JudgeConnection(ReadFirstWords(bytes), "", false).to, To::kNobody);
  }
}

}  // namespace
}  // namespace hlaunch
