// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/service_options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

absl::StatusOr<ServiceOptions> ParseService(std::vector<const char*> words) {
  words.insert(words.begin(), "hlaunch-rendezvous");
  return ParseServiceOptions(static_cast<int>(words.size()), words.data());
}

std::string ErrorOf(const std::vector<const char*>& words) {
  const auto options = ParseService(words);
  return options.ok() ? "none" : std::string(options.status().message());
}

TEST(ParseServiceOptions, TakesFilesOfCertificates) {
  const auto options = ParseService({"--tls-cert", "/c", "--tls-key", "/k", "--tls-ca", "/a"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->certificates.certificate, "/c");
  EXPECT_EQ(options->certificates.key, "/k");
  EXPECT_EQ(options->certificates.authority, "/a");
}

TEST(ParseServiceOptions, TakesTheWordOnTls) {
  EXPECT_EQ(ParseService({})->tls, "");
  EXPECT_EQ(ParseService({"--tls", "off"})->tls, "off");
}

TEST(ParseServiceOptions, ListensOnAllAddressesAndKeepsNothingByDefault) {
  const auto options = ParseService({});
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
    const auto options = ParseService({"--listen", c.text});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->listen.host, c.host) << c.text;
    EXPECT_EQ(options->listen.port, c.port) << c.text;
  }
  EXPECT_THAT(ErrorOf({"--listen", "99999"}), HasSubstr("--listen '99999': a port is a number"));
  EXPECT_THAT(ErrorOf({"--listen", "::1"}), HasSubstr("IPv6 address needs brackets"));
  EXPECT_THAT(ErrorOf({"--listen="}), HasSubstr("--listen= has no value"));
}

TEST(ParseServiceOptions, ReadsWhereToKeepJobs) {
  EXPECT_EQ(ParseService({"--state", "file:///var/lib/x"})->state_directory, "/var/lib/x");
  EXPECT_EQ(ParseService({"--state", "x/y"})->state_directory, "x/y");
  EXPECT_THAT(ErrorOf({"--state", "s3://a"}), HasSubstr("expected file://DIR"));
  EXPECT_THAT(ErrorOf({"--state", "file://"}), HasSubstr("expected file://DIR"));
}

TEST(ParseServiceOptions, ReadsWhichEtcdKeepsJobs) {
  const auto options = ParseService({"--state", "etcd://a,b:1,[::1]:2/site/one/"});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_TRUE(options->etcd.has_value());
  EXPECT_TRUE(options->keeps());
  const EtcdState& etcd = *options->etcd;
  ASSERT_EQ(etcd.members.size(), 3u);
  EXPECT_EQ(etcd.members[0].host + etcd.members[1].host + etcd.members[2].host, "ab::1");
  EXPECT_EQ(etcd.members[0].port, 2379);
  EXPECT_EQ(etcd.members[1].port, 1);
  EXPECT_EQ(etcd.members[2].port, 2);
  EXPECT_EQ(etcd.prefix, "/site/one");
  EXPECT_EQ(ParseService({"--state", "etcd://a"})->etcd->prefix, "/hlaunch");
  EXPECT_EQ(ParseService({"--state", "etcd://a/"})->etcd->prefix, "/hlaunch");
  EXPECT_THAT(ErrorOf({"--state", "etcd://"}), HasSubstr("--state 'etcd://': the host is missing"));
  EXPECT_THAT(ErrorOf({"--state", "etcd://a,"}), HasSubstr("the host is missing"));
  EXPECT_THAT(ErrorOf({"--state", "etcd://a:x"}), HasSubstr("a port is a number"));
}

TEST(ParseServiceOptions, ReadsWhatEtcdAsksFor) {
  const auto options = ParseService({"--state", "etcd://a", "--state-ca", "/a", "--state-cert",
                                     "/c", "--state-key", "/k", "--state-user-file", "/u"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->etcd->tls.authority, "/a");
  EXPECT_EQ(options->etcd->tls.certificate, "/c");
  EXPECT_EQ(options->etcd->tls.key, "/k");
  EXPECT_EQ(options->etcd->user_file, "/u");
  EXPECT_THAT(ErrorOf({"--state", "etcd://a", "--state-cert", "/c"}),
              HasSubstr("--state-cert and --state-key go together"));
  EXPECT_THAT(ErrorOf({"--state", "etcd://a", "--state-cert", "/c", "--state-key", "/k"}),
              HasSubstr("--state-cert needs --state-ca"));
  EXPECT_THAT(ErrorOf({"--state", "/d", "--state-ca", "/a"}),
              HasSubstr("--state-ca is for --state etcd:// or k8s:// alone"));
  EXPECT_THAT(ErrorOf({"--state-user-file", "/a"}),
              HasSubstr("--state-user-file is for --state etcd:// alone"));
}

TEST(ParseServiceOptions, ReadsWhichNamespaceKeepsJobs) {
  const auto own = ParseService({"--state", "k8s://"});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_TRUE(own->keeps());
  EXPECT_EQ(own->kubernetes->name_space, "");
  EXPECT_EQ(own->kubernetes->name, "hlaunch");
  EXPECT_FALSE(own->kubernetes->api.has_value());
  const auto named =
      ParseService({"--state", "k8s://train/site-1", "--state-api", "https://[::1]:6443/",
                    "--state-ca", "/ca", "--state-token-file", "/t"});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->kubernetes->name_space, "train");
  EXPECT_EQ(named->kubernetes->name, "site-1");
  EXPECT_EQ(named->kubernetes->api->host, "::1");
  EXPECT_EQ(named->kubernetes->api->port, 6443);
  EXPECT_TRUE(named->kubernetes->tls);
  EXPECT_EQ(named->kubernetes->authority_file, "/ca");
  EXPECT_EQ(named->kubernetes->token_file, "/t");
  EXPECT_FALSE(ParseService({"--state", "k8s://a", "--state-api", "http://localhost:8001"})
                   ->kubernetes->tls);
  EXPECT_THAT(ErrorOf({"--state", "k8s://Train"}), HasSubstr("expected k8s://[NAMESPACE][/NAME]"));
  EXPECT_THAT(ErrorOf({"--state", "k8s://a/b/c"}), HasSubstr("small letters, digits and hyphens"));
  EXPECT_THAT(
      ErrorOf({"--state", "k8s://a", "--state-api", "http://head:8001"}),
      HasSubstr("--state-api 'http://head:8001': http:// is for a proxy on this host alone"));
  EXPECT_THAT(ErrorOf({"--state", "k8s://a", "--state-api", "https://head"}),
              HasSubstr("needs --state-ca"));
  EXPECT_THAT(ErrorOf({"--state", "k8s://a", "--state-cert", "/c"}),
              HasSubstr("--state-cert is for --state etcd:// alone"));
  EXPECT_THAT(ErrorOf({"--state", "etcd://a", "--state-api", "http://localhost"}),
              HasSubstr("--state-api is for --state k8s:// alone"));
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
  EXPECT_THAT(*ParseService({"--help", "--max-jobs", "0"})->text_to_print,
              HasSubstr("--state file://DIR"));
  EXPECT_THAT(*ParseService({"--version"})->text_to_print, HasSubstr("hlaunch-rendezvous "));
}

}  // namespace
}  // namespace hlaunch
