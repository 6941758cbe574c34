// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/take_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/options.h"
#include "launcher/cli/options/parse_options.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Step(std::vector<std::string> more = {}) {
  for (const char* entry :
       {"SLURM_JOB_ID=17", "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NODEID=1",
        "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_TASKS_PER_NODE=1(x2)",
        "CUDA_VISIBLE_DEVICES=0,1", "SLURM_CONF=/nonexistent"}) {
    more.emplace_back(entry);
  }
  return more;
}

absl::StatusOr<Options> ParseOnNode(std::vector<const char*> words,
                                    std::vector<std::string> env = Step()) {
  words.insert(words.begin(), "hlaunch");
  words.push_back("train.py");
  return ParseOptions(static_cast<int>(words.size()), words.data(),
                      Surroundings{Environment(std::move(env)), "n2", {}, ""});
}

// The nodes, rank, endpoint, workers and job id in a line.
std::string Place(const absl::StatusOr<Options>& options) {
  if (!options.ok()) return std::string(options.status().message());
  return absl::StrCat(options->policy.min_nodes, ":", options->policy.max_nodes, " rank ",
                      options->node.rank.value_or(-1), " at ",
                      options->meeting.endpoint ? HostPort(*options->meeting.endpoint)
                                                : options->meeting.master_addr,
                      " x ", options->nproc.value_or(-1), " id ", options->meeting.job_id);
}

TEST(TakePlace, GivesWhatNobodySays) {
  EXPECT_EQ(Place(ParseOnNode({})), "2:2 rank 1 at n1:12272 x 2 id 17.0");
  EXPECT_EQ(ParseOnNode({})->worker.stop_grace, std::chrono::seconds(25));
}

TEST(TakePlace, CompletesWhatIsTyped) {
  EXPECT_EQ(Place(ParseOnNode({"--nproc-per-node", "8", "--rdzv-id", "x"})),
            "2:2 rank 1 at n1:12272 x 8 id x");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "1:2"})), "1:2 rank 1 at n1:12272 x 2 id 17.0");
  EXPECT_EQ(Place(ParseOnNode({"--rdzv-endpoint", "head:1"})), "2:2 rank 1 at head:1 x 2 id 17.0");
  EXPECT_EQ(Place(ParseOnNode({"--node-rank", "0"})), "2:2 rank 0 at n1:12272 x 2 id 17.0");
}

TEST(TakePlace, WaitsForNoNodeThatWasNotStarted) {
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "1:4"})), "1:2 rank 1 at n1:12272 x 2 id 17.0");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "2:4"})), "2:2 rank 1 at n1:12272 x 2 id 17.0");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "4"})), "4:4 rank 1 at n1:12272 x 2 id 17.0");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "3:4"})), "3:4 rank 1 at n1:12272 x 2 id 17.0");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "1:4", "--rdzv-endpoint", "h:1"})),
            "1:4 rank -1 at h:1 x 2 id ");
}

TEST(TakePlace, KnowsThatNobodyStartsAStepsNodesAgain) {
  const auto started = [](std::vector<const char*> words) {
    return ParseOnNode(std::move(words))->policy.started_nodes;
  };
  EXPECT_EQ(started({}), 2);
  EXPECT_EQ(started({"--nnodes", "1:4"}), 2);
  EXPECT_EQ(started({"--rdzv-id", "x", "--master-port", "29600"}), 2);
  EXPECT_EQ(started({"--nnodes", "1:4", "--rdzv-endpoint", "service"}), 0) << "others may come";
  EXPECT_EQ(started({"--rdzv-endpoint", "service"}), 0);
  EXPECT_EQ(started({"--nnodes", "1"}), 0);
  EXPECT_EQ(started({"--standalone"}), 0);
  EXPECT_EQ(started({"--cluster", "none"}), 0);
}

TEST(TakePlace, SaysThatABatchScriptKeepsItsSignals) {
  const auto cautions = [](std::vector<const char*> words, const char* task) {
    words.insert(words.begin(), "hlaunch");
    words.push_back("x");
    const Surroundings batch{
        Environment({"SLURM_JOB_ID=17", "SLURM_JOB_NUM_NODES=1", "SLURM_PROCID=0", task}),
        "n1",
        {77, 70, 1},
        ""};
    return ParseOptions(static_cast<int>(words.size()), words.data(), batch)->cluster_warnings;
  };
  EXPECT_THAT(cautions({}, "SLURM_TASK_PID=70"), ElementsAre(HasSubstr("or exec hlaunch")));
  EXPECT_THAT(cautions({"--nnodes", "1"}, "SLURM_TASK_PID=70"),
              ElementsAre(HasSubstr("scancel and the time limit signal the batch script")));
  EXPECT_THAT(cautions({}, "SLURM_TASK_PID=77"), IsEmpty()) << "exec hlaunch";
  EXPECT_THAT(cautions({}, "SLURM_TASK_PID=5"), IsEmpty()) << "another shell's";
  EXPECT_THAT(cautions({}, "X=1"), IsEmpty()) << "salloc's shell";
}

TEST(TakePlace, MakesTheStaticFormOfAPort) {
  const auto options = ParseOnNode({"--master-port", "29600"});
  EXPECT_EQ(Place(options), "2:2 rank 1 at n1 x 2 id 17.0");
  EXPECT_EQ(options->meeting.master_port, 29600);
}

TEST(TakePlace, TakesOnlyWhatIsOfThisNodeWhereTheNodesAreSaid) {
  EXPECT_EQ(Place(ParseOnNode({"--standalone"})), "1:1 rank -1 at  x 2 id ");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "1"})), "1:1 rank -1 at  x 2 id ");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "2", "--rdzv-endpoint", "h:1"})),
            "2:2 rank -1 at h:1 x 2 id ");
  EXPECT_EQ(
      Place(ParseOnNode({"--nnodes", "2", "--rdzv-endpoint", "h:1", "--nproc-per-node", "1"})),
      "2:2 rank -1 at h:1 x 1 id ");
  EXPECT_EQ(ParseOnNode({"--nnodes", "2", "--rdzv-endpoint", "h:1"})->worker.stop_grace,
            std::chrono::seconds(25));
  EXPECT_EQ(Place(ParseOnNode({"--cluster", "none"})), "1:1 rank -1 at  x 1 id ");
  EXPECT_EQ(Place(ParseOnNode({}, Step({"PET_NNODES=1"}))), "1:1 rank -1 at  x 2 id ");
}

TEST(TakePlace, LetsThoseRunWhoSayAllThoughItWouldRefuse) {
  const auto tasks = Step({"SLURM_STEP_TASKS_PER_NODE=2(x2)"});
  EXPECT_EQ(Place(ParseOnNode({}, tasks)), "") << "task 0 says it, for all";
  EXPECT_FALSE(ParseOnNode({}, tasks).ok());
  EXPECT_EQ(Place(ParseOnNode({"--standalone"}, tasks)), "1:1 rank -1 at  x 1 id ");
}

TEST(TakePlace, NeedsNoEndpointForOneNode) {
  EXPECT_EQ(Place(ParseOnNode({}, Step({"SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=n2",
                                        "SLURM_STEP_TASKS_PER_NODE=1", "SLURM_NODEID=0"}))),
            "1:1 rank -1 at  x 2 id 17.0");
}

TEST(TakePlace, LeavesPerNodeItsOneWorker) {
  EXPECT_EQ(Place(ParseOnNode({"--per-node"})), "2:2 rank 1 at n1:12272 x 1 id 17.0");
}

TEST(TakePlace, WarnsOfNodesThatAreNotUsed) {
  const std::vector<std::string> batch = {"SLURM_JOB_ID=17", "SLURM_JOB_NUM_NODES=3"};
  EXPECT_THAT(ParseOnNode({}, batch)->cluster_warnings,
              ElementsAre(HasSubstr("one node of the 3")));
  EXPECT_THAT(ParseOnNode({"--nnodes", "1"}, batch)->cluster_warnings, IsEmpty());
  EXPECT_EQ(Place(ParseOnNode({}, batch)), "1:1 rank -1 at  x 1 id ");
}

TEST(TakePlace, StartsTheNodesOfAnAllocationUnlessOneIsMeant) {
  const std::vector<std::string> batch = {"SLURM_JOB_ID=17", "SLURM_JOB_NUM_NODES=3",
                                          "SLURM_JOB_NODELIST=n[1-3]"};
  const auto started = [&](std::vector<const char*> words) {
    const auto options = ParseOnNode(std::move(words), batch);
    return options.ok() ? options->hosts.system + " " + options->hosts.hosts
                        : std::string(options.status().message());
  };
  EXPECT_EQ(started({}), "slurm n1,n2,n3");
  EXPECT_EQ(started({"--nnodes", "2"}), "slurm n1,n2,n3");
  EXPECT_EQ(started({"--exclude", "n2"}), "slurm n1,n2,n3");
  EXPECT_EQ(started({"--hosts", "allocation", "--launch-agent", "x %h"}), "slurm n1,n2,n3");
  EXPECT_EQ(started({"--hosts", "a"}), " a");
  const char* const own = "srun -w %h -N1 -n1 --overlap --mem=0 --cpu-bind=none --mpi=none";
  EXPECT_EQ(started({"--hosts", "n2,n1", "--launch-agent", own}), "slurm n2,n1");
  EXPECT_EQ(started({"--hosts", "n2,n1", "--launch-agent", "ssh %h"}), " n2,n1");
  for (const char* one :
       {"--nnodes=1", "--standalone", "--rdzv-endpoint=n1", "--dry-run", "--cluster=none"}) {
    EXPECT_EQ(started({one}), " ") << one;
  }
  EXPECT_THAT(ParseOnNode({}, batch)->cluster_warnings, IsEmpty());
  EXPECT_THAT(ParseOnNode({"--rdzv-endpoint=n1"}, batch)->cluster_warnings,
              ElementsAre(HasSubstr("one node of the 3")));
  EXPECT_THAT(started({"--cluster", "slurm", "--rdzv-endpoint=n1"}), HasSubstr("no step of it"));
}

TEST(TakePlace, NeedsTheNumberOfPods) {
  const std::vector<std::string> pod = {"KUBERNETES_SERVICE_HOST=1", "JOB_COMPLETION_INDEX=1"};
  EXPECT_EQ(Place(ParseOnNode({}, pod)), "1:1 rank -1 at  x 1 id ");
  EXPECT_THAT(ParseOnNode({}, pod)->cluster_warnings, ElementsAre(HasSubstr("add --nnodes N")));
  EXPECT_THAT(Place(ParseOnNode({"--nnodes", "2"}, pod)), HasSubstr("make a headless Service"));
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "2", "--rdzv-endpoint", "h:1"}, pod)),
            "2:2 rank -1 at h:1 x 1 id ");
}

TEST(TakePlace, RefusesOneOfSeveralNodesThatTrainAlone) {
  const std::vector<std::string> by_hand = {"MASTER_ADDR=n1", "NODE_RANK=1", "WORLD_SIZE=16"};
  EXPECT_THAT(Place(ParseOnNode({}, by_hand)), HasSubstr("nothing says how many there are"));
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "1"}, by_hand)), "1:1 rank -1 at  x 1 id ");
  EXPECT_EQ(Place(ParseOnNode({"--cluster", "none"}, by_hand)), "1:1 rank -1 at  x 1 id ");
  EXPECT_EQ(Place(ParseOnNode({"--nnodes", "2"}, by_hand)), "2:2 rank 1 at n1 x 1 id ");
}

// Values that users set are taken or named in an error, and no job waits for a node that cannot
// come.
TEST(TakePlace, TakesOrNamesWhatIsSetByHand) {
  struct Case {
    std::vector<const char*> words;
    std::vector<std::string> env;
    const char* place;
  };
  const std::vector<Case> cases = {
      {{"--nnodes", "2"}, {"MASTER_ADDR=n1", "MASTER_PORT=700"}, "2:2 rank -1 at n1 x 1 id "},
      {{"--nnodes", "2", "--node-rank", "1"}, {"MASTER_ADDR=n1"}, "2:2 rank 1 at n1 x 1 id "},
      {{"--nnodes", "2"}, {"MASTER_ADDR=n1", "MASTER_PORT=x"}, "MASTER_PORT 'x': expected"},
      {{}, {"MASTER_ADDR=n1", "MASTER_PORT=700"}, "1:1 rank -1 at  x 1 id "},
      {{"--nnodes", "2"}, {"NODE_RANK=0"}, "NODE_RANK is 0, as for one job of several nodes, and "},
      {{"--nnodes", "2"}, {"NODE_RANK=1"}, "nothing says where they meet: set MASTER_ADDR"},
      {{}, {"NODE_RANK=1"}, "nothing says where they meet: set MASTER_ADDR"},
      {{}, {"NODE_RANK=0", "NNODES=2"}, "nothing says where they meet: set MASTER_ADDR"},
      {{}, {"NODE_RANK=0"}, "1:1 rank -1 at  x 1 id "},
      {{}, {"MASTER_ADDR=localhost", "NODE_RANK=0"}, "1:1 rank -1 at  x 1 id "},
      {{"--nnodes", "2"}, {"MASTER_ADDR=localhost", "RANK=0"}, "2:2 rank -1 at  x 1 id "},
      {{}, {"MASTER_ADDR=localhost", "NODE_RANK=1", "NNODES=2"}, "2:2 rank 1 at localhost x 1 id "},
      {{"--nnodes", "2", "--rdzv-endpoint", "h:1"}, {"NODE_RANK=1"}, "2:2 rank -1 at h:1 x 1 id "},
      {{"--nnodes", "2"},
       {"MASTER_ADDR=n1", "NODE_RANK=2"},
       "--node-rank 2: with --nnodes 2 ranks go from 0 to 1 (--node-rank is from NODE_RANK)"},
  };
  for (const Case& one : cases) {
    EXPECT_THAT(Place(ParseOnNode(one.words, one.env)), HasSubstr(one.place)) << one.env.back();
  }
  EXPECT_THAT(
      ParseOnNode({"--nnodes", "2"}, {"MASTER_ADDR=localhost", "NODE_RANK=1"})->cluster_warnings,
      ElementsAre(HasSubstr("where only nodes on this host meet")));
  // The surrounding allocation still says that this is one node of several.
  EXPECT_THAT(ParseOnNode({}, {"SLURM_JOB_ID=17", "SLURM_JOB_NUM_NODES=3", "MASTER_ADDR=n1"})
                  ->cluster_warnings,
              ElementsAre(HasSubstr("one node of the 3")));
}

TEST(TakePlace, NamesTheVariableOfAWrongValue) {
  EXPECT_EQ(Place(ParseOnNode({"--cluster", "lsf"})), "--cluster lsf: LSB_JOBID is not set here");
  EXPECT_EQ(
      Place(ParseOnNode({"--cluster", "slrum"})),
      "--cluster 'slrum': expected one of auto, none, hlaunchd, mpirun, slurm, pbs, lsf, "
      "sge, sagemaker, "
      "vertex, flux, aws-batch, skypilot, dstack, beaker, ngc, leaderworkerset, volcano, condor, "
      "nomad, kubernetes, env");
  EXPECT_THAT(Place(ParseOnNode({}, Step({"SLURM_STEP_NODELIST=a:b,n2"}))),
              HasSubstr("SLURM_STEP_NODELIST 'a:b:12272'"));
}

std::string Explained(std::vector<const char*> words, std::vector<std::string> env = Step()) {
  words.push_back("--explain-cluster");
  const auto options = ParseOnNode(std::move(words), std::move(env));
  return options.ok() ? options->text_to_print.value_or("")
                      : std::string(options.status().message());
}

TEST(ExplainPlace, HasValueSourceAndMeaning) {
  const std::string text = Explained({"--nproc-per-node", "4"});
  EXPECT_THAT(text, HasSubstr("cluster: slurm\na task of Slurm step 17.0 (SLURM_STEP_ID)\n"));
  EXPECT_THAT(text, HasSubstr("not taken, the command line says 4"));
  const auto json = nlohmann::json::parse(Explained({"--json"}));
  EXPECT_EQ(json["cluster"], "slurm");
  EXPECT_EQ(json["refusal"], nullptr);
  EXPECT_EQ(json["values"][0], (nlohmann::json{{"name", "--nnodes"},
                                               {"value", "2"},
                                               {"source", "SLURM_STEP_NUM_NODES"},
                                               {"meaning", "nodes of the step"},
                                               {"taken", true}}));
}

TEST(ExplainPlace, SaysWhyNothingIsTaken) {
  EXPECT_EQ(Explained({}, {}),
            "cluster: none\nno variable of a scheduler or of another launcher is set\n");
  EXPECT_THAT(Explained({}, {"PET_NNODES=2", "KUBERNETES_SERVICE_HOST=1"}),
              HasSubstr("PET_NNODES  given"));
  EXPECT_THAT(Explained({}, Step({"SLURM_STEP_TASKS_PER_NODE=1("})),
              HasSubstr("SLURM_STEP_TASKS_PER_NODE '1('"));
}

TEST(TakePlace, TakesTheTasksOfANodeWhateverIsSaidOfNodes) {
  const std::vector<std::string> tasks = Step(
      {"SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_GTIDS=2,3"});
  const auto taken = [&tasks](std::vector<const char*> words) {
    const auto options = ParseOnNode(std::move(words), tasks);
    return absl::StrCat(Place(options), options.ok() && options->tasks ? " by tasks" : "");
  };
  EXPECT_EQ(taken({}), "2:2 rank 1 at n1:12272 x 2 id 17.0 by tasks");
  EXPECT_EQ(taken({"--nnodes=1"}), "1:1 rank -1 at  x 2 id  by tasks");
  EXPECT_EQ(taken({"--nnodes=2", "--rdzv-endpoint=n1:7"}), "2:2 rank -1 at n1:7 x 2 id  by tasks");
  EXPECT_EQ(taken({"--standalone"}), "1:1 rank -1 at  x 1 id ");
}

TEST(ExplainPlace, SaysWhatTasksOfANodeDecideAndWhatDoesNotGoWithThem) {
  const std::vector<std::string> tasks = Step(
      {"SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_GTIDS=2,3"});
  EXPECT_THAT(Explained({}, tasks), HasSubstr("each task has its own CPUs"));
  EXPECT_THAT(Explained({"--nproc-per-node=2"}, tasks), HasSubstr("each task has its own CPUs"));
  EXPECT_THAT(Explained({"--nproc-per-node=4"}, tasks), HasSubstr("--nproc-per-node says 4"));
  EXPECT_THAT(Explained({"--bind=core"}, tasks), HasSubstr("leave --bind out, or write srun -N2"));
  EXPECT_THAT(Explained({"--standalone"}, tasks), HasSubstr("its own CPUs; not needed beside"))
      << "each task is a job of its own";
}

}  // namespace
}  // namespace hlaunch
