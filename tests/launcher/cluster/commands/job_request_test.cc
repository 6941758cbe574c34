// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/job_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "launcher/cli/options/parse_options.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Options Parse(std::vector<const char*> words, const Environment& environment = Environment()) {
  words.insert(words.begin(), "hlaunch");
  auto options = ParseOptions(static_cast<int>(words.size()), words.data(), environment);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options();
}

absl::StatusOr<JobRequest> Request(const std::vector<const char*>& words,
                                   const Environment& environment = Environment()) {
  return RequestOf(Parse(words, environment), environment, {"/home/anna", 027, {"7:1024"}});
}

std::string Words(const std::vector<const char*>& words,
                  const Environment& environment = Environment()) {
  const auto request = Request(words, environment);
  EXPECT_TRUE(request.ok()) << request.status();
  return request.ok() ? absl::StrJoin(request->options, " ") : "";
}

TEST(RequestOf, SaysHowManyNodesWithWhat) {
  const auto request = Request({"--nnodes", "2:4", "--nproc-per-node", "8", "--spares", "1",
                                "--nodes", "a,b[1-2]", "--constraint", "ib,a100", "--exclusive",
                                "--shutdown-timeout", "90", "dir/train.py", "--lr", "1"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->name, "train.py");
  EXPECT_EQ(request->min_nodes, 2);
  EXPECT_EQ(request->max_nodes, 4);
  EXPECT_EQ(request->workers, 8);
  EXPECT_EQ(request->devices, "auto");
  EXPECT_EQ(request->spares, 1);
  EXPECT_THAT(request->hosts, ElementsAre("a", "b1", "b2"));
  EXPECT_THAT(request->labels, ElementsAre("ib", "a100"));
  EXPECT_TRUE(request->exclusive);
  EXPECT_EQ(request->grace_s, 90);
  EXPECT_THAT(request->script, ElementsAre("dir/train.py", "--lr", "1"));
  EXPECT_EQ(request->directory, "/home/anna");
  EXPECT_EQ(request->umask, 027);
  EXPECT_THAT(request->limits, ElementsAre("7:1024"));
}

TEST(RequestOf, RunsOnEachHostOfTheListUnlessTheNumberIsSaid) {
  EXPECT_EQ(Request({"--nodes", "a,b,c", "t.py"})->max_nodes, 3);
  EXPECT_EQ(Request({"--nodes", "a,b,c", "t.py"})->min_nodes, 3);
  EXPECT_EQ(Request({"--nodes", "a,b,c", "--spares", "1", "t.py"})->max_nodes, 2);
  EXPECT_EQ(Request({"--nodes", "a,b,c", "--nnodes", "1", "t.py"})->max_nodes, 1);
}

TEST(RequestOf, GivesPartsTheWordsThatPlacingDoesNotDecide) {
  EXPECT_EQ(Words({"--nnodes=2", "--nproc-per-node", "2", "--max-restarts", "3", "-v", "-m",
                   "pkg.train", "--nnodes", "7"}),
            "--max-restarts 3 -v -m");
  EXPECT_EQ(Words({"--nnodes",     "2",
                   "--cluster",    "hlaunchd",
                   "--nodes",      "a",
                   "--detach",     "-x",
                   "A=1",          "-xB=2",
                   "--rdzv-id",    "seven",
                   "--rdzv-conf",  "join_timeout=9",
                   "--devices",    "none",
                   "--token-file", "f",
                   "--log-dir",    "logs",
                   "t.py"}),
            "--rdzv-conf join_timeout=9 --log-dir logs");
  // Values from variables become options and do not keep the variables' names.
  EXPECT_EQ(Words({"t.py"}, Environment({"PET_MAX_RESTARTS=2", "PET_NNODES=2"})),
            "--max-restarts=2");
}

TEST(RequestOf, SaysWhatWorkersHold) {
  EXPECT_EQ(Request({"--nproc-per-node", "hpu", "t.py"})->devices, "hpu");
  EXPECT_EQ(Request({"--nproc-per-node", "gpu", "t.py"})->devices, "cuda,rocm");
  EXPECT_EQ(Request({"--nproc-per-node", "hpu", "t.py"})->workers, 0);
  EXPECT_EQ(Request({"--nproc-per-node", "auto", "t.py"})->devices, "auto");
  EXPECT_EQ(Request({"--nproc-per-node", "auto", "t.py"})->workers, 0);
  EXPECT_EQ(Request({"--nproc-per-node", "2", "--devices", "none", "t.py"})->devices, "none");
}

TEST(RequestOf, IsNamedByItsIdOrItsScript) {
  EXPECT_EQ(Request({"--rdzv-id", "llama", "t.py"})->name, "llama");
  EXPECT_EQ(Request({"-m", "pkg.train"})->name, "pkg.train");
}

TEST(RequestOf, ExportsWhatOtherHostsGet) {
  const Environment environment({"PATH=/bin", "HOME=/home/anna", "HLAUNCH_TOKEN=secret",
                                 "WANDB_API_KEY=secret", "NCCL_DEBUG=INFO"});
  EXPECT_THAT(Request({"-x", "A=1", "t.py"}, environment)->environment,
              ::testing::UnorderedElementsAre("PATH=/bin", "NCCL_DEBUG=INFO", "A=1"));
  EXPECT_THAT(
      Request({"--export", "none", "-x", "WANDB_API_KEY", "t.py"}, environment)->environment,
      ElementsAre("WANDB_API_KEY=secret"));
}

TEST(RequestOf, RefusesWhatAJobOfTheClusterCannotHave) {
  struct Row {
    std::vector<const char*> words;
    const char* why;
  };
  const Row rows[] = {
      {{"--stdin", "t.py"}, "reads no standard input"},
      {{"--devices", "0,1", "t.py"}, "leave their numbers out"},
      {{"--per-node", "t.py"}, "--per-node"},
      {{"--tls", "off", "t.py"}, "--tls off"},
      {{"--nproc-per-node", "cpu", "t.py"}, "needs a number"},
      {{"--nproc-per-node", "2:socket", "t.py"}, "needs a number"},
      {{"--nproc-per-node", "auto", "--devices", "none", "t.py"}, "needs a number"},
      {{"--nodes", "Node_A", "t.py"}, "no name of a host"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(std::string(Request(row.words).status().message()), HasSubstr(row.why));
  }
}

}  // namespace
}  // namespace hlaunch
