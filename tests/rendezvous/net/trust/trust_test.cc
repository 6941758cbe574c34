// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/token_text.h"
#include "tests/rendezvous/net/trust/verify.h"
#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

TEST(Trust, IsNoneWithoutAToken) {
  EXPECT_TRUE(Trust().none());
  EXPECT_TRUE(Trust::OfToken("")->none());
  EXPECT_EQ(Trust::OfToken("short").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Trust, InClearIsOfTheSameTokens) {
  EXPECT_TRUE(Trust::OfTokenInClear("")->none());
  EXPECT_FALSE(Trust().in_clear());
  EXPECT_EQ(Trust::OfTokenInClear("short").status().code(), absl::StatusCode::kInvalidArgument);
  const Trust tls = Trust::OfToken(kToken).value(), clear = Trust::OfTokenInClear(kToken).value();
  EXPECT_FALSE(tls.in_clear());
  EXPECT_TRUE(clear.in_clear());
  EXPECT_EQ(clear.server_name(), tls.server_name());
  EXPECT_EQ(clear.fingerprint(), tls.fingerprint());
  EXPECT_EQ(clear.key(), "");
  EXPECT_TRUE(clear.files().none());
}

TEST(Trust, IsOfWhatIsThere) {
  EXPECT_TRUE(Trust::Of("", {}, false)->none());
  EXPECT_TRUE(Trust::Of(kToken, {}, false)->in_clear());
  EXPECT_FALSE(Trust::Of(kToken, {}, true)->in_clear());
  EXPECT_EQ(Trust::Of("", {"/c", "/k", "/a"}, false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Trust, GreetingKeysAreOfOneTokenAndOneJob) {
  const Trust clear = Trust::OfTokenInClear(kToken).value();
  const Trust other = Trust::OfTokenInClear(kOtherToken).value();
  EXPECT_EQ(clear.GreetingKeyFor("a"), Trust::OfTokenInClear(kToken)->GreetingKeyFor("a"));
  const std::set<std::string> keys = {clear.GreetingKeyFor(""), clear.GreetingKeyFor("a"),
                                      clear.GreetingKeyFor("b"), other.GreetingKeyFor(""),
                                      other.GreetingKeyFor("a")};
  EXPECT_EQ(keys.size(), 5u);
  for (const std::string& key : keys) EXPECT_EQ(key.size(), 32u);
}

TEST(Trust, HoldersOfOneTokenVerifyEachOtherAsServerAndClient) {
  const Trust a = Trust::OfToken(kToken).value(), b = Trust::OfToken(kToken).value();
  EXPECT_NE(a.certificate(), b.certificate());
  EXPECT_NE(a.key(), b.key());
  for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
    EXPECT_EQ(Verify(a, b, purpose), X509_V_OK);
    EXPECT_EQ(Verify(b, a, purpose), X509_V_OK);
  }
  EXPECT_EQ(X509_check_host(CertificateIn(b.certificate()).get(), a.server_name().data(),
                            a.server_name().size(), 0, nullptr),
            1);
}

TEST(Trust, HoldersOfAnotherTokenAreRefused) {
  const Trust a = Trust::OfToken(kToken).value(), b = Trust::OfToken(kOtherToken).value();
  EXPECT_NE(Verify(a, b, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_NE(Verify(b, a, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_NE(a.server_name(), b.server_name());
  EXPECT_NE(a.fingerprint(), b.fingerprint());
}

// The uncompressed point of a certificate's key, in hex.
std::string PointOf(const std::string& pem) {
  const auto certificate = CertificateIn(pem);
  const ASN1_BIT_STRING* const point = X509_get0_pubkey_bitstr(certificate.get());
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(point->data), static_cast<size_t>(point->length)});
}

// Versions of hlaunch with another derivation could not talk to each other. The expected values
// come from another program, written for this test from RFC 5869 and FIPS 186-5.
TEST(Trust, DerivesTheSameFromATokenForEver) {
  const Trust trust = Trust::OfToken(kToken).value();
  EXPECT_EQ(trust.server_name(), "08ac9195201088b3e3afef325b481968.hlaunch");
  EXPECT_EQ(trust.fingerprint(), "732a8660");
  EXPECT_EQ(PointOf(trust.authority()),
            "04c73259b217c13d33d8bbbf828f48cde7ca8b9abe269267d08e31313c9a1f80d0"
            "b18c80c1d978303e5950d97e8c9b591b19ebacb71987346a0b3794d4aa63d6d8");
}

TEST(CheckTokenText, DemandsWhatNobodyGuesses) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(CheckTokenText(NewTokenText()).ok());
  EXPECT_NE(NewTokenText(), NewTokenText());
  EXPECT_TRUE(CheckTokenText(kToken).ok());
  EXPECT_TRUE(CheckTokenText("1f7a0c7e-94f1-4d53-8b27-5a6f2f3c7d11").ok());
  for (const std::string& weak :
       {std::string("secret"), std::string("correct-horse-battery"), std::string(64, 'a'),
        std::string("20261122-1207"), std::string("0123456789abcdef"), std::string("with blank"),
        std::string("two\nlines"), std::string("caf\xc3\xa9"), std::string(1025, 'x'),
        std::string()}) {
    const absl::Status refused = CheckTokenText(weak);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << weak;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("hlaunch token"));
    EXPECT_TRUE(weak.empty() || !absl::StrContains(refused.message(), weak));
  }
}

}  // namespace
}  // namespace hlaunch
