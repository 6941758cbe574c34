// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/join_command.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/parse_options.h"
#include "launcher/text/shell_words.h"

namespace hlaunch {
namespace {

JoinCommand MakeJoin(std::vector<const char*> words, const std::string& token = "",
                     const std::string& token_file = "", const std::string& host = "10.77.0.10",
                     const CertificateFiles& certificates = {}, bool tls = true) {
  words.insert(words.begin(), "hlaunch");
  const absl::StatusOr<Options> options =
      ParseOptions(static_cast<int>(words.size()), words.data());
  EXPECT_TRUE(options.ok()) << options.status();
  JobSpec spec;
  spec.mode = JobMode::kListenAndPrint;
  spec.job_id = "3f2a";
  spec.token = token;
  spec.token_file = token_file;
  spec.certificates = certificates;
  spec.tls = tls;
  return MakeJoinCommand(*options, spec, {host, 29401});
}

TEST(MakeJoinCommand, RepeatsWhatWasTypedAndAddsThePlace) {
  const JoinCommand join = MakeJoin(
      {"--nnodes", "2", "--nproc_per_node=8", "--stdin", "train.py", "--name", "a b's", "--stdin"});
  EXPECT_EQ(join.command,
            "hlaunch --nnodes 2 --nproc_per_node=8 --rdzv-endpoint 10.77.0.10:29401 "
            "--rdzv-id 3f2a train.py --name 'a b'\"'\"'s' --stdin");
  EXPECT_EQ(join.hint, "");
}

TEST(MakeJoinCommand, LeavesOutWhatConcernsThisNode) {
  EXPECT_EQ(MakeJoin({"--local_addr", "10.0.0.1", "--nnodes=2", "--stdin", "--local-addr=n1",
                      "--role", "a", "x"})
                .command,
            "hlaunch --nnodes=2 --role a --rdzv-endpoint 10.77.0.10:29401 --rdzv-id 3f2a x");
}

TEST(MakeJoinCommand, QuotesIpv6) {
  EXPECT_EQ(MakeJoin({"--nnodes=2", "x"}, "", "", "fd00::1").command,
            "hlaunch --nnodes=2 --rdzv-endpoint '[fd00::1]:29401' --rdzv-id 3f2a x");
}

TEST(MakeJoinCommand, LeavesAGivenJobIdAlone) {
  EXPECT_EQ(MakeJoin({"--nnodes=2", "--rdzv-id=7", "-m", "pkg"}).command,
            "hlaunch --nnodes=2 --rdzv-id=7 -m --rdzv-endpoint 10.77.0.10:29401 pkg");
}

TEST(MakeJoinCommand, NamesTheTokenFileOnce) {
  EXPECT_EQ(MakeJoin({"--nnodes=2", "--token-file=/t", "x"}, "s3cret", "/t").command,
            "hlaunch --nnodes=2 --token-file=/t --rdzv-endpoint 10.77.0.10:29401 --rdzv-id 3f2a x");
  EXPECT_EQ(MakeJoin({"--nnodes=2", "x"}, "s3cret", "/t").command,
            "hlaunch --nnodes=2 --rdzv-endpoint 10.77.0.10:29401 --rdzv-id 3f2a --token-file /t x");
}

TEST(MakeJoinCommand, NamesTheCertificatesOfTheEnvironment) {
  EXPECT_EQ(MakeJoin({"--nnodes=2", "--tls-key=/k", "x"}, "", "", "10.77.0.10", {"/c", "/k", "/a"})
                .command,
            "hlaunch --nnodes=2 --tls-key=/k --rdzv-endpoint 10.77.0.10:29401 --rdzv-id 3f2a "
            "--tls-cert /c --tls-ca /a x");
}

TEST(MakeJoinCommand, NamesTlsOffOnce) {
  const std::string place = "--rdzv-endpoint 10.77.0.10:29401 --rdzv-id 3f2a ";
  EXPECT_EQ(MakeJoin({"--nnodes=2", "x"}, "", "", "10.77.0.10", {}, false).command,
            absl::StrCat("hlaunch --nnodes=2 ", place, "--tls off x"));
  EXPECT_EQ(MakeJoin({"--nnodes=2", "--tls=off", "x"}, "", "", "10.77.0.10", {}, false).command,
            absl::StrCat("hlaunch --nnodes=2 --tls=off ", place, "x"));
}

TEST(MakeJoinCommand, NeverShowsTheToken) {
  const JoinCommand join = MakeJoin({"--nnodes=2", "x"}, "s3cret");
  EXPECT_EQ(join.hint, "the token of this host must be there too: in HLAUNCH_TOKEN, or in a file");
  EXPECT_EQ(join.command.find("s3cret"), std::string::npos);
}

TEST(ShellQuote, LeavesPlainWordsReadable) {
  EXPECT_EQ(ShellQuote("a/b-c_d.py=1:2,3+4%@"), "a/b-c_d.py=1:2,3+4%@");
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("$x"), "'$x'");
  EXPECT_EQ(ShellQuote("a'b"), "'a'\"'\"'b'");
  EXPECT_EQ(ShellQuote("~"), "'~'");
}

}  // namespace
}  // namespace hlaunch
