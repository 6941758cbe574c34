// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/job_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <string>

#include "absl/strings/match.h"
#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/token_text.h"
#include "rendezvous/net/trust/trust.h"
#include "tests/rendezvous/net/trust/verify.h"
#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::Optional;

TEST(JobToken, KnowsTheServiceAndIsKnownByIt) {
  const Trust service = Trust::OfToken(kToken).value();
  const Trust job = Trust::OfToken(MakeJobToken(kToken, "ann/7 é,x").value()).value();
  EXPECT_THAT(job.job(), Optional(std::string("ann/7 é,x")));
  EXPECT_FALSE(service.job().has_value());
  EXPECT_EQ(job.server_name(), service.server_name());
  EXPECT_EQ(job.fingerprint(), service.fingerprint());
  EXPECT_EQ(Verify(service, job, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(Verify(job, service, X509_PURPOSE_SSL_SERVER), X509_V_OK);
}

TEST(JobToken, CannotServeNorSignNorSpeakToOtherServices) {
  const Trust service = Trust::OfToken(kToken).value();
  const Trust other = Trust::OfToken(kOtherToken).value();
  const std::string text = MakeJobToken(kToken, "a").value();
  const Trust job = Trust::OfToken(text).value();
  EXPECT_NE(Verify(service, job, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_NE(Verify(other, job, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(X509_check_ca(CertificateIn(job.certificate()).get()), 0);
  const auto next = MakeJobToken(text, "b");
  EXPECT_EQ(next.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(next.status().message()), HasSubstr("for one job itself"));
}

TEST(JobToken, IsATokenAsAnyOther) {
  for (const size_t size : {size_t{1}, size_t{256}}) {
    const std::string text = MakeJobToken(kToken, std::string(size, ' ')).value();
    EXPECT_TRUE(CheckTokenText(text).ok()) << text.size();
    EXPECT_FALSE(absl::StrContains(text, kToken));
  }
  EXPECT_FALSE(MakeJobToken(kToken, "").ok());
  EXPECT_FALSE(MakeJobToken(kToken, std::string(257, 'a')).ok());
}

TEST(JobToken, IsRefusedUnlessItIsWhole) {
  const std::string text = MakeJobToken(kToken, "a").value();
  for (size_t size = 14; size < text.size(); size += 7) {
    const auto trust = Trust::OfToken(text.substr(0, size));
    EXPECT_EQ(trust.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  for (size_t at = 14; at < text.size(); at += 5) {  // Changes a character in each part.
    std::string broken = text;
    // '_' differs from 'A' in each bit: one alone may stand for nothing, as in the last character.
    broken[at] = broken[at] == 'A' ? '_' : 'A';
    const auto trust = Trust::OfToken(broken);
    // The service's name and fingerprint are not signed; no service would answer to such a name.
    if (trust.ok()) {
      EXPECT_LT(at, 14 + 28u);
    }
    EXPECT_FALSE(absl::StrContains(trust.status().message(), broken.substr(14)));
  }
}

TEST(JobToken, GreetsWithWhatTheServiceKnowsOfItsJob) {
  const Trust service = Trust::OfTokenInClear(kToken).value();
  const std::string text = MakeJobToken(kToken, "a").value();
  const std::string again = MakeJobToken(kToken, "a").value();
  EXPECT_NE(text, again);
  for (const std::string& each : {text, again}) {
    const Trust job = Trust::OfTokenInClear(each).value();
    EXPECT_TRUE(job.in_clear());
    EXPECT_THAT(job.job(), Optional(std::string("a")));
    EXPECT_EQ(job.server_name(), service.server_name());
    EXPECT_EQ(job.GreetingKeyFor("a"), service.GreetingKeyFor("a"));
    for (const char* other : {"", "b"}) EXPECT_EQ(job.GreetingKeyFor(other), "");
  }
}

TEST(JobOfUri, IsTheOneThatItWasMadeOf) {
  for (const std::string& job :
       {std::string("a"), std::string("A.b-c_9"), std::string("a,b c%\xff"),
        std::string("URI:x,DNS:y"), std::string("a\0b", 3)}) {
    EXPECT_THAT(JobOfUri(UriOfJob(job)), Optional(job));
  }
  for (const char* other :
       {"", "spiffe://a", "hlaunch-job", "hlaunch-job:a%", "hlaunch-job:a%4", "hlaunch-job:%zz"}) {
    EXPECT_FALSE(JobOfUri(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace hlaunch
