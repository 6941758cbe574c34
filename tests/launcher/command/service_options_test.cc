// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/service_options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

absl::StatusOr<ServiceOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "hlaunch-rendezvous");
  return ParseServiceOptions(static_cast<int>(words.size()), words.data());
}

std::string ErrorOf(const std::vector<const char*>& words) {
  const auto options = Parse(words);
  return options.ok() ? "none" : std::string(options.status().message());
}

TEST(ParseServiceOptions, TakesFilesOfCertificates) {
  const auto options = Parse({"--tls-cert", "/c", "--tls-key", "/k", "--tls-ca", "/a"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->certificates.certificate, "/c");
  EXPECT_EQ(options->certificates.key, "/k");
  EXPECT_EQ(options->certificates.authority, "/a");
}

TEST(ParseServiceOptions, TakesTheWordOnTls) {
  EXPECT_EQ(Parse({})->tls, "");
  EXPECT_EQ(Parse({"--tls", "off"})->tls, "off");
}

TEST(ParseServiceOptions, ListensOnAllAddressesAndKeepsNothingByDefault) {
  const auto options = Parse({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->listen.host, "");
  EXPECT_EQ(options->listen.port, 29400);
  EXPECT_EQ(options->state_directory, "");
  EXPECT_EQ(options->max_jobs, 1000);
  EXPECT_EQ(options->log_level, LogLevel::kInfo);
}

TEST(ParseServiceOptions, ReadsWhereToListen) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& c :
       {Case{"4711", "", 4711}, Case{":4711", "", 4711}, Case{"[::]:4711", "", 4711},
        Case{"0", "", 0}, Case{"10.0.0.1", "10.0.0.1", 29400},
        Case{"10.0.0.1:4711", "10.0.0.1", 4711}, Case{"[::1]:4711", "::1", 4711},
        Case{"node0:4711", "node0", 4711}}) {
    const auto options = Parse({"--listen", c.text});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->listen.host, c.host) << c.text;
    EXPECT_EQ(options->listen.port, c.port) << c.text;
  }
  EXPECT_THAT(ErrorOf({"--listen", "99999"}), HasSubstr("--listen '99999': a port is a number"));
  EXPECT_THAT(ErrorOf({"--listen", "::1"}), HasSubstr("IPv6 address needs brackets"));
  EXPECT_THAT(ErrorOf({"--listen="}), HasSubstr("--listen= has no value"));
}

TEST(ParseServiceOptions, ReadsWhereToKeepJobs) {
  EXPECT_EQ(Parse({"--state", "file:///var/lib/x"})->state_directory, "/var/lib/x");
  EXPECT_EQ(Parse({"--state", "x/y"})->state_directory, "x/y");
  EXPECT_THAT(ErrorOf({"--state", "etcd://a:2379"}), HasSubstr("etcd is not supported yet"));
  EXPECT_THAT(ErrorOf({"--state", "s3://a"}), HasSubstr("expected file://DIR"));
  EXPECT_THAT(ErrorOf({"--state", "file://"}), HasSubstr("expected file://DIR"));
}

TEST(ParseServiceOptions, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf({"--max-jobs", "0"}), HasSubstr("--max-jobs '0': expected a number from 1"));
  EXPECT_THAT(ErrorOf({"--max_jobs", "x"}), HasSubstr("--max-jobs 'x'"));
  EXPECT_THAT(ErrorOf({"--max-jobs"}), HasSubstr("--max-jobs needs a value"));
  EXPECT_THAT(ErrorOf({"--liste", "1"}),
              HasSubstr("unknown option --liste; did you mean --listen"));
  EXPECT_THAT(ErrorOf({"-v", "-q"}), HasSubstr("--verbose and --quiet"));
  EXPECT_THAT(ErrorOf({"train.py"}), HasSubstr("what is train.py?"));
}

TEST(ParseServiceOptions, HelpAndVersionAreText) {
  EXPECT_THAT(*Parse({"--help", "--max-jobs", "0"})->text_to_print,
              HasSubstr("--state file://DIR"));
  EXPECT_THAT(*Parse({"--version"})->text_to_print, HasSubstr("hlaunch-rendezvous "));
}

}  // namespace
}  // namespace hlaunch
