// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const CertificateFiles kFiles = {"/c", "/k", "/a"};

// Finds the credentials where every token file holds `kToken`.
absl::StatusOr<Credentials> Find(const std::string& token_file, const CertificateFiles& files,
                                 std::vector<std::string> variables = {},
                                 const std::string& tls = "") {
  return FindCredentials({token_file, files, tls}, Environment(std::move(variables)),
                         [](const std::string&) {
                           return TokenFile{kToken, false};
                         });
}

std::string ErrorOf(const absl::StatusOr<Credentials>& found) {
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(found.status().message());
}

TEST(FindCredentials, TakesATokenWhereNoCertificatesAreNamed) {
  const auto found = Find("/t", {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->token.secret, kToken);
  EXPECT_TRUE(found->certificates.none());
}

TEST(FindCredentials, TakesCertificatesFromOptionsAndElseFromTheEnvironment) {
  const auto found = Find("", {"", "/own", ""},
                          {"HLAUNCH_TLS_CERT=/c", "HLAUNCH_TLS_KEY=/k", "HLAUNCH_TLS_CA=/a"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->certificates.certificate, "/c");
  EXPECT_EQ(found->certificates.key, "/own");
  EXPECT_EQ(found->certificates.authority, "/a");
}

TEST(FindCredentials, NamesTheFileThatIsMissing) {
  const std::string together = "--tls-cert, --tls-key and --tls-ca are given together";
  EXPECT_THAT(ErrorOf(Find("", {"", "/k", "/a"})),
              AllOf(HasSubstr("--tls-cert (HLAUNCH_TLS_CERT) is missing"), HasSubstr(together)));
  EXPECT_THAT(ErrorOf(Find("", {"/c", "", "/a"})), HasSubstr("--tls-key (HLAUNCH_TLS_KEY)"));
  EXPECT_THAT(ErrorOf(Find("", {"/c", "/k", ""})), HasSubstr("--tls-ca (HLAUNCH_TLS_CA)"));
}

TEST(FindCredentials, RefusesANamedTokenBesideCertificates) {
  EXPECT_THAT(ErrorOf(Find("/t", kFiles)), HasSubstr("--token-file names one"));
  EXPECT_THAT(ErrorOf(Find("", kFiles, {"HLAUNCH_TOKEN_FILE=/t"})),
              HasSubstr("HLAUNCH_TOKEN_FILE names one"));
  const std::string said = ErrorOf(Find("", kFiles, {std::string("HLAUNCH_TOKEN=") + kToken}));
  EXPECT_THAT(said, HasSubstr("HLAUNCH_TOKEN names one"));
  EXPECT_EQ(said.find(kToken), std::string::npos);
}

TEST(FindCredentials, LeavesTheUsersOwnTokenAloneWhereThereAreCertificates) {
  for (const char* option : {"", "none"}) {
    const auto found = Find(option, kFiles, {"HOME=/home/ann"});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->token.secret, "");
  }
  EXPECT_TRUE(Find("none", kFiles, {std::string("HLAUNCH_TOKEN=") + kToken}).ok());
}

TEST(FindCredentials, TlsIsOnUnlessSomebodySaysOtherwise) {
  EXPECT_TRUE(Find("/t", {})->tls);
  EXPECT_TRUE(Find("/t", {}, {"HLAUNCH_TLS="})->tls);
  EXPECT_FALSE(Find("/t", {}, {"HLAUNCH_TLS=off"})->tls);
  EXPECT_FALSE(Find("/t", {}, {}, "off")->tls);
  EXPECT_TRUE(Find("/t", {}, {"HLAUNCH_TLS=off"}, "on")->tls);
  EXPECT_THAT(Find("/t", {}, {}, "off")->token.warnings, IsEmpty());
  EXPECT_EQ(ErrorOf(Find("/t", {}, {}, "no")), "--tls 'no': expected on or off");
  EXPECT_EQ(ErrorOf(Find("/t", {}, {"HLAUNCH_TLS=0"})), "HLAUNCH_TLS '0': expected on or off");
}

TEST(FindCredentials, RefusesCertificatesWithoutTls) {
  for (const auto& found : {Find("", kFiles, {}, "off"), Find("", kFiles, {"HLAUNCH_TLS=off"})}) {
    EXPECT_THAT(ErrorOf(found),
                AllOf(HasSubstr("--tls off (HLAUNCH_TLS)"), HasSubstr("(--tls-cert /c)")));
  }
}

TEST(FindCredentials, SaysThatTlsOffChangesNothingWithoutAToken) {
  EXPECT_THAT(Find("none", {}, {}, "off")->token.warnings,
              ElementsAre(HasSubstr("--tls off changes nothing here")));
  EXPECT_THAT(Find("none", {}, {"HLAUNCH_TLS=off"})->token.warnings, IsEmpty());
}

TEST(EnvironmentOf, IsReadBackAsTheSame) {
  EXPECT_THAT(EnvironmentOf(kFiles, true), ElementsAre("HLAUNCH_TLS=on", "HLAUNCH_TLS_CERT=/c",
                                                       "HLAUNCH_TLS_KEY=/k", "HLAUNCH_TLS_CA=/a"));
  EXPECT_EQ(CertificateFilesIn(Environment(EnvironmentOf(kFiles, true))).key, "/k");
  for (const bool tls : {false, true}) {
    EXPECT_EQ(TlsIn(Environment(EnvironmentOf({}, tls))), tls);
  }
  EXPECT_TRUE(TlsIn(Environment(std::vector<std::string>())));
}

}  // namespace
}  // namespace hlaunch
