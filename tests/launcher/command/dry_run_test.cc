// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/options/parse_options.h"
#include "launcher/job/spec/make_job_spec.h"
#include "launcher/job/spec/token.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Job {
  Options options;
  JobSpec spec;
};

Job Make(std::vector<const char*> words, std::vector<std::string> env = {}) {
  words.insert(words.begin(), "hlaunch");
  const auto options = ParseOptions(static_cast<int>(words.size()), words.data());
  EXPECT_TRUE(options.ok()) << options.status();
  const HostProbes probes = {
      [] { return 2; }, [] { return std::string("3f2a"); },
      [](const std::string&) { return TokenFile(); },
      [](const ScriptRequest& request, const Environment&) { return request.command; }};
  const auto spec = MakeJobSpec(*options, Environment(std::move(env)), probes);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return {*options, *spec};
}

TEST(DescribeJob, SaysWhatWouldBeRun) {
  const Job job = Make({"--nnodes=2:4", "--nproc-per-node=8", "--rdzv-endpoint=n0", "--rdzv-id=7",
                        "--max-restarts=1", "--tee=3", "--redirects=1:2", "--log-dir=/logs",
                        "/bin/train", "a b", "${local_rank}"});
  EXPECT_EQ(DescribeJob(job.options, job.spec, "n0 is another host"),
            "job          7: 2 to 4 nodes, 8 workers here, 1 restart\n"
            "nodes meet   n0:29400\n"
            "this node    n0 is another host\n"
            "master store at node rank 0, in clear, for all users of the nodes, since there is no "
            "secret to ask agents by\n"
            "local rank 0 /bin/train 'a b' 0\n"
            "MPI          PMI-1 by a port, in case that it starts an MPI program: none is seen in "
            "it\n"
            "output       here and in files: stdout and stderr of every worker\n"
            "             in files only: stderr of local rank 1\n"
            "             files: /logs\n"
            "\nNothing was started.\n");
}

TEST(DescribeJob, NamesEachProgram) {
  const Job job = Make({"-n", "3", "--also=-n 2 -x A=1 serve 'a b'", "train"});
  EXPECT_THAT(DescribeJob(job.options, job.spec, "works alone"),
              HasSubstr("\nlocal rank 0 train\nalso         2 ranks: serve 'a b'\n"));
}

TEST(DescribeJob, SaysWhatIsPreloadedOrWhyNothing) {
  const auto text = [](std::vector<const char*> words) {
    words.insert(words.begin(), "--nproc-per-node=2");
    const Job job = Make(std::move(words));
    return DescribeJob(job.options, job.spec, "works alone");
  };
  EXPECT_THAT(text({"--preload=json,ast", "/usr/bin/python3", "train.py"}),
              HasSubstr("\npreload      json, ast\n"));
  EXPECT_THAT(text({"--preload=json,jax,no_such", "/usr/bin/python3", "train.py"}),
              HasSubstr("\npreload      json; not jax: its threads do not live through a fork; "
                        "not no_such: there is no such module\n"));
  EXPECT_THAT(text({"--preload=json", "/bin/train"}),
              HasSubstr("\npreload      nothing: the ranks' program is not Python itself\n"));
}

TEST(DescribeJob, NamesWhatPreloadAutoFindsInTheScript) {
  const auto text = [](const char* code) {
    const Job job = Make(
        {"--nproc-per-node=2", "--preload=auto", "--no-python", "/usr/bin/python3", "-c", code});
    return DescribeJob(job.options, job.spec, "works alone");
  };
  EXPECT_THAT(text("import os, no_such, jax.numpy"),
              HasSubstr("\npreload      nothing; not no_such: auto does not know it; it can be "
                        "named; not jax.numpy: its threads do not live through a fork\n"));
  EXPECT_THAT(text("import ("), HasSubstr("\npreload      not known: SyntaxError: "));
}

TEST(DescribeJob, IsJsonOnRequest) {
  const Job job = Make({"--json", "--rdzv-id=3f2a", "--nproc-per-node=2", "/bin/train", "\xff"});
  const auto json = nlohmann::json::parse(DescribeJob(job.options, job.spec, "works alone"));
  EXPECT_EQ(json["job_id"], "3f2a");
  EXPECT_EQ(json["workers_here"], 2);
  EXPECT_EQ(json["command"][0], "/bin/train");
}

TEST(DescribeEnv, ShowsWhatIsKnownAndAPlaceholderForTheRest) {
  const Job job = Make({"--nproc-per-node=4", "--print-env=2", "x"}, {"A=b c", "PET_X=1"});
  const std::string text = DescribeEnv(job.options, job.spec, 8);
  EXPECT_THAT(text, HasSubstr("\nA='b c'\n"));
  EXPECT_THAT(text, HasSubstr("\nRANK=2\n"));
  EXPECT_THAT(text, HasSubstr("\nWORLD_SIZE=4\n"));
  EXPECT_THAT(text, HasSubstr("\nMASTER_ADDR=127.0.0.1\n"));
  EXPECT_THAT(text, HasSubstr("\nMASTER_PORT='?'\n"));
  EXPECT_THAT(text, HasSubstr("\nTORCHELASTIC_RUN_ID='?'\n"));  // It differs with each start.
  EXPECT_THAT(text, HasSubstr("\nOMP_NUM_THREADS=2\n"));
  EXPECT_THAT(text, Not(HasSubstr("PET_X")));
}

TEST(DescribeEnv, KnowsANamedPort) {
  const Job job = Make({"--master-port=29511", "--print-env", "x"});
  EXPECT_THAT(DescribeEnv(job.options, job.spec, 1), HasSubstr("\nMASTER_PORT=29511\n"));
}

TEST(DescribeEnv, DoesNotGuessTheRanksOfSeveralNodes) {
  const Job job = Make({"--nnodes=2", "--rdzv-endpoint=n0", "--print-env", "--json", "x"});
  const auto json = nlohmann::json::parse(DescribeEnv(job.options, job.spec, 1));
  for (const char* name : {"RANK", "WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_EQ(json[name], "?") << name;
  }
  EXPECT_EQ(json["GROUP_WORLD_SIZE"], "2");
  EXPECT_EQ(json["LOCAL_RANK"], "0");
}

}  // namespace
}  // namespace hlaunch
