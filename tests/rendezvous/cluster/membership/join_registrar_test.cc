// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/membership/join_registrar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/cluster/cluster_messages.h"
#include "tests/rendezvous/certificate_time.h"

namespace hlaunch {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using testing::Not;

constexpr char kAddress[] = "192.0.2.7";

const Authority& OurAuthority() {
  static const Authority authority = *MakeAuthority(kNow);
  return authority;
}

std::string Request() { return MakeHostRequest("any")->request; }

class JoinRegistrarTest : public testing::Test {
 protected:
  absl::StatusOr<std::string> Join(const std::string& host, const std::string& token,
                                   std::time_t now, bool connected = false) {
    return registrar_.Join({token, host, Request()}, kAddress, connected, now);
  }
  std::string NewToken(std::time_t now) { return TextOf(registrar_.MakeToken(now)); }
  // A host that has joined with its own token.
  CertifiedHost Joined(const std::string& host, std::time_t now) {
    const auto certificate = Join(host, NewToken(now), now);
    EXPECT_TRUE(certificate.ok()) << certificate.status();
    return *ReadHostCertificate(*certificate);
  }
  // Why a certificate is no longer valid; empty if it is.
  std::string Refusal(const CertifiedHost& shown, std::time_t now) const {
    return std::string(registrar_.Admits(shown, now).message());
  }

  JoinRegistrar registrar_{OurAuthority()};
};

TEST_F(JoinRegistrarTest, LetsAHostInByAToken) {
  const CertifiedHost host = Joined("node1", kNow);
  EXPECT_EQ(host.host, "node1");
  EXPECT_EQ(host.expires, host.issued + kCertificateLife);
  EXPECT_TRUE(registrar_.Admits(host, kNow).ok());
}

TEST_F(JoinRegistrarTest, TakesNoWrongToken) {
  JoinToken token = registrar_.MakeToken(kNow);
  const std::string right = TextOf(token);
  token.secret[0] = token.secret[0] == '0' ? '1' : '0';
  const auto wrong_secret = Join("node1", TextOf(token), kNow);
  EXPECT_EQ(wrong_secret.status().code(), StatusCode::kPermissionDenied);
  // A host without the secret gets the same error, whether the token exists or not.
  const auto no_such = Join("node1", TextOf(MakeJoinToken(token.pin)), kNow);
  EXPECT_EQ(no_such.status(), wrong_secret.status());
  EXPECT_EQ(Join("node1", "", kNow).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Join("node1", right, kNow).ok());
}

TEST_F(JoinRegistrarTest, TakesNoTokenOfAnotherCluster) {
  JoinRegistrar other(*MakeAuthority(kNow));
  const auto stolen = Join("node1", TextOf(other.MakeToken(kNow)), kNow);
  EXPECT_EQ(stolen.status().code(), StatusCode::kPermissionDenied);
}

TEST_F(JoinRegistrarTest, TakesNoExpiredToken) {
  const std::string token = NewToken(kNow);
  EXPECT_EQ(Join("node1", token, kNow + kTokenLife).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Join("node1", token, kNow + kTokenLife - 1).ok());
}

TEST_F(JoinRegistrarTest, TakesAReplayedTokenNotOnceMore) {
  const std::string token = NewToken(kNow);
  ASSERT_TRUE(Join("node1", token, kNow).ok());
  for (const char* host : {"node1", "node2"}) {
    const auto again = Join(host, token, kNow + 1);
    EXPECT_EQ(again.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(again.status().message()), HasSubstr("used already, by node1"));
  }
}

TEST_F(JoinRegistrarTest, AnswersTheSameRequestAgainIfItsAnswerWasLost) {
  const JoinQuestion question = {NewToken(kNow), "node1", Request()};
  const auto lost = registrar_.Join(question, kAddress, false, kNow);
  const auto again = registrar_.Join(question, kAddress, true, kNow + 5);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(registrar_.Admits(*ReadHostCertificate(*lost), kNow + 5).ok());
  EXPECT_TRUE(registrar_.Admits(*ReadHostCertificate(*again), kNow + 5).ok());
}

TEST_F(JoinRegistrarTest, ALostAnswerIsNoWayBack) {
  const JoinQuestion question = {NewToken(kNow), "node1", Request()};
  ASSERT_TRUE(registrar_.Join(question, kAddress, false, kNow).ok());
  ASSERT_TRUE(registrar_.ThrowOut("node1", kNow + 1).ok());
  EXPECT_EQ(registrar_.Join(question, kAddress, false, kNow + 2).status().code(),
            StatusCode::kFailedPrecondition);
  Joined("node1", kNow + 3);
  EXPECT_EQ(registrar_.Join(question, kAddress, false, kNow + 4).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(JoinRegistrarTest, ATokenIsUsedUpBySuccessOnly) {
  const std::string token = NewToken(kNow);
  EXPECT_EQ(Join("Not A Host", token, kNow).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(registrar_.Join({token, "node1", "no request"}, kAddress, false, kNow).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Join("node1", token, kNow, true).status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(Join("node1", token, kNow).ok());
}

TEST_F(JoinRegistrarTest, LooksAtNoMoreTokensOfOneWhoGuesses) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Join("node1", TextOf(MakeJoinToken("")), kNow).status().code(),
              StatusCode::kInvalidArgument);
  }
  const std::string wrong = TextOf(MakeJoinToken("0123"));
  EXPECT_EQ(Join("node1", wrong, kNow + 1).status().code(), StatusCode::kResourceExhausted);
  const auto elsewhere = registrar_.Join({wrong, "node1", Request()}, "192.0.2.8", false, kNow + 1);
  EXPECT_EQ(elsewhere.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Join("node1", wrong, kNow + 60).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(JoinRegistrarTest, TakesARightTokenWhateverElseCameFromThere) {
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Join("node1", "guess", kNow).ok());
  EXPECT_TRUE(Join("node1", NewToken(kNow), kNow).ok());
}

TEST_F(JoinRegistrarTest, ForgetsNotTheTokenThatIsBeingUsed) {
  const std::string oldest = NewToken(kNow);
  for (int i = 0; i < 255; ++i) registrar_.MakeToken(kNow + 1);
  ASSERT_TRUE(Join("node1", oldest, kNow + 1).ok());
  EXPECT_EQ(registrar_.ToJson()["tokens"].size(), 256u);
  const auto again = Join("node2", oldest, kNow + 1);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("used already, by node1"));
}

TEST_F(JoinRegistrarTest, ForgetsUsedTokensBeforeThoseThatAreGood) {
  const std::string good = NewToken(kNow);
  Joined("node1", kNow + 1);
  for (int i = 0; i < 255; ++i) registrar_.MakeToken(kNow + 1);
  EXPECT_TRUE(Join("node2", good, kNow + 1).ok());
}

// The root user of the head's own host may make tokens.
TEST_F(JoinRegistrarTest, NoHostIsTheHeadsOwnButTheOneThatInitHasCertified) {
  ASSERT_TRUE(registrar_.Certify("node0", Request(), kNow).ok());
  Joined("node1", kNow);
  nlohmann::json state = registrar_.ToJson();
  for (nlohmann::json& host : state["hosts"]) host["token"] = "";
  registrar_ = *JoinRegistrar::FromJson(OurAuthority(), state);
  EXPECT_EQ(registrar_.own_host(), "node0");
  EXPECT_TRUE(registrar_.ThrowOut("node1", kNow).ok());
}

TEST_F(JoinRegistrarTest, AHostThatWasMadeAnewEndsItsFormerCertificates) {
  const CertifiedHost former = Joined("node1", kNow);
  const CertifiedHost anew = Joined("node1", kNow);  // Within the same second.
  EXPECT_THAT(Refusal(former, kNow), HasSubstr("another host has joined by that name"));
  EXPECT_EQ(Refusal(anew, kNow), "");
  EXPECT_EQ(registrar_.Renew(former, Request(), kNow).status().code(),
            StatusCode::kPermissionDenied);
}

TEST_F(JoinRegistrarTest, RenewsACertificateThatCounts) {
  const CertifiedHost host = Joined("node1", kNow);
  const std::time_t later = kNow + kRenewAfter;
  const auto certificate = registrar_.Renew(host, Request(), later);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  const CertifiedHost renewed = *ReadHostCertificate(*certificate);
  EXPECT_EQ(renewed.expires, later + kCertificateLife);
  EXPECT_EQ(Refusal(host, later), "");
  EXPECT_EQ(Refusal(renewed, later), "");
  EXPECT_EQ(registrar_.Renew(host, "no request", later).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(JoinRegistrarTest, AdmitsNoExpiredCertificate) {
  const CertifiedHost host = Joined("node1", kNow);
  EXPECT_EQ(Refusal(host, host.expires - 1), "");
  EXPECT_THAT(Refusal(host, host.expires), HasSubstr("expired at 2027-02-14"));
  EXPECT_EQ(registrar_.Renew(host, Request(), host.expires).status().code(),
            StatusCode::kPermissionDenied);
}

TEST_F(JoinRegistrarTest, AdmitsNoHostThatWasThrownOut) {
  const CertifiedHost host = Joined("node1", kNow);
  const CertifiedHost other = Joined("node2", kNow);
  const CertifiedHost renewed = *ReadHostCertificate(*registrar_.Renew(host, Request(), kNow));
  ASSERT_TRUE(registrar_.ThrowOut("node1", kNow).ok());
  EXPECT_THAT(Refusal(host, kNow), HasSubstr("thrown out at 2027-01-15T08:00:00"));
  EXPECT_THAT(Refusal(renewed, kNow), HasSubstr("thrown out"));
  EXPECT_EQ(Refusal(other, kNow), "");
  EXPECT_EQ(registrar_.Renew(renewed, Request(), kNow).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(registrar_.ThrowOut("node1", kNow).code(), StatusCode::kNotFound);
  EXPECT_EQ(registrar_.ThrowOut("node3", kNow).code(), StatusCode::kNotFound);
  // It can come back only with a token.
  EXPECT_EQ(Refusal(Joined("node1", kNow), kNow), "");
  EXPECT_NE(Refusal(renewed, kNow), "");
}

TEST_F(JoinRegistrarTest, AdmitsNoHostThatItHasNotCertified) {
  JoinRegistrar before_its_loss(OurAuthority());
  const auto request = Request();
  const auto certificate = before_its_loss.Certify("node1", request, kNow);
  EXPECT_THAT(Refusal(*ReadHostCertificate(*certificate), kNow), HasSubstr("no host of that name"));
}

// A host with that name may make tokens.
TEST_F(JoinRegistrarTest, NobodyJoinsByTheNameOfTheHeadsOwnHost) {
  const CertifiedHost own = *ReadHostCertificate(*registrar_.Certify("node0", Request(), kNow));
  EXPECT_EQ(Join("node0", NewToken(kNow), kNow).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Refusal(own, kNow), "");
  EXPECT_EQ(registrar_.ThrowOut("node0", kNow).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(registrar_.Renew(own, Request(), own.expires + 10 * 86400).ok());
  const std::time_t later = kNow + 10 * kCertificateLife;
  EXPECT_EQ(Join("node0", NewToken(later), later).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(JoinRegistrarTest, ForgetsWhatIsLongPast) {
  Joined("node1", kNow);
  const std::string token = NewToken(kNow);
  NewToken(kNow + kCertificateLife + 2 * 86400);
  registrar_.MakeToken(kNow + kCertificateLife + 2 * 86400);
  EXPECT_EQ(registrar_.ToJson()["tokens"].size(), 2u);
  EXPECT_EQ(registrar_.ToJson()["hosts"].size(), 0u);
  for (int i = 0; i < 1000; ++i) registrar_.MakeToken(kNow + kCertificateLife + 2 * 86400);
  EXPECT_EQ(registrar_.ToJson()["tokens"].size(), 256u);
}

TEST_F(JoinRegistrarTest, KeepsWhatItKnowsAndNoSecret) {
  const std::string used = NewToken(kNow);
  const std::string left = NewToken(kNow);
  const CertifiedHost host = *ReadHostCertificate(*Join("node1", used, kNow));
  const CertifiedHost thrown = Joined("node2", kNow);
  ASSERT_TRUE(registrar_.ThrowOut("node2", kNow).ok());
  const std::string kept = registrar_.ToJson().dump();
  EXPECT_THAT(kept, Not(HasSubstr(ReadJoinToken(left)->secret)));
  EXPECT_THAT(kept, Not(HasSubstr("PRIVATE KEY")));
  auto again = JoinRegistrar::FromJson(OurAuthority(), nlohmann::json::parse(kept));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), registrar_.ToJson());
  registrar_ = *std::move(again);
  EXPECT_EQ(Refusal(host, kNow), "");
  EXPECT_NE(Refusal(thrown, kNow), "");
  EXPECT_EQ(Join("node3", used, kNow).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Join("node3", left, kNow).ok());
}

TEST_F(JoinRegistrarTest, HoldsAsManyHostsAsAClusterMayHaveAndReadsThemAgain) {
  nlohmann::json hosts = nlohmann::json::array();
  for (size_t i = 0; i < kMaxClusterHosts; ++i) {
    hosts.push_back({{"name", absl::StrCat(std::string(50, 'a'), ".node", i)},
                     {"issued", kNow},
                     {"expires", kNow + kCertificateLife},
                     {"refused", 0},
                     {"thrown_out", 0},
                     {"token", "0123456789abcdef"}});
  }
  const std::string old = hosts[0]["name"];
  registrar_ = *JoinRegistrar::FromJson(OurAuthority(),
                                        {{"tokens", nlohmann::json::array()}, {"hosts", hosts}});
  EXPECT_EQ(Join("node1", NewToken(kNow), kNow).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Join(old, NewToken(kNow), kNow).ok());
  std::string path = absl::StrCat(testing::TempDir(), "registrar.XXXXXX");
  ASSERT_NE(::mkdtemp(path.data()), nullptr);
  const TrustFolder folder = *TrustFolder::Open(path);
  ASSERT_TRUE(KeepAuthority(folder, OurAuthority()).ok());
  ASSERT_TRUE(KeepJoinRegistrar(folder, registrar_).ok());
  const auto again = ReadJoinRegistrar(folder);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), registrar_.ToJson());
  std::filesystem::remove_all(path);
}

TEST_F(JoinRegistrarTest, HostsThatAreRefusedTakeNoPlaceOfOthers) {
  const CertifiedHost thrown_out = Joined("thrown-out", kNow);
  ASSERT_TRUE(registrar_.ThrowOut("thrown-out", kNow).ok());
  nlohmann::json state = registrar_.ToJson();
  for (size_t i = 1; i < kMaxClusterHosts; ++i) {
    state["hosts"].push_back({{"name", absl::StrCat("node", i)},
                              {"issued", kNow},
                              {"expires", i == 1 ? kNow + 60 : kNow + kCertificateLife},
                              {"refused", 0},
                              {"thrown_out", 0},
                              {"token", ""}});
  }
  registrar_ = *JoinRegistrar::FromJson(OurAuthority(), state);
  EXPECT_EQ(Join("a", NewToken(kNow), kNow).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Join("a", NewToken(kNow + 1), kNow + 1).ok());  // Replaces the ousted one.
  EXPECT_EQ(Join("b", NewToken(kNow + 1), kNow + 1).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(Join("b", NewToken(kNow + 60), kNow + 60).ok());  // Replaces the expired one.
  EXPECT_NE(Refusal(thrown_out, kNow + 60), "");
  ASSERT_TRUE(registrar_.ThrowOut("b", kNow + 61).ok());
  const CertifiedHost back = Joined("thrown-out", kNow + 62);
  EXPECT_EQ(Refusal(back, kNow + 62), "");
  EXPECT_NE(Refusal(thrown_out, kNow + 62), "");
}

TEST_F(JoinRegistrarTest, RefusesAStateThatIsNone) {
  for (const char* state : {R"({"tokens": 1})", R"({"hosts": [1]})", R"({"hosts": [{"name": 1}]})",
                            R"({"hosts": [{"issued": -1}]})", R"({"tokens": [{"until": "x"}]})"}) {
    EXPECT_EQ(JoinRegistrar::FromJson(OurAuthority(), nlohmann::json::parse(state)).status().code(),
              StatusCode::kInvalidArgument)
        << state;
  }
}

TEST_F(JoinRegistrarTest, IsKeptInTheHeadsFolder) {
  std::string path = absl::StrCat(testing::TempDir(), "registrar.XXXXXX");
  ASSERT_NE(::mkdtemp(path.data()), nullptr);
  const TrustFolder folder = *TrustFolder::Open(path);
  EXPECT_TRUE(absl::IsNotFound(ReadJoinRegistrar(folder).status()));
  ASSERT_TRUE(KeepAuthority(folder, OurAuthority()).ok());
  EXPECT_EQ(ReadJoinRegistrar(folder)->ToJson(), registrar_.ToJson());
  Joined("node1", kNow);
  ASSERT_TRUE(KeepJoinRegistrar(folder, registrar_).ok());
  EXPECT_EQ(ReadJoinRegistrar(folder)->ToJson(), registrar_.ToJson());
  std::filesystem::remove_all(path);
}

TEST(ReadJoinQuestion, IsStrict) {
  const JoinQuestion question = {"token", "node1", "request"};
  const auto read = ReadJoinQuestion(ToJson(question));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->token, "token");
  EXPECT_EQ(read->host, "node1");
  EXPECT_EQ(read->request, "request");
  EXPECT_FALSE(ReadJoinQuestion({{"token", 1}}).ok());
  EXPECT_FALSE(ReadJoinQuestion({{"token", std::string(257, 'a')}}).ok());
}

}  // namespace
}  // namespace hlaunch
