// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/certificate_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "rendezvous/net/trust/trust.h"
#include "tests/rendezvous/certificate_time.h"
#include "tests/rendezvous/site_certificates.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Why these files cannot be used; empty if they can.
std::string Trouble(const CertificateFiles& files) {
  const auto read = ReadCertificates(files, kNow);
  if (read.ok()) return "";
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

TEST(ReadCertificates, ReadsWhatFitsTogether) {
  const auto read = ReadCertificates(SiteAuthority().Write("fits"), kNow);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->certificate, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_THAT(read->key, HasSubstr("BEGIN PRIVATE KEY"));
  EXPECT_THAT(read->authority, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_EQ(read->warning, "");
}

TEST(ReadCertificates, NamesTheFileThatCannotBeRead) {
  const CertificateFiles good = SiteAuthority().Write("readable");
  const std::pair<const char*, std::string CertificateFiles::*> parts[] = {
      {"--tls-cert", &CertificateFiles::certificate},
      {"--tls-key", &CertificateFiles::key},
      {"--tls-ca", &CertificateFiles::authority}};
  const std::string text = absl::StrCat(testing::TempDir(), "text.", ::getpid());
  WriteFile(text, "a-line-of-ours\n");
  for (const auto& [option, part] : parts) {
    CertificateFiles files = good;
    files.*part = "";
    EXPECT_THAT(Trouble(files), AllOf(HasSubstr(absl::StrCat(option, " is missing"))));
    files.*part = "/no/such/file";
    EXPECT_THAT(Trouble(files), AllOf(HasSubstr(absl::StrCat(option, " /no/such/file")),
                                      HasSubstr("No such file")));
    files.*part = "/dev/null";
    EXPECT_THAT(Trouble(files), HasSubstr("is no file"));
    files.*part = text;
    EXPECT_THAT(Trouble(files), AllOf(HasSubstr(absl::StrCat(option, " ", text)),
                                      HasSubstr("in PEM"), Not(HasSubstr("a-line-of-ours"))));
  }
}

TEST(ReadCertificates, RefusesAKeyOfAnotherCertificate) {
  const SiteAuthority site;
  CertificateFiles files = site.Write("one");
  files.key = site.Write("two").key;
  EXPECT_THAT(Trouble(files),
              AllOf(HasSubstr("--tls-key " + files.key),
                    HasSubstr("not the key of the certificate in " + files.certificate)));
}

TEST(ReadCertificates, RefusesACertificateOutsideOfItsDates) {
  CertificateText text = {"a host", "critical,digitalSignature", "localhost"};
  text.not_after = "20260101000000Z";
  const CertificateFiles expired = SiteAuthority().Write("expired", text);
  EXPECT_THAT(Trouble(expired),
              AllOf(HasSubstr("--tls-cert " + expired.certificate),
                    HasSubstr("expired on 2026-01-01 00:00:00 UTC; put a new one there")));
  text = {"a host", "critical,digitalSignature", "localhost"};
  text.not_before = "20280101000000Z";
  EXPECT_THAT(Trouble(SiteAuthority().Write("early", text)),
              AllOf(HasSubstr("not valid before 2028-01-01"), HasSubstr("clock")));
}

TEST(ReadCertificates, WarnsOfAKeyThatOthersCanRead) {
  const CertificateFiles files = SiteAuthority().Write("open");
  ASSERT_EQ(::chmod(files.key.c_str(), 0644), 0);
  const auto read = ReadCertificates(files, kNow);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->warning, AllOf(HasSubstr(files.key), HasSubstr("chmod 600")));
}

TEST(MarkOf, IsAnotherOneOnceAFileIsReplacedOrGone) {
  const SiteAuthority site;
  const CertificateFiles files = site.Write("marked");
  const std::string before = MarkOf(files);
  EXPECT_EQ(MarkOf(files), before);
  site.Write("marked");
  EXPECT_NE(MarkOf(files), before);
  ASSERT_EQ(std::remove(files.authority.c_str()), 0);
  EXPECT_NE(MarkOf(files), before);
}

TEST(Trust, OfFilesFollowsThemAndKeepsTheLastThatWereGood) {
  const CertificateFiles files = SiteAuthority().Write("renewed");
  const Trust first = Trust::OfFiles(files).value();
  EXPECT_FALSE(first.none());
  EXPECT_EQ(first.server_name(), "");
  EXPECT_EQ(first.Renewed().certificate(), first.certificate());
  SiteAuthority().Write("renewed");
  const Trust second = first.Renewed();
  EXPECT_NE(second.certificate(), first.certificate());
  EXPECT_NE(second.authority(), first.authority());
  testing::internal::CaptureStderr();
  WriteFile(files.key, "half of a");
  const Trust third = second.Renewed();
  EXPECT_EQ(third.certificate(), second.certificate());
  EXPECT_EQ(third.Renewed().key(), second.key());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, AllOf(HasSubstr(files.key), HasSubstr("going on with what was there before")));
  EXPECT_EQ(said.find("going on"), said.rfind("going on")) << "said more than once";
}

}  // namespace
}  // namespace hlaunch
