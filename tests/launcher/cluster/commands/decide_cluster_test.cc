// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/decide_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/cli/options/parse_options.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

Options Parse(std::vector<const char*> words, const char* program = "hlaunch") {
  words.insert(words.begin(), program);
  words.push_back("train.py");
  auto options = ParseOptions(static_cast<int>(words.size()), words.data(), Environment());
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options();
}

// The first decision: "here", "if", "must", or the reason of a refusal.
std::string First(const Options& options, const ClusterFacts& facts = {}) {
  const auto first = DecideByWords(options, facts);
  if (!first.ok()) return std::string(first.status().message());
  if (first->goes == JobGoes::kHere) return "here: " + first->why;
  return first->goes == JobGoes::kToCluster ? "must: " + first->why : "if: " + first->why;
}

TEST(DecideByWords, SendsSeveralNodesWhoseHostsNobodySays) {
  EXPECT_EQ(First(Parse({"--nnodes", "2"})), "if: nobody says where its nodes are");
  EXPECT_EQ(First(Parse({"--nnodes", "1:4", "--spares", "1"})),
            "if: nobody says where its nodes are");
  EXPECT_EQ(First(Parse({})), "here: it has one node");
  EXPECT_EQ(First(Parse({"--nproc-per-node", "8"})), "here: it has one node");
}

TEST(DecideByWords, LeavesHereWhatSaysWhereItsNodesAre) {
  struct Row {
    std::vector<const char*> words;
    const char* why;
  };
  const Row rows[] = {
      {{"--hosts", "a,b"}, "--hosts"},
      {{"--hostfile", "f"}, "--hosts"},
      {{"--nnodes", "2", "--rdzv-endpoint", "a"}, "--rdzv-endpoint"},
      {{"--nnodes", "2", "--master-addr", "a"}, "--master-addr"},
      {{"--nnodes", "2", "--master-addr", "a", "--node-rank", "1"}, "--master-addr"},
      {{"--nnodes", "2", "--cluster", "none"}, "--cluster none"},
      {{"--nnodes", "2", "--dry-run"}, "nothing is to be started"},
      {{"--nnodes", "2", "--local-addr", "10.0.0.1"}, "--local-addr"},
      {{"--nnodes", "2", "--tls-cert", "f"}, "--tls-cert"},
      {{"--standalone"}, "it has one node"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(First(Parse(row.words)), HasSubstr(row.why));
    EXPECT_THAT(First(Parse(row.words)), ::testing::StartsWith("here: "));
  }
  EXPECT_THAT(First(Parse({"--nnodes", "2"}, "torchrun")), HasSubstr("here: torchrun"));
}

TEST(DecideByWords, LeavesHereWhatIsPartOfAJob) {
  const Options options = Parse({"--nnodes", "2"});
  EXPECT_THAT(First(options, {true, false, ""}), HasSubstr("here: this is a worker"));
  EXPECT_THAT(First(options, {false, true, ""}), HasSubstr("here: this is a part"));
  EXPECT_THAT(First(options, {false, false, "slurm"}),
              HasSubstr("here: this is in a job of slurm"));
}

TEST(DecideByWords, DemandsItForOneNodeToo) {
  EXPECT_EQ(First(Parse({"--cluster", "hlaunchd"})), "must: --cluster hlaunchd");
  EXPECT_EQ(First(Parse({"--nodes", "a,b"})), "must: --nodes");
  EXPECT_EQ(First(Parse({"--nnodes", "2", "--constraint", "ib"})), "must: --constraint");
  EXPECT_EQ(First(Parse({"--exclusive"})), "must: --exclusive");
}

TEST(DecideByWords, RefusesADemandThatSomethingElseContradicts) {
  EXPECT_THAT(First(Parse({"--nodes", "a", "--hosts", "b"})),
              HasSubstr("--nodes is for a job that goes to the cluster"));
  EXPECT_THAT(First(Parse({"--cluster", "hlaunchd", "--hosts", "b"})),
              HasSubstr("--cluster hlaunchd is for a job that goes to the cluster"));
  EXPECT_THAT(First(Parse({"--exclusive", "--cluster", "none"})),
              HasSubstr("does not: --cluster none; leave one of them out"));
  EXPECT_THAT(First(Parse({"--cluster", "hlaunchd", "--dry-run"})),
              HasSubstr("nothing is to be started"));
  EXPECT_THAT(First(Parse({"--constraint", "ib"}), {false, false, "slurm"}),
              HasSubstr("a job of slurm"));
}

HereAnswer Here(const std::string& head, bool connected, const std::string& trouble = "") {
  HereAnswer here;
  here.head = head;
  here.connected = connected;
  here.trouble = trouble;
  return here;
}

// The second decision: "goes", "here", or the reason of a refusal.
std::string Second(JobGoes goes, const absl::StatusOr<HereAnswer>& here) {
  const auto decided = DecideByAnswer({goes, "--exclusive"}, here);
  if (!decided.ok()) return std::string(decided.status().message());
  return *decided ? "goes" : "here";
}

TEST(DecideByAnswer, SendsItWhereThereIsAHead) {
  EXPECT_EQ(Second(JobGoes::kWhereItCan, Here("n0:29400", true)), "goes");
  EXPECT_EQ(Second(JobGoes::kToCluster, Here("n0:29400", true)), "goes");
  EXPECT_EQ(Second(JobGoes::kHere, Here("n0:29400", true)), "here");
}

TEST(DecideByAnswer, StartsItHereWhereThereIsNoCluster) {
  EXPECT_EQ(Second(JobGoes::kWhereItCan, absl::NotFoundError("no hlaunchd")), "here");
  EXPECT_EQ(Second(JobGoes::kWhereItCan, Here("", false)), "here");
}

TEST(DecideByAnswer, NeverStartsItHereBecauseTheClusterIsAway) {
  EXPECT_THAT(Second(JobGoes::kWhereItCan, Here("n0:29400", false, "refused since 16:41")),
              ::testing::AllOf(HasSubstr("does not reach the head of its cluster, n0:29400"),
                               HasSubstr("refused since 16:41"), HasSubstr("--cluster none")));
  EXPECT_THAT(Second(JobGoes::kWhereItCan, absl::DeadlineExceededError("silent")),
              HasSubstr("--cluster none"));
}

TEST(DecideByAnswer, TellsAClusterThatIsAwayFromNone) {
  const FirstDecision demand = {JobGoes::kToCluster, "--exclusive"};
  EXPECT_TRUE(absl::IsUnavailable(DecideByAnswer(demand, Here("n0:29400", false)).status()));
  for (const auto& why : {absl::UnavailableError("x"), absl::DeadlineExceededError("x")}) {
    EXPECT_EQ(DecideByAnswer(demand, why).status().code(), why.code());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      DecideByAnswer(demand, absl::NotFoundError("no hlaunchd")).status()));
}

TEST(DecideByAnswer, SaysWhyADemandCannotBeMet) {
  EXPECT_EQ(Second(JobGoes::kToCluster, absl::NotFoundError("no hlaunchd runs on this host")),
            "--exclusive: no hlaunchd runs on this host");
  EXPECT_THAT(Second(JobGoes::kToCluster, Here("", false)), HasSubstr("belongs to no cluster"));
}

}  // namespace
}  // namespace hlaunch
