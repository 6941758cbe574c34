// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/scheduler/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/environment/scheduler/finders.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A directory with files that stands for this machine's root.
class Root {
 public:
  Root() : path_(absl::StrCat(testing::TempDir(), "/hlaunch_root_", ::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Root() { std::filesystem::remove_all(path_); }
  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path_ + file).parent_path());
    std::ofstream(path_ + file) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Surroundings Of(std::vector<std::string> entries, std::string host = "here",
                std::string root = "/nonexistent") {
  return {Environment(std::move(entries)), std::move(host), {77, 70}, std::move(root)};
}

// Each option as "--nnodes=2 (SLURM_STEP_NUM_NODES)".
std::vector<std::string> Texts(const ClusterPlace& place) {
  std::vector<std::string> texts;
  for (const PlaceValue& value : place.values) {
    if (value.is_option()) {
      texts.push_back(absl::StrCat(value.name, "=", value.value, " (", value.source, ")"));
    }
  }
  return texts;
}

std::string Fact(const ClusterPlace& place, const std::string& name) {
  for (const PlaceValue& value : place.values) {
    if (value.name == name) return value.value;
  }
  return "";
}

// The variables of the second node's task of step 17.3, as srun sets them; later entries win.
std::vector<std::string> Step(std::vector<std::string> more = {}) {
  std::vector<std::string> entries = std::move(more);
  for (const char* entry :
       {"SLURM_JOB_ID=17", "SLURM_STEP_ID=3", "SLURM_PROCID=1", "SLURM_NODEID=1",
        "SLURM_JOB_NUM_NODES=4", "SLURM_NNODES=4", "SLURM_JOB_NODELIST=n[01-04]",
        "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=n[03-04]", "SLURM_STEP_NUM_TASKS=2",
        "SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURM_TASK_PID=70", "SLURM_CPUS_ON_NODE=8"}) {
    entries.emplace_back(entry);
  }
  return entries;
}

constexpr char kPort[] = "12275";  // 12000 + 16 * 17 + 3

TEST(FindSlurm, StartsNoWholeJobInEachTaskThatLacksAVariable) {
  for (const std::string missing : {"SLURM_PROCID", "SLURM_STEP_ID"}) {
    std::vector<std::string> entries = Step();
    std::erase_if(entries,
                  [&](const std::string& entry) { return entry.starts_with(missing + "="); });
    const ClusterPlace place = FindPlace(Of(entries), "auto");
    EXPECT_THAT(place.refusal.message(), HasSubstr(absl::StrCat("and ", missing, " is not set")));
    EXPECT_TRUE(FindPlace(Of(entries), "none").refusal.ok());
  }
}

TEST(FindSlurm, TakesTheStepsValuesAndNotTheJobs) {
  const ClusterPlace place = FindPlace(Of(Step()), "auto");
  EXPECT_EQ(place.cluster, "slurm");
  EXPECT_TRUE(place.refusal.ok()) << place.refusal;
  EXPECT_THAT(
      Texts(place),
      ElementsAre(
          "--nnodes=2 (SLURM_STEP_NUM_NODES)", "--node-rank=1 (SLURM_NODEID)",
          absl::StrCat("--rdzv-endpoint=n03:", kPort, " (SLURM_STEP_NODELIST)"),
          "--rdzv-id=17.3 (SLURM_JOB_ID)", "--nproc-per-node=1 (SLURM_STEP_TASKS_PER_NODE)",
          "--shutdown-timeout=25 (Slurm's own default, for no slurm.conf can be read here)"));
}

TEST(FindSlurm, CountsWorkersByWhatTheTaskMaySee) {
  const auto nproc = [](std::vector<std::string> more) {
    return Texts(FindPlace(Of(Step(std::move(more))), "auto"))[4];
  };
  EXPECT_EQ(nproc({"SLURM_GPUS_ON_NODE=4", "CUDA_VISIBLE_DEVICES=2,3"}),
            "--nproc-per-node=2 (CUDA_VISIBLE_DEVICES)");
  EXPECT_EQ(nproc({"SLURM_GPUS_ON_NODE=4"}), "--nproc-per-node=4 (SLURM_GPUS_ON_NODE)");
  EXPECT_EQ(nproc({"CUDA_VISIBLE_DEVICES=NoDevFiles"}),
            "--nproc-per-node=1 (SLURM_STEP_TASKS_PER_NODE)");
  EXPECT_EQ(nproc({"HABANA_VISIBLE_MODULES=0,1,2"}), "--nproc-per-node=3 (HABANA_VISIBLE_MODULES)");
}

TEST(FindSlurm, LeavesWorkersWhatIsLeftOfKillWait) {
  Root root;
  root.Write("/etc/slurm/slurm.conf", "ClusterName=c # KillWait=9\nkillwait=60\n");
  EXPECT_THAT(Texts(FindPlace(Of(Step(), "here", root.path()), "auto")).back(),
              "--shutdown-timeout=55 (/etc/slurm/slurm.conf (KillWait))");
  root.Write("/etc/other.conf", "KillWait=3\n");
  EXPECT_THAT(
      Texts(FindPlace(Of(Step({"SLURM_CONF=/etc/other.conf"}), "here", root.path()), "auto"))
          .back(),
      "--shutdown-timeout=2 (/etc/other.conf (KillWait))");
  root.Write("/etc/other.conf", "KillWait=0\n");
  EXPECT_THAT(
      Texts(FindPlace(Of(Step({"SLURM_CONF=/etc/other.conf"}), "here", root.path()), "auto"))
          .back(),
      HasSubstr("--shutdown-timeout=0"));
}

TEST(FindSlurm, SaysWhatPeopleAskFor) {
  const ClusterPlace place =
      FindPlace(Of(Step({"SLURM_RESTART_COUNT=2", "SLURM_JOB_END_TIME=1700000000"})), "auto");
  EXPECT_EQ(Fact(place, "restarts"), "2");
  EXPECT_EQ(Fact(place, "time limit"), "2023-11-14T22:13:20Z");
  EXPECT_EQ(Fact(place, "CPUs"), "8");
}

TEST(FindSlurm, TakesNothingOutsideOfAStep) {
  // A batch script and salloc's shell, which is its own step in newer releases.
  for (const std::vector<std::string>& entries : std::vector<std::vector<std::string>>{
           {"SLURM_JOB_ID=17", "SLURM_PROCID=0", "SLURM_NODEID=0", "SLURM_JOB_NUM_NODES=3"},
           {"SLURM_JOB_ID=17", "SLURM_STEP_ID=4294967290", "SLURM_PROCID=0", "SLURM_NNODES=3"}}) {
    const ClusterPlace place = FindPlace(Of(entries), "auto");
    EXPECT_FALSE(place.found());
    EXPECT_THAT(place.reason, HasSubstr("no step of it"));
    EXPECT_THAT(place.warnings, ElementsAre(HasSubstr("on one node of the 3 of Slurm job 17")));
    EXPECT_THAT(FindPlace(Of(entries), "slurm").refusal.message(),
                HasSubstr("write srun --ntasks-per-node=1 hlaunch"));
  }
  EXPECT_THAT(FindPlace(Of({"SLURM_JOB_ID=17", "SLURM_JOB_NUM_NODES=1"}), "auto").warnings,
              IsEmpty());
}

std::vector<std::string> Batch(std::vector<std::string> more = {}) {
  for (const char* entry : {"SLURM_JOB_ID=17", "SLURM_PROCID=0", "SLURM_JOB_NUM_NODES=2",
                            "SLURM_JOB_NODELIST=n[1-2]", "SLURMD_NODENAME=n1"}) {
    more.emplace_back(entry);
  }
  return more;
}

std::string HostsOf(std::vector<std::string> more, const std::string& host = "n1") {
  const ClusterPlace place = FindPlace(Of(Batch(std::move(more)), host), "auto");
  return place.start_reason.empty() ? "none" : Texts(place)[1];
}

TEST(FindSlurm, StartsTheNodesOfAnAllocation) {
  const ClusterPlace place = FindPlace(Of(Batch()), "auto");
  EXPECT_EQ(place.start_reason, "in Slurm job 17: its nodes are started from here by srun");
  EXPECT_THAT(Texts(place),
              ElementsAre("--nnodes=2 (SLURM_JOB_NODELIST)", "--hosts=n1,n2 (SLURM_JOB_NODELIST)",
                          "--launch-agent=srun -w %h -N1 -n1 --overlap --mem=0 --cpu-bind=none "
                          "--mpi=none (SLURM_JOB_NODELIST)"));
  EXPECT_EQ(HostsOf({"SLURM_TASKS_PER_NODE=8(x2)"}), "--hosts=n1:8,n2:8 (SLURM_JOB_NODELIST)");
  EXPECT_EQ(HostsOf({"SLURM_TASKS_PER_NODE=1(x2)"}), "--hosts=n1,n2 (SLURM_JOB_NODELIST)");
  EXPECT_EQ(HostsOf({"SLURM_TASKS_PER_NODE=8"}), "--hosts=n1,n2 (SLURM_JOB_NODELIST)");
  // A single node is this host, unless salloc's shell is on a login node.
  const std::vector<std::string> one = {"SLURM_JOB_NODELIST=n1"};
  EXPECT_EQ(HostsOf(one), "none");
  EXPECT_EQ(HostsOf({"SLURM_JOB_NODELIST=n1", "SLURMD_NODENAME="}, "login"),
            "--hosts=n1 (SLURM_JOB_NODELIST)");
  EXPECT_EQ(HostsOf({"SLURM_JOB_NODELIST=n1", "SLURMD_NODENAME="}, "n1.site"), "none");
}

TEST(FindSlurm, StartsNoNodesFromWithinAWorker) {
  EXPECT_EQ(HostsOf({"TORCHELASTIC_RUN_ID=17.0"}), "none");
  EXPECT_EQ(HostsOf({"LOCAL_RANK=0"}), "none");
  EXPECT_EQ(HostsOf({"SLURM_HET_SIZE=2"}), "none");
  Surroundings doctor = Of(Batch(), "n1");
  doctor.alone = true;
  EXPECT_EQ(FindPlace(doctor, "auto").start_reason, "");
}

TEST(FindSlurm, AsksForTheGpusThatAStepWouldNotGetByItself) {
  const auto starter = [](std::vector<std::string> more) {
    const ClusterPlace place = FindPlace(Of(Batch(std::move(more)), "n1"), "auto");
    return Texts(place).back();
  };
  EXPECT_THAT(starter({"SLURM_TASKS_PER_NODE=4(x2)", "SLURM_GPUS_PER_TASK=a100:2"}),
              HasSubstr("--gres=gpu:8"));
  EXPECT_THAT(starter({"SLURM_TASKS_PER_NODE=4,2", "SLURM_GPUS_PER_TASK=2", "SLURM_GPUS=12"}),
              testing::Not(HasSubstr("gres")));
  EXPECT_THAT(starter({"SLURM_GPUS=6"}), HasSubstr("--gres=gpu:3"));
  EXPECT_THAT(starter({"SLURM_GPUS=5"}), testing::Not(HasSubstr("gres")));
  EXPECT_THAT(starter({"SLURM_GPUS_PER_NODE=8", "SLURM_GPUS=16"}), testing::Not(HasSubstr("gres")));
}

TEST(FindSlurm, LetsANodesOwnNumberWinAndAnAddressNot) {
  EXPECT_EQ(HostsOf({"MASTER_ADDR=n1", "MASTER_PORT=29500"}), "--hosts=n1,n2 (SLURM_JOB_NODELIST)");
  EXPECT_EQ(HostsOf({"MASTER_ADDR=n1", "NODE_RANK=1", "NNODES=2"}), "none");
}

TEST(AllocationPlace, KnowsTheJobsOfOtherSystems) {
  Root root;
  root.Write("/etc/nodes", "n1\nn1\nn2\n");
  const auto texts = [&](std::vector<std::string> entries) {
    return absl::StrJoin(Texts(AllocationPlace(Of(std::move(entries), "n1", root.path()))), " ");
  };
  EXPECT_EQ(texts({"PBS_JOBID=4.s", "PBS_NODEFILE=/etc/nodes"}),
            "--nnodes=2 (PBS_NODEFILE) --hosts=n1:2,n2:1 (PBS_NODEFILE)");
  EXPECT_EQ(texts({"LSB_JOBID=9", "LSB_MCPU_HOSTS=n1 1 n2 1"}),
            "--nnodes=2 (LSB_MCPU_HOSTS) --hosts=n1,n2 (LSB_MCPU_HOSTS) --launch-agent=blaunch %h "
            "(LSB_MCPU_HOSTS)");
  root.Write("/etc/nodes", "n1 4 all.q UNDEFINED\nn2 4 all.q UNDEFINED\n");
  EXPECT_THAT(texts({"JOB_ID=9", "PE_HOSTFILE=/etc/nodes"}),
              HasSubstr("--hosts=n1:4,n2:4 (PE_HOSTFILE) --launch-agent=qrsh -inherit %h"));
  EXPECT_THAT(AllocationPlace(Of({})).refusal.message(), HasSubstr("--hosts A,B"));
  EXPECT_THAT(texts({"LSB_JOBID=9", "LSB_MCPU_HOSTS=n1 4 n2 x"}), HasSubstr("--hosts=n1,n2 "));
  for (const char* half : {"JOB_ID=9", "PE_HOSTFILE=/etc/nodes"}) EXPECT_EQ(texts({half}), "");
}

TEST(AllocationPlace, NamesTheListThatCannotBeRead) {
  EXPECT_THAT(AllocationPlace(Of({"PBS_JOBID=4", "PBS_NODEFILE=/no/file"})).refusal.message(),
              HasSubstr("PBS_NODEFILE=/no/file: the hosts of PBS job 4 cannot be read there"));
  EXPECT_THAT(AllocationPlace(Of({"SLURM_JOB_ID=4", "SLURM_JOB_NODELIST=n[1"})).refusal.message(),
              HasSubstr("SLURM_JOB_NODELIST=n[1: the hosts of Slurm job 4"));
}

TEST(AllocationPlace, KnowsTheSlotsThatSomebodyAskedFor) {
  const auto slots = [](std::vector<std::string> more) {
    return AllocationPlace(Of(Batch(std::move(more)))).slots;
  };
  EXPECT_THAT(slots({"SLURM_TASKS_PER_NODE=8,1"}), ElementsAre(8, 1));
  EXPECT_THAT(slots({"SLURM_TASKS_PER_NODE=1(x2)"}), IsEmpty());
  EXPECT_THAT(slots({"SLURM_TASKS_PER_NODE=1(x2)", "SLURM_NTASKS=2"}), ElementsAre(1, 1));
  EXPECT_THAT(slots({"SLURM_TASKS_PER_NODE=1(x2)", "SLURM_NTASKS=2", "SLURM_PTY_PORT=5"}),
              IsEmpty());
}

TEST(FindSlurm, TakesNothingInAnInteractiveShell) {
  const auto shell = Step({"SLURM_PTY_PORT=4711"});
  EXPECT_TRUE(FindPlace(Of(shell), "slurm").refusal.ok());
  EXPECT_THAT(FindPlace(Of(shell), "auto").refusal.message(),
              HasSubstr("is a shell (SLURM_PTY_PORT: srun --pty) on 2 nodes: give --nnodes 1"));
  const auto alone = Step({"SLURM_PTY_PORT=4711", "SLURM_STEP_NUM_NODES=1"});
  EXPECT_FALSE(FindPlace(Of(alone), "auto").found());
  EXPECT_THAT(FindPlace(Of(alone), "auto").reason, HasSubstr("srun --pty"));
}

TEST(FindSlurm, RefusesTasksUnderPtyThatWouldEachRunByThemselves) {
  const auto place = [](const char* task, std::vector<int> ancestors) {
    Surroundings task_of_three =
        Of(Step({"SLURM_PTY_PORT=4711", "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_TASKS_PER_NODE=3",
                 "SLURM_STEP_NUM_TASKS=3", absl::StrCat("SLURM_PROCID=", task)}));
    task_of_three.ancestors = std::move(ancestors);
    return FindPlace(task_of_three, "auto");
  };
  const ClusterPlace first = place("0", {70, 1});
  EXPECT_THAT(first.refusal.message(), HasSubstr("leave --pty out, or write srun -N1 -n1 --pty "
                                                 "hlaunch --nproc-per-node 3"));
  EXPECT_FALSE(first.told_elsewhere);
  EXPECT_TRUE(place("1", {70, 1}).told_elsewhere);
  EXPECT_FALSE(place("0", {77, 70, 1}).found()) << "in the first task's shell";
  EXPECT_FALSE(place("1", {77, 70, 1}).refusal.ok()) << "no person is at the others'";
}

TEST(FindSlurm, TakesNothingOfAnotherProcessVariables) {
  const auto stray = Step({"SLURM_TASK_PID=4"});
  EXPECT_THAT(FindPlace(Of(stray, "laptop"), "auto").refusal.message(),
              HasSubstr("this host, laptop, is not its node n04: give --cluster slurm"));
  EXPECT_FALSE(FindPlace(Of(Step({"SLURM_TASK_PID=4", "SLURM_STEP_NUM_NODES=1", "SLURM_NODEID=0",
                                  "SLURM_STEP_NODELIST=n04"}),
                            "laptop"),
                         "auto")
                   .found());
  // In a container with its own pid namespace, and on a site whose node names are no host names.
  EXPECT_TRUE(FindPlace(Of(stray, "n04.cluster.org"), "auto").found());
  EXPECT_TRUE(FindPlace(Of(Step(), "laptop"), "auto").found());
}

TEST(FindSlurm, KnowsItsNodeInAContainerWithAnotherHostName) {
  Surroundings inside = Of(Step({"SLURM_TASK_PID=4", "SLURMD_NODENAME=n04"}), "container");
  EXPECT_FALSE(FindPlace(inside, "auto").refusal.ok()) << "no container: the variables were copied";
  inside.own_pids = true;
  EXPECT_EQ(Texts(FindPlace(inside, "auto"))[1], "--node-rank=1 (SLURM_NODEID)");
  inside.environment = Environment(Step({"SLURM_TASK_PID=4", "SLURMD_NODENAME=n03"}));
  EXPECT_FALSE(FindPlace(inside, "auto").refusal.ok());
}

TEST(FindSlurm, TakesSeveralTasksOfANodeForItsWorkers) {
  const ClusterPlace place =
      FindPlace(Of(Step({"SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=4", "SLURM_LOCALID=1",
                         "SLURM_GTIDS=3,4", "SLURM_CLUSTER_NAME=lab", "SLURM_GPUS_PER_TASK=1",
                         "SLURM_CPUS_PER_TASK=6", "CUDA_VISIBLE_DEVICES=1"})),
                "auto");
  ASSERT_TRUE(place.tasks.has_value()) << place.refusal;
  EXPECT_EQ(place.tasks->name, "slurm-lab-17.3-1");
  EXPECT_EQ(place.tasks->local, 1);
  EXPECT_EQ(place.tasks->count, 2);
  EXPECT_EQ(place.tasks->first_rank, 3);
  EXPECT_EQ(place.tasks->rank, 4);
  EXPECT_EQ(place.tasks->instead,
            "srun -N2 -n2 --ntasks-per-node=1 --gpus-per-task=3 --cpus-per-task=18 hlaunch "
            "--nproc-per-node 3 ...");
  EXPECT_THAT(Texts(place), testing::IsSupersetOf({"--node-rank=1 (SLURM_NODEID)",
                                                   "--nproc-per-node=2 (SLURM_STEP_TASKS_PER_NODE)",
                                                   "--devices=none (SLURM_STEP_TASKS_PER_NODE)",
                                                   "--bind=none (SLURM_STEP_TASKS_PER_NODE)"}));
  EXPECT_TRUE(place.told_elsewhere) << "the node's task 0 says what is wrong";
}

TEST(FindSlurm, TakesALoneTaskBesideANodeWithSeveralLikewise) {
  const ClusterPlace place = FindPlace(Of(Step({"SLURM_STEP_TASKS_PER_NODE=3,1", "SLURM_PROCID=3",
                                                "SLURM_LOCALID=0", "CUDA_VISIBLE_DEVICES=0,1"})),
                                       "auto");
  ASSERT_TRUE(place.tasks.has_value()) << place.refusal;
  EXPECT_EQ(place.tasks->count, 1);
  EXPECT_FALSE(place.told_elsewhere);
}

TEST(FindSlurm, RefusesTasksThatAreNotNumberedNodeByNode) {
  const auto refusal = [](std::vector<std::string> more) {
    more.emplace_back("SLURM_STEP_TASKS_PER_NODE=2(x2)");
    return std::string(FindPlace(Of(Step(std::move(more))), "auto").refusal.message());
  };
  EXPECT_EQ(refusal({"SLURM_PROCID=1", "SLURM_LOCALID=0", "SLURM_GTIDS=1,3"}),
            "Slurm does not number the tasks of step 17.3 node by node (SLURM_GTIDS=1,3 on its "
            "node 1), as ranks are: add --distribution=block, or write srun -N2 -n2 "
            "--ntasks-per-node=1 hlaunch --nproc-per-node 2 ...");
  EXPECT_THAT(refusal({"SLURM_LOCALID=2"}), HasSubstr("SLURM_LOCALID '2': expected 0 to 1"));
}

TEST(FindSlurm, RefusesWhatDoesNotFitTogether) {
  const auto refusal = [](std::vector<std::string> more) {
    return std::string(FindPlace(Of(Step(std::move(more))), "auto").refusal.message());
  };
  const char* way_out = "; give --nnodes, --node-rank and --rdzv-endpoint, or --cluster none";
  EXPECT_THAT(
      refusal({"SLURM_STEP_NODELIST=n[03-"}),
      HasSubstr(absl::StrCat("SLURM_STEP_NODELIST 'n[03-': 'n[03-': a [ without its ]", way_out)));
  EXPECT_THAT(refusal({"SLURM_STEP_NODELIST=n[03-05]"}),
              HasSubstr("names 3 hosts and SLURM_STEP_NUM_NODES says 2"));
  EXPECT_THAT(refusal({"SLURM_NODEID=2"}), HasSubstr("SLURM_NODEID '2': expected 0 to 1"));
  EXPECT_THAT(refusal({"SLURM_STEP_NUM_NODES=x"}), HasSubstr("SLURM_STEP_NUM_NODES 'x'"));
  EXPECT_THAT(refusal({"SLURM_STEP_TASKS_PER_NODE=1(x3)"}),
              HasSubstr("'1(x3)': counts 3 nodes and SLURM_STEP_NUM_NODES says 2"));
  EXPECT_THAT(refusal({"SLURM_STEP_TASKS_PER_NODE=1("}),
              HasSubstr("SLURM_STEP_TASKS_PER_NODE '1('"));
  EXPECT_THAT(refusal({"SLURM_HET_SIZE=2"}), HasSubstr("heterogeneous"));
}

// Slurm sorts the list of the step, and numbers its nodes part by part.
TEST(FindSlurm, NumbersTheNodesOfAHeterogeneousStepByItsParts) {
  const std::vector<std::string> parts = {"SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=n04",
                                          "SLURM_JOB_NODELIST_HET_GROUP_1=n[01-03]",
                                          "SLURMD_NODENAME=n03"};
  const ClusterPlace place = FindPlace(Of(Step(parts)), "auto");
  EXPECT_TRUE(place.refusal.ok()) << place.refusal;
  EXPECT_EQ(Texts(place)[2], absl::StrCat("--rdzv-endpoint=n04:", kPort, " (SLURM_STEP_NODELIST)"));
  std::vector<std::string> wrong = parts;
  wrong.back() = "SLURMD_NODENAME=n04";
  EXPECT_THAT(FindPlace(Of(Step(wrong)), "auto").refusal.message(),
              HasSubstr("do not tell the numbers of its nodes"));
  const std::vector<std::string> shell = {"SLURM_JOB_ID=17", "SLURM_HET_SIZE=2",
                                          "SLURM_JOB_NODELIST_HET_GROUP_0=n04",
                                          "SLURM_JOB_NODELIST_HET_GROUP_1=n[01-03]"};
  EXPECT_THAT(FindPlace(Of(shell), "auto").warnings,
              ElementsAre(HasSubstr("one node of the 4 of Slurm job 17")));
}

TEST(MeetingPort, DiffersForJobsAndStepsThatMayShareAHost) {
  std::set<uint16_t> ports;
  for (uint64_t job = 100000; job < 100100; ++job) {
    for (uint64_t step = 0; step < 10; ++step) ports.insert(MeetingPort(job, step));
  }
  EXPECT_EQ(ports.size(), 1000U);
  EXPECT_GE(*ports.begin(), 12000);
  EXPECT_LT(*ports.rbegin(), 32768);
  EXPECT_GE(MeetingPort(UINT64_MAX, UINT64_MAX), 12000);
}

std::vector<std::string> OpenMpi(std::vector<std::string> more = {}) {
  for (const char* entry :
       {"OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=1",
        "PMIX_NAMESPACE=1888944129",
        "OMPI_MCA_orte_hnp_uri=1888944128.0;tcp://127.0.0.1,10.0.0.7:40715;tcp6://[fd00::2]:1"}) {
    more.emplace_back(entry);
  }
  return more;
}

TEST(FindMpirun, MeetsWhereOpenMpisMpirunRuns) {
  const std::string port = absl::StrCat(MeetingPort(1888944129, 0));
  EXPECT_THAT(
      Texts(FindPlace(Of(OpenMpi()), "auto")),
      ElementsAre("--nnodes=3 (OMPI_COMM_WORLD_SIZE)", "--node-rank=2 (OMPI_COMM_WORLD_RANK)",
                  absl::StrCat("--rdzv-endpoint=10.0.0.7:", port, " (OMPI_MCA_orte_hnp_uri)"),
                  "--rdzv-id=1888944129 (PMIX_NAMESPACE)"));
}

TEST(FindMpirun, MeetsAtTheFirstOfAllPlacesThatAreNamed) {
  const auto endpoints = [](std::vector<std::string> entries) {
    std::vector<std::string> found = Texts(FindPlace(Of(std::move(entries)), "auto"));
    std::erase_if(found, [](const std::string& text) { return text[2] != 'r'; });
    return found;
  };
  std::vector<std::string> all = {"OMPI_COMM_WORLD_SIZE=3",
                                  "OMPI_COMM_WORLD_RANK=2",
                                  "OMPI_COMM_WORLD_LOCAL_SIZE=1",
                                  "MASTER_PORT=7",
                                  "PMIX_NAMESPACE=prterun-login-4711@1",
                                  "LSB_MCPU_HOSTS=a 4 b 4",
                                  "OMPI_MCA_orte_hnp_uri=1.0;tcp://10.0.0.7:40715",
                                  "MASTER_ADDR=n1"};
  for (const char* first : {"n1:7 (MASTER_ADDR)", "10.0.0.7:7 (OMPI_MCA_orte_hnp_uri)",
                            "a:7 (the scheduler's list of hosts)", "login:7 (PMIX_NAMESPACE)"}) {
    EXPECT_THAT(endpoints(all),
                ElementsAre(absl::StrCat("--rdzv-endpoint=", first), HasSubstr("--rdzv-id=")));
    all.pop_back();
  }
}

TEST(FindMpirun, RefusesNumbersThatDoNotFitTogether) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"PMI_SIZE=2", "PMI_RANK=2", "MPI_LOCALNRANKS=1"},
                                             {"PMI_SIZE=0", "PMI_RANK=0", "MPI_LOCALNRANKS=1"},
                                             {"PMI_SIZE=2", "PMI_RANK=0", "MPI_LOCALNRANKS=0"}}) {
    EXPECT_THAT(FindPlace(Of(wrong), "auto").refusal.message(),
                HasSubstr("PMI_SIZE, PMI_RANK and MPI_LOCALNRANKS do not fit together"))
        << wrong[0] << wrong[1] << wrong[2];
  }
}

TEST(FindMpirun, KnowsHydraAndItsLackOfAnAddress) {
  const ClusterPlace place =
      FindPlace(Of({"PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALNRANKS=1", "MPI_LOCALRANKID=0"}), "auto");
  EXPECT_THAT(Texts(place), ElementsAre("--nnodes=2 (PMI_SIZE)", "--node-rank=1 (PMI_RANK)"));
  EXPECT_THAT(place.no_endpoint, HasSubstr("add --rdzv-endpoint HOST"));
}

TEST(FindMpirun, MeetsWhereTheSchedulerAroundItBegins) {
  Root root;
  root.Write("/nodes", "n1\nn1\nn2\n");
  const std::vector<std::string> hydra = {"PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALNRANKS=1"};
  const auto endpoint = [&](const char* more) {
    auto entries = hydra;
    entries.emplace_back(more);
    return Texts(FindPlace(Of(entries, "here", root.path()), "auto"))[2];
  };
  EXPECT_EQ(endpoint("PBS_NODEFILE=/nodes"),
            "--rdzv-endpoint=n1:29400 (the scheduler's list of hosts)");
  EXPECT_EQ(endpoint("LSB_MCPU_HOSTS=a 4 b 4"),
            "--rdzv-endpoint=a:29400 (the scheduler's list of hosts)");
  EXPECT_EQ(endpoint("SLURM_JOB_NODELIST=n[07-09]"),
            "--rdzv-endpoint=n07:29400 (the scheduler's list of hosts)");
  EXPECT_EQ(endpoint("PMIX_NAMESPACE=prterun-login-1-4711@1"),
            "--rdzv-endpoint=login-1:29400 (PMIX_NAMESPACE)");
}

TEST(FindMpirun, KnowsMvapich) {
  const std::vector<std::string> entries = {"MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_RANK=1",
                                            "MV2_COMM_WORLD_LOCAL_SIZE=1"};
  EXPECT_THAT(
      Texts(FindPlace(Of(entries), "auto")),
      ElementsAre("--nnodes=2 (MV2_COMM_WORLD_SIZE)", "--node-rank=1 (MV2_COMM_WORLD_RANK)"));
}

TEST(FindMpirun, TakesSeveralProcessesOfANodeForItsWorkers) {
  const ClusterPlace place =
      FindPlace(Of(OpenMpi({"OMPI_COMM_WORLD_SIZE=6", "OMPI_COMM_WORLD_RANK=4",
                            "OMPI_COMM_WORLD_LOCAL_SIZE=3", "OMPI_COMM_WORLD_LOCAL_RANK=1"})),
                "auto");
  ASSERT_TRUE(place.tasks.has_value()) << place.refusal;
  EXPECT_EQ(place.tasks->name, "mpirun-1888944129");
  EXPECT_EQ(place.tasks->first_rank, 3);
  EXPECT_THAT(Texts(place), testing::IsSupersetOf({"--nnodes=2 (OMPI_COMM_WORLD_SIZE)",
                                                   "--node-rank=1 (OMPI_COMM_WORLD_RANK)",
                                                   "--nproc-per-node=3 "
                                                   "(OMPI_COMM_WORLD_LOCAL_SIZE)"}));
}

// The ancestors of the process are 77 and 70.
TEST(FindMpirun, KnowsHydrasProcessesOfANodeByTheProxyThatStartedThem) {
  for (const char* program : {"hydra_pmi_proxy", "pmi_proxy", "bash"}) {
    Root root;
    root.Write("/proc/77/comm", "sh\n");
    root.Write("/proc/70/comm", absl::StrCat(program, "\n"));
    const ClusterPlace place =
        FindPlace(Of({"PMI_SIZE=4", "PMI_RANK=2", "MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=0"}, "here",
                     root.path()),
                  "auto");
    EXPECT_EQ(place.tasks.has_value(), program[0] != 'b') << program;
    if (!place.tasks) continue;
    EXPECT_EQ(place.tasks->name, "hydra-70");
    EXPECT_FALSE(place.told_elsewhere);
    EXPECT_THAT(Texts(place), testing::Contains("--node-rank=1 (PMI_RANK)"));
  }
}

TEST(FindMpirun, NamesAMpirunByTheEndOfALongNamespace) {
  const ClusterPlace place = FindPlace(
      Of(OpenMpi({"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0",
                  "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                  absl::StrCat("PMIX_NAMESPACE=prterun-", std::string(60, 'n'), "-4711@1")})),
      "auto");
  ASSERT_TRUE(place.tasks.has_value()) << place.refusal;
  EXPECT_EQ(place.tasks->name, absl::StrCat("mpirun-", std::string(41, 'n'), "-4711@1"));
}

TEST(FindMpirun, RefusesProcessesOfWhichItCannotBeToldWhoTheyAre) {
  const auto refusal = [](std::vector<std::string> entries) {
    return std::string(FindPlace(Of(std::move(entries)), "auto").refusal.message());
  };
  EXPECT_THAT(refusal(OpenMpi({"OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0"})),
              HasSubstr("write mpirun -N 1 hlaunch --nproc-per-node 2"))
      << "three processes, and two of them here";
  for (const auto& [rank, local] : {std::pair("3", "3"), {"2", "x"}}) {
    EXPECT_THAT(refusal(OpenMpi({"OMPI_COMM_WORLD_SIZE=6", "OMPI_COMM_WORLD_LOCAL_SIZE=3",
                                 absl::StrCat("OMPI_COMM_WORLD_RANK=", rank),
                                 absl::StrCat("OMPI_COMM_WORLD_LOCAL_RANK=", local)})),
                HasSubstr("write mpirun -N 1"))
        << local << " is no number of three processes";
  }
  EXPECT_THAT(refusal(OpenMpi({"OMPI_COMM_WORLD_SIZE=6", "OMPI_COMM_WORLD_RANK=4",
                               "OMPI_COMM_WORLD_LOCAL_SIZE=3", "OMPI_COMM_WORLD_LOCAL_RANK=0"})),
              HasSubstr("write mpirun -N 1"))
      << "rank 4 begins no node of three";
  EXPECT_THAT(refusal({"PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=1"}),
              HasSubstr("write mpirun -ppn 1 hlaunch --nproc-per-node 2"));
}

TEST(FindMpirun, LeavesSrunsOwnTasksToSlurm) {
  auto entries =
      Step({"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
  EXPECT_EQ(FindPlace(Of(entries), "auto").cluster, "slurm");
  // Open MPI's daemon is its own step, with other numbers.
  for (const char* rank : {"1", "2", "0"}) {
    entries = Step({absl::StrCat("OMPI_COMM_WORLD_SIZE=", rank[0] == '0' ? "2" : "3"),
                    absl::StrCat("OMPI_COMM_WORLD_RANK=", rank), "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
    EXPECT_EQ(FindPlace(Of(entries), "auto").cluster, "mpirun") << rank;
  }
}

TEST(FindKubernetes, ReinterpretsThePodsRankOfAPyTorchJob) {
  const std::vector<std::string> entries = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "MASTER_ADDR=a-0",
                                            "MASTER_PORT=23456", "WORLD_SIZE=4", "RANK=3"};
  EXPECT_THAT(Texts(FindPlace(Of(entries), "auto")),
              ElementsAre("--nnodes=4 (WORLD_SIZE)", "--node-rank=3 (RANK)",
                          "--master-addr=a-0 (MASTER_ADDR)", "--master-port=23456 (MASTER_PORT)"));
  for (const char* of_a_worker : {"LOCAL_RANK=0", "TORCHELASTIC_RUN_ID=none"}) {
    auto worker = entries;
    worker.emplace_back(of_a_worker);
    EXPECT_FALSE(FindPlace(Of(worker), "auto").found()) << of_a_worker;
  }
  EXPECT_EQ(Texts(FindPlace(Of({"KUBERNETES_SERVICE_HOST=1", "MASTER_ADDR=localhost",
                                "MASTER_PORT=1", "WORLD_SIZE=2", "RANK=0"},
                               "job-master-0"),
                            "auto"))[2],
            "--master-addr=job-master-0 (MASTER_ADDR)");
}

TEST(FindKubernetes, TakesLoopbackForItsOwnNameOnTheFirstPodAlone) {
  const auto master = [](const char* address, const char* rank) {
    return Texts(FindPlace(Of({"KUBERNETES_SERVICE_HOST=1", absl::StrCat("MASTER_ADDR=", address),
                               "MASTER_PORT=1", "WORLD_SIZE=2", absl::StrCat("RANK=", rank)},
                              "pod"),
                           "auto"))[2];
  };
  EXPECT_EQ(master("127.0.0.1", "0"), "--master-addr=pod (MASTER_ADDR)");
  EXPECT_EQ(master("a-0", "0"), "--master-addr=a-0 (MASTER_ADDR)");
  EXPECT_EQ(master("localhost", "1"), "--master-addr=localhost (MASTER_ADDR)");
}

TEST(FindKubernetes, RefusesWhatIsNoPodsNumber) {
  const auto refusal = [](std::vector<std::string> entries) {
    return std::string(FindPlace(Of(std::move(entries)), "auto").refusal.message());
  };
  for (const auto& [size, rank] : {std::pair("2", "2"), {"0", "0"}, {"x", "0"}, {"2", "-1"}}) {
    EXPECT_THAT(refusal({"KUBERNETES_SERVICE_HOST=1", "MASTER_ADDR=a", "MASTER_PORT=1",
                         absl::StrCat("WORLD_SIZE=", size), absl::StrCat("RANK=", rank)}),
                HasSubstr(absl::StrCat("RANK '", rank, "' of WORLD_SIZE '", size, "'")));
  }
  for (const char* index : {"x", "-1", "65536"}) {
    EXPECT_THAT(refusal({absl::StrCat("JOB_COMPLETION_INDEX=", index)}),
                HasSubstr(absl::StrCat("JOB_COMPLETION_INDEX '", index, "': expected a number")));
  }
  EXPECT_EQ(FindPlace(Of({}), "kubernetes").refusal.message(),
            "--cluster kubernetes: KUBERNETES_SERVICE_HOST or JOB_COMPLETION_INDEX is not set "
            "here");
}

TEST(FindKubernetes, FindsTheFirstPodByTheHeadlessService) {
  Root root;
  root.Write("/etc/hosts",
             "127.0.0.1 localhost\n10.1.0.7\tweb-3.svc.ns.svc.cluster.local\tweb-3\n");
  const std::vector<std::string> endpoint = {
      "--rdzv-endpoint=web-0.svc.ns.svc.cluster.local:29400 (/etc/hosts)",
      "--rdzv-id=web (the pod's name)"};
  EXPECT_THAT(Texts(FindPlace(
                  Of({"KUBERNETES_SERVICE_HOST=1", "JOB_COMPLETION_INDEX=3"}, "web-3", root.path()),
                  "auto")),
              ElementsAre("--node-rank=3 (JOB_COMPLETION_INDEX)", endpoint[0], endpoint[1]));
  EXPECT_THAT(Texts(FindPlace(Of({"KUBERNETES_SERVICE_HOST=1"}, "web-3", root.path()), "auto")),
              ElementsAre("--node-rank=3 (the pod's name)", endpoint[0], endpoint[1]));
  const ClusterPlace other =
      FindPlace(Of({"JOB_COMPLETION_INDEX=2"}, "web-3", root.path()), "auto");
  EXPECT_THAT(Texts(other), ElementsAre("--node-rank=2 (JOB_COMPLETION_INDEX)"));
  EXPECT_THAT(other.no_endpoint, HasSubstr("make a headless Service"));
  root.Write("/etc/hosts", "10.1.0.7 web-0.svc.ns.svc.cluster.local web-0\n");
  for (const char* entry : {"JOB_COMPLETION_INDEX=0", "KUBERNETES_SERVICE_HOST=1"}) {
    EXPECT_THAT(Texts(FindPlace(Of({entry}, "web-0", root.path()), "auto")),
                ElementsAre(HasSubstr("--node-rank=0 "), endpoint[0], endpoint[1]));
  }
}

TEST(FindKubernetes, TakesNoPodOfADeploymentForOneOfASet) {
  EXPECT_FALSE(FindPlace(Of({"KUBERNETES_SERVICE_HOST=1"}, "web-5d8f7-24567"), "auto").found());
}

TEST(FindKubernetes, LeavesTrainersOwnVariablesToTheOptions) {
  EXPECT_THAT(
      FindPlace(Of({"KUBERNETES_SERVICE_HOST=1", "PET_NNODES=2", "JOB_COMPLETION_INDEX=1"}), "auto")
          .reason,
      HasSubstr("PET_*"));
}

TEST(FindPbs, TellsATaskFromTheJobScript) {
  Root root;
  root.Write("/nodes", "n1.org\nn1.org\nn2.org\nn2.org\n");
  const auto pbs = [&root](std::vector<std::string> more, const char* host) {
    more.insert(more.end(), {"PBS_JOBID=4711.server", "PBS_NODEFILE=/nodes"});
    return FindPlace(Of(more, host, root.path()), "auto");
  };
  const ClusterPlace script = pbs({"PBS_NODENUM=0", "PBS_TASKNUM=1"}, "n1");
  EXPECT_FALSE(script.found());
  EXPECT_THAT(script.warnings, ElementsAre(HasSubstr("pbsdsh -- hlaunch")));
  EXPECT_THAT(
      Texts(pbs({"PBS_NODENUM=1", "PBS_TASKNUM=1"}, "n2")),
      ElementsAre("--nnodes=2 (PBS_NODEFILE)", "--node-rank=1 (this host's name)",
                  absl::StrCat("--rdzv-endpoint=n1.org:", MeetingPort(4711, 0), " (PBS_NODEFILE)"),
                  "--rdzv-id=4711.server (PBS_JOBID)", "--nproc-per-node=2 (PBS_NODEFILE)"));
  EXPECT_EQ(Texts(pbs({"PBS_NODENUM=1", "PBS_TASKNUM=2"}, "x"))[1], "--node-rank=1 (PBS_NODENUM)");
  EXPECT_EQ(Texts(pbs({"PBS_NODENUM=0", "PBS_TASKNUM=2"}, "n1"))[1],
            "--node-rank=0 (this host's name)");
  EXPECT_THAT(pbs({"PBS_NODENUM=2", "PBS_TASKNUM=2"}, "x").refusal.message(),
              HasSubstr("PBS_NODEFILE names 2 hosts, and which of them x is cannot be told by "
                        "PBS_NODENUM"));
  root.Write("/nodes", "n1\nn1\n");
  EXPECT_THAT(pbs({"PBS_NODENUM=0", "PBS_TASKNUM=1"}, "n1").warnings, IsEmpty());
  EXPECT_EQ(Texts(pbs({"PBS_TASKNUM=2"}, "n1.org"))[1], "--node-rank=0 (this host's name)");
  EXPECT_EQ(Texts(pbs({"PBS_TASKNUM=2", "CUDA_VISIBLE_DEVICES=0,1,2"}, "n1"))[4],
            "--nproc-per-node=3 (CUDA_VISIBLE_DEVICES)");
}

TEST(FindPbs, TakesTheScriptForATaskWhereItIsTold) {
  Root root;
  root.Write("/nodes", "n1\nn2\n");
  EXPECT_EQ(
      Texts(FindPlace(Of({"PBS_JOBID=4", "PBS_NODEFILE=/nodes", "PBS_NODENUM=0", "PBS_TASKNUM=1"},
                         "n1", root.path()),
                      "pbs"))[1],
      "--node-rank=0 (this host's name)");
}

TEST(FindLsf, ReadsTheFileWhereTheVariableIsMissing) {
  Root root;
  root.Write("/hosts", "n1\nn1\nn2\n");
  EXPECT_THAT(FindPlace(Of({"LSB_JOBID=9", "LSB_DJOB_HOSTFILE=/hosts"}, "n2", root.path()), "auto")
                  .refusal.message(),
              HasSubstr("one node of the 2 of LSF job 9"));
}

TEST(FindLsf, NeedsAWordOrJsrun) {
  const std::vector<std::string> job = {"LSB_JOBID=9", "LSB_MCPU_HOSTS=n1 4 n2 2"};
  EXPECT_THAT(FindPlace(Of(job, "n2"), "auto").refusal.message(),
              HasSubstr("one node of the 2 of LSF job 9"));
  EXPECT_FALSE(FindPlace(Of({"LSB_JOBID=9", "LSB_MCPU_HOSTS=n1 4"}, "n1"), "auto").found());
  EXPECT_THAT(
      Texts(FindPlace(Of(job, "n2"), "lsf")),
      ElementsAre("--nnodes=2 (LSB_MCPU_HOSTS)", "--node-rank=1 (this host's name)",
                  absl::StrCat("--rdzv-endpoint=n1:", MeetingPort(9, 0), " (LSB_MCPU_HOSTS)"),
                  "--rdzv-id=9 (LSB_JOBID)", "--nproc-per-node=2 (LSB_MCPU_HOSTS)"));
  // Jobs start on a launch node, which has no task.
  const ClusterPlace jsrun = FindPlace(
      Of({"LSB_JOBID=9", "LSB_MCPU_HOSTS=batch 1 n1 42 n2 42", "JSM_NAMESPACE_SIZE=2"}, "n2"),
      "auto");
  EXPECT_THAT(Texts(jsrun)[1], "--node-rank=1 (this host's name)");
  EXPECT_THAT(FindPlace(Of(job, "other"), "lsf").refusal.message(), HasSubstr("names 2 hosts"));
  std::vector<std::string> several = job;
  several.insert(several.end(), {"JSM_NAMESPACE_SIZE=4", "JSM_NAMESPACE_LOCAL_SIZE=2"});
  EXPECT_THAT(FindPlace(Of(several, "n2"), "auto").refusal.message(),
              HasSubstr("jsrun started 2 tasks on this host"));
}

// IBM's Open MPI also gives jsrun's tasks the variables of mpirun.
TEST(FindLsf, IsAskedBeforeTheMpirunThatJsrunLooksLike) {
  const std::vector<std::string> task = {"LSB_JOBID=9",
                                         "LSB_MCPU_HOSTS=batch 1 n1 42 n2 42",
                                         "JSM_NAMESPACE_SIZE=2",
                                         "OMPI_COMM_WORLD_SIZE=2",
                                         "OMPI_COMM_WORLD_RANK=1",
                                         "OMPI_COMM_WORLD_LOCAL_SIZE=1"};
  const ClusterPlace place = FindPlace(Of(task, "n2"), "auto");
  EXPECT_EQ(place.cluster, "lsf");
  EXPECT_THAT(Texts(place)[2], HasSubstr("--rdzv-endpoint=n1:"));
  EXPECT_EQ(FindPlace(Of(task, "n2"), "mpirun").cluster, "mpirun");
}

TEST(FindSageMaker, SortsTheHosts) {
  EXPECT_THAT(
      Texts(FindPlace(
          Of({"SM_HOSTS=[\"algo-2\",\"algo-1\"]", "SM_CURRENT_HOST=algo-2", "SM_NUM_GPUS=8"}),
          "auto")),
      ElementsAre("--nnodes=2 (SM_HOSTS)", "--node-rank=1 (SM_CURRENT_HOST)",
                  "--rdzv-endpoint=algo-1:7777 (SM_HOSTS)", "--nproc-per-node=8 (SM_NUM_GPUS)"));
  EXPECT_THAT(
      Texts(FindPlace(Of({"SM_HOSTS=[\"a\",7]", "SM_CURRENT_HOST=a", "SM_NUM_GPUS=0"}), "auto")),
      ElementsAre("--nnodes=1 (SM_HOSTS)", "--node-rank=0 (SM_CURRENT_HOST)",
                  "--rdzv-endpoint=a:7777 (SM_HOSTS)"));
  for (const char* half : {"SM_HOSTS=[\"a\"]", "SM_CURRENT_HOST=a"}) {
    EXPECT_TRUE(FindPlace(Of({half}), "auto").refusal.ok()) << half;
  }
  EXPECT_THAT(FindPlace(Of({"SM_HOSTS=[\"a\"", "SM_CURRENT_HOST=b"}), "auto").refusal.message(),
              HasSubstr("SM_CURRENT_HOST 'b' is not in SM_HOSTS"));
}

TEST(FindPbs, KnowsPals) {
  Root root;
  root.Write("/nodes", "x1\nx1\nx2\nx2\n");
  const auto pals = [&root](std::vector<std::string> more) {
    more.insert(more.end(), {"PBS_JOBID=8.s", "PBS_NODEFILE=/nodes", "PALS_RANKID=1",
                             "PALS_NODEID=1", "PALS_LOCAL_RANKID=0"});
    return FindPlace(Of(more, "x2", root.path()), "auto");
  };
  EXPECT_EQ(Texts(pals({}))[1], "--node-rank=1 (PALS_NODEID)");
  EXPECT_EQ(Texts(pals({"PALS_LOCAL_SIZE=1"}))[1], "--node-rank=1 (PALS_NODEID)");
  for (const char* several : {"PALS_LOCAL_RANKID=3", "PALS_LOCAL_SIZE=2"}) {
    EXPECT_THAT(pals({several}).refusal.message(), HasSubstr("mpiexec --ppn 1")) << several;
  }
}

TEST(FindSge, NeedsAWord) {
  Root root;
  root.Write("/hosts", "n1 8 all.q@n1 UNDEFINED\nn2 4 all.q@n2 UNDEFINED\n");
  const auto place = Of({"JOB_ID=12", "PE_HOSTFILE=/hosts", "NHOSTS=2"}, "n2", root.path());
  EXPECT_THAT(FindPlace(place, "auto").refusal.message(), HasSubstr("or qrsh -inherit HOST"));
  for (const char* half : {"JOB_ID=12", "PE_HOSTFILE=/hosts"}) {
    EXPECT_TRUE(FindPlace(Of({half}, "n2", root.path()), "auto").refusal.ok()) << half;
  }
  EXPECT_THAT(Texts(FindPlace(place, "sge")),
              ElementsAre("--nnodes=2 (PE_HOSTFILE)", "--node-rank=1 (this host's name)",
                          absl::StrCat("--rdzv-endpoint=n1:", MeetingPort(12, 0), " (PE_HOSTFILE)"),
                          "--rdzv-id=12 (JOB_ID)", "--nproc-per-node=4 (PE_HOSTFILE)"));
}

TEST(FindVertex, CountsTheHostsOfAllPools) {
  const std::string spec =
      R"({"cluster":{"workerpool0":["a-0:2222"],"workerpool1":["b-0:2222","b-1:2222"]},)"
      R"("environment":"cloud","task":{"type":"workerpool1","index":1}})";
  EXPECT_THAT(
      Texts(FindPlace(Of({"CLUSTER_SPEC=" + spec, "CLOUD_ML_JOB_ID=77"}), "auto")),
      ElementsAre("--nnodes=3 (CLUSTER_SPEC)", "--node-rank=2 (CLUSTER_SPEC)",
                  "--rdzv-endpoint=a-0:2222 (CLUSTER_SPEC)", "--rdzv-id=77 (CLOUD_ML_JOB_ID)"));
  EXPECT_EQ(Texts(FindPlace(Of({R"(CLUSTER_SPEC={"cluster":{"p":["a:2"]},)"
                                R"("task":{"type":"p","index":0}})"}),
                            "auto"))[1],
            "--node-rank=0 (CLUSTER_SPEC)");
  for (const char* wrong :
       {"CLUSTER_SPEC={", "CLUSTER_SPEC=[]",
        R"(CLUSTER_SPEC={"cluster":{"p":["a:x"]},"task":{"type":"p","index":0}})",
        R"(CLUSTER_SPEC={"cluster":{"p":["a:1"]},"task":{"type":"p","index":1}})",
        R"(CLUSTER_SPEC={"cluster":{"p":["a:1"]},"task":{"type":"q","index":0}})",
        R"(CLUSTER_SPEC={"cluster":[],"task":1})",
        R"(CLUSTER_SPEC={"cluster":{"p":[1]},"task":{"type":"p","index":0}})"}) {
    EXPECT_THAT(FindPlace(Of({wrong}), "auto").refusal.message(),
                HasSubstr("does not say which of its hosts this is"))
        << wrong;
  }
}

// A system that only its variables describe: the second of two nodes.
struct Described {
  const char* word;
  std::vector<std::string> entries;
  std::vector<std::string> texts;
};

TEST(FindByRow, FindsTheSecondNodeOfEachSystem) {
  const std::vector<Described> systems = {
      {"flux",
       {"FLUX_JOB_ID=f1", "FLUX_TASK_RANK=1", "FLUX_JOB_NNODES=2", "FLUX_JOB_SIZE=2"},
       {"--nnodes=2 (FLUX_JOB_NNODES)", "--node-rank=1 (FLUX_TASK_RANK)",
        "--rdzv-id=f1 (FLUX_JOB_ID)"}},
      {"aws-batch",
       {"AWS_BATCH_JOB_NUM_NODES=2", "AWS_BATCH_JOB_NODE_INDEX=1",
        "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.1"},
       {"--nnodes=2 (AWS_BATCH_JOB_NUM_NODES)", "--node-rank=1 (AWS_BATCH_JOB_NODE_INDEX)",
        "--rdzv-endpoint=10.0.0.1:29400 (AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS)"}},
      {"skypilot",
       {"SKYPILOT_NUM_NODES=2", "SKYPILOT_NODE_RANK=1", "SKYPILOT_NODE_IPS=10.0.0.1\n10.0.0.2",
        "SKYPILOT_NUM_GPUS_PER_NODE=8"},
       {"--nnodes=2 (SKYPILOT_NUM_NODES)", "--node-rank=1 (SKYPILOT_NODE_RANK)",
        "--rdzv-endpoint=10.0.0.1:29400 (SKYPILOT_NODE_IPS)",
        "--nproc-per-node=8 (SKYPILOT_NUM_GPUS_PER_NODE)"}},
      {"skypilot",
       {"SKYPILOT_NUM_NODES=2", "SKYPILOT_NODE_RANK=1"},
       {"--nnodes=2 (SKYPILOT_NUM_NODES)", "--node-rank=1 (SKYPILOT_NODE_RANK)"}},
      {"dstack",
       {"DSTACK_NODES_NUM=2", "DSTACK_NODE_RANK=1", "DSTACK_MASTER_NODE_IP=10.0.0.1",
        "DSTACK_GPUS_PER_NODE=0"},
       {"--nnodes=2 (DSTACK_NODES_NUM)", "--node-rank=1 (DSTACK_NODE_RANK)",
        "--rdzv-endpoint=10.0.0.1:29400 (DSTACK_MASTER_NODE_IP)"}},
      {"beaker",
       {"BEAKER_REPLICA_COUNT=2", "BEAKER_REPLICA_RANK=1", "BEAKER_ASSIGNED_GPU_COUNT=8",
        "BEAKER_LEADER_REPLICA_HOSTNAME=node0.example", "BEAKER_LEADER_REPLICA_JOB_ID=01J"},
       {"--nnodes=2 (BEAKER_REPLICA_COUNT)", "--node-rank=1 (BEAKER_REPLICA_RANK)",
        "--rdzv-endpoint=node0.example:29400 (BEAKER_LEADER_REPLICA_HOSTNAME)",
        "--rdzv-id=01J (BEAKER_LEADER_REPLICA_JOB_ID)",
        "--nproc-per-node=8 (BEAKER_ASSIGNED_GPU_COUNT)"}},
      {"ngc",
       {"NGC_ARRAY_SIZE=2", "NGC_ARRAY_INDEX=1", "NGC_MASTER_ADDR=10.0.0.1", "NGC_JOB_ID=5"},
       {"--nnodes=2 (NGC_ARRAY_SIZE)", "--node-rank=1 (NGC_ARRAY_INDEX)",
        "--rdzv-endpoint=10.0.0.1:29400 (NGC_MASTER_ADDR)", "--rdzv-id=5 (NGC_JOB_ID)"}},
      {"leaderworkerset",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "LWS_GROUP_SIZE=2", "LWS_WORKER_INDEX=1",
        "LWS_LEADER_ADDRESS=lws-0.lws.default"},
       {"--nnodes=2 (LWS_GROUP_SIZE)", "--node-rank=1 (LWS_WORKER_INDEX)",
        "--rdzv-endpoint=lws-0.lws.default:29400 (LWS_LEADER_ADDRESS)"}},
      {"volcano",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "VC_TASK_INDEX=1", "VC_WORKER_HOSTS=w-0.j,w-1.j"},
       {"--nnodes=2 (VC_WORKER_HOSTS)", "--node-rank=1 (VC_TASK_INDEX)",
        "--rdzv-endpoint=w-0.j:29400 (VC_WORKER_HOSTS)"}},
      {"volcano",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "VC_TASK_INDEX=0", "VC_WORKER_HOSTS=w-0.j",
        "MASTER_ADDR=m-0.j", "MASTER_PORT=23456", "RANK=1", "WORLD_SIZE=2"},
       {"--nnodes=2 (WORLD_SIZE)", "--node-rank=1 (RANK)",
        "--rdzv-endpoint=m-0.j:23456 (MASTER_ADDR)"}},
      {"condor",
       {"_CONDOR_PROCNO=1", "_CONDOR_NPROCS=2"},
       {"--nnodes=2 (_CONDOR_NPROCS)", "--node-rank=1 (_CONDOR_PROCNO)"}},
      {"env",
       {"MASTER_ADDR=n1", "MASTER_PORT=777", "NODE_RANK=1", "NNODES=2", "WORLD_SIZE=16"},
       {"--nnodes=2 (NNODES)", "--node-rank=1 (NODE_RANK)", "--master-addr=n1 (MASTER_ADDR)",
        "--master-port=777 (MASTER_PORT)"}},
      {"env",
       {"MASTER_ADDR=n1", "NODE_RANK=1", "AZUREML_NODE_COUNT=2", "WORLD_SIZE=2", "RANK=1"},
       {"--nnodes=2 (AZUREML_NODE_COUNT)", "--node-rank=1 (NODE_RANK)",
        "--master-addr=n1 (MASTER_ADDR)"}},
  };
  for (const Described& system : systems) {
    const ClusterPlace place = FindPlace(Of(system.entries), "auto");
    EXPECT_EQ(place.cluster, system.word);
    EXPECT_TRUE(place.refusal.ok()) << place.refusal;
    EXPECT_EQ(Texts(place), system.texts) << system.word;
    EXPECT_EQ(Texts(FindPlace(Of(system.entries), system.word)), system.texts) << system.word;
  }
}

TEST(FindByRow, TheFirstNodeOfAwsBatchIsTheOneWithoutAnAddress) {
  EXPECT_EQ(
      Texts(FindPlace(Of({"AWS_BATCH_JOB_NUM_NODES=2", "AWS_BATCH_JOB_NODE_INDEX=0"}), "auto"))[2],
      "--rdzv-endpoint=here:29400 (AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS)");
}

TEST(FindByRow, RefusesSeveralProcessesOnANode) {
  EXPECT_THAT(
      FindPlace(Of({"FLUX_JOB_ID=f1", "FLUX_TASK_RANK=1", "FLUX_JOB_NNODES=2", "FLUX_JOB_SIZE=16"}),
                "auto")
          .refusal.message(),
      HasSubstr("16 processes (FLUX_JOB_SIZE) were started on 2 nodes"));
}

TEST(FindByRow, RefusesWhatDoesNotSayWhichNodeThisIs) {
  EXPECT_THAT(
      FindPlace(Of({"VC_TASK_INDEX=0", "VC_MASTER_HOSTS=m-0", "VC_WORKER_HOSTS=w-0,w-1"}), "auto")
          .refusal.message(),
      HasSubstr("no variable says which one"));
  EXPECT_THAT(FindPlace(Of({"NGC_ARRAY_SIZE=2", "NGC_ARRAY_INDEX=2"}), "auto").refusal.message(),
              HasSubstr("NGC_ARRAY_INDEX '2' of NGC_ARRAY_SIZE '2' is no node's number"));
}

TEST(FindByRow, CountsAListOfAsManyHostsAsAJobMayHave) {
  const auto texts = [](size_t hosts) {
    const std::vector<std::string> names(hosts, "w");
    return Texts(FindPlace(
        Of({"VC_TASK_INDEX=1", absl::StrCat("VC_WORKER_HOSTS=", absl::StrJoin(names, ","))}),
        "auto"));
  };
  EXPECT_EQ(texts(kMaxNodes)[0], "--nnodes=65536 (VC_WORKER_HOSTS)");
  EXPECT_EQ(texts(kMaxNodes + 1)[0], "--node-rank=1 (VC_TASK_INDEX)");
}

TEST(FindByRow, OfUnknownManyOnlyTheFirstMayBeAlone) {
  const ClusterPlace first = FindPlace(Of({"NOMAD_ALLOC_ID=a", "NOMAD_ALLOC_INDEX=0"}), "auto");
  EXPECT_THAT(first.no_nnodes, HasSubstr("add --nnodes N"));
  EXPECT_EQ(first.needs_nnodes, "");
  EXPECT_THAT(FindPlace(Of({"NOMAD_ALLOC_ID=a", "NOMAD_ALLOC_INDEX=1"}), "auto").needs_nnodes,
              HasSubstr("this is an allocation of a Nomad group, number 1 (NOMAD_ALLOC_INDEX)"));
}

TEST(FindPlace, StartsNoJobInEachRankOfAJob) {
  const auto place = [](std::vector<std::string> entries) {
    return FindPlace(Of(std::move(entries)), "auto", {});
  };
  const ClusterPlace within = place({"HLAUNCH_JOB_ID=a", "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0"});
  EXPECT_THAT(within.refusal.message(), HasSubstr("this is rank 0 of 2 of a job of hlaunch"));
  EXPECT_THAT(within.refusal.message(), HasSubstr("--per-node"));
  EXPECT_FALSE(within.told_elsewhere);
  EXPECT_TRUE(place({"HLAUNCH_JOB_ID=a", "RANK=1", "WORLD_SIZE=2"}).told_elsewhere);
  EXPECT_TRUE(place({"HLAUNCH_JOB_ID=a", "RANK=0", "WORLD_SIZE=1"}).refusal.ok());
  EXPECT_TRUE(place({"HLAUNCH_JOB_ID=a"}).refusal.ok()) << "--per-node names no rank";
  const ClusterPlace torchs =
      place({"TORCHELASTIC_RUN_ID=none", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1"});
  EXPECT_THAT(torchs.refusal.message(), HasSubstr("this is rank 1 of 2 of a job of torch's agent"));
  EXPECT_TRUE(torchs.told_elsewhere);
  EXPECT_TRUE(
      place({"TORCHELASTIC_RUN_ID=none", "RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0"}).refusal.ok());
  EXPECT_TRUE(place({"TORCHELASTIC_RUN_ID=none", "RANK=1", "WORLD_SIZE=2"}).refusal.ok())
      << "left over";
}

TEST(FindPlace, StartsNoJobInEachRankOfALauncherThatHidesTheirNumber) {
  for (std::vector<std::string> entries :
       {std::vector<std::string>{"PMIX_RANK=1", "PMIX_NAMESPACE=prterun-n1-7@1"},
        {"PMI_ID=1", "PMI_PORT=n1:4711"}}) {
    const ClusterPlace place = FindPlace(Of(entries), "auto");
    EXPECT_EQ(place.cluster, "mpirun");
    EXPECT_THAT(place.refusal.message(), HasSubstr("started this process as its rank 1"));
    EXPECT_TRUE(place.told_elsewhere);
    entries.emplace_back("HLAUNCH_JOB_ID=a");  // hlaunch's own rank has these as well.
    EXPECT_TRUE(FindPlace(Of(entries), "auto").refusal.ok());
    entries.back() = "PMIX_NAMESPACE=slurm.pmix.17.0";  // A shell of srun that unset the rest.
    EXPECT_TRUE(FindPlace(Of({"PMIX_RANK=1", entries.back()}), "auto").refusal.ok());
    entries.back() = "SLURM_STEP_ID=0";  // And a task of srun --mpi=pmix.
    EXPECT_TRUE(FindPlace(Of(entries), "auto").refusal.ok());
    entries.pop_back();
    entries.insert(entries.end(), {"MASTER_ADDR=n1", "NODE_RANK=1", "NNODES=2"});
    EXPECT_TRUE(FindPlace(Of(entries), "auto").refusal.ok()) << "the user says more";
  }
}

TEST(FindByHand, TellsNodesFromWorkers) {
  const auto texts = [](std::vector<std::string> more) {
    more.emplace_back("MASTER_ADDR=n1");
    return Texts(FindPlace(Of(std::move(more)), "auto"));
  };
  EXPECT_EQ(texts({"RANK=1", "WORLD_SIZE=2"})[0], "--nnodes=2 (WORLD_SIZE)");
  EXPECT_EQ(texts({"NODE_RANK=1", "WORLD_SIZE=16", "LOCAL_WORLD_SIZE=8"})[0],
            "--nnodes=2 (WORLD_SIZE)");
  // The variables of a worker, and those of a job with one node.
  EXPECT_THAT(texts({"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1"}), IsEmpty());
  EXPECT_THAT(texts({"RANK=1", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=none"}), IsEmpty());
  EXPECT_THAT(texts({"RANK=0", "WORLD_SIZE=1"}), IsEmpty());
  EXPECT_FALSE(FindPlace(Of({"MASTER_ADDR=localhost", "RANK=1", "WORLD_SIZE=2"}), "auto").found());
}

TEST(FindByHand, RefusesWhatDoesNotSayHowManyNodesThereAre) {
  for (const char* per_node : {"", "LOCAL_WORLD_SIZE=5", "LOCAL_WORLD_SIZE=0"}) {
    const ClusterPlace place =
        FindPlace(Of({"MASTER_ADDR=n1", "NODE_RANK=1", "WORLD_SIZE=16", per_node}), "auto");
    EXPECT_THAT(place.needs_nnodes, HasSubstr("MASTER_ADDR is n1 and NODE_RANK is 1")) << per_node;
  }
  EXPECT_THAT(FindPlace(Of({"MASTER_ADDR=n1", "NODE_RANK=0"}), "auto").needs_nnodes,
              HasSubstr("MASTER_ADDR is n1 and NODE_RANK is 0"));
  EXPECT_EQ(FindPlace(Of({"MASTER_ADDR=localhost", "NODE_RANK=0"}), "auto").needs_nnodes, "");
  EXPECT_THAT(
      FindPlace(Of({"MASTER_ADDR=n1", "NODE_RANK=2", "NNODES=2"}), "auto").refusal.message(),
      HasSubstr("NODE_RANK '2' is no node's number of 2 (NNODES)"));
  EXPECT_THAT(
      FindPlace(Of({"MASTER_ADDR=n1", "NODE_RANK=1", "MASTER_PORT=x"}), "auto").refusal.message(),
      HasSubstr("MASTER_PORT 'x': expected 1 to 65535"));
}

TEST(FindSlurm, TakesThePortThatSlurmReserved) {
  const auto endpoint = [](const char* ports) {
    const std::string name = absl::StrCat("SLURM_STEP_RESV_PORTS=", ports);
    return Texts(FindPlace(Of({"SLURM_JOB_ID=17", "SLURM_STEP_ID=0", "SLURM_PROCID=0",
                               "SLURM_NODEID=0", "SLURM_STEP_NUM_NODES=1",
                               "SLURM_STEP_NODELIST=here", "SLURM_STEP_TASKS_PER_NODE=1", name}),
                           "slurm"))[2];
  };
  EXPECT_THAT(endpoint("13000-13001,13007"), HasSubstr("=here:13000 "));
  EXPECT_THAT(endpoint("13000"), HasSubstr("=here:13000 "));
  EXPECT_THAT(endpoint("x"), HasSubstr("=here:12272 "));
}

TEST(PortOfStep, IsThatOfSlurmsIdsAlone) {
  EXPECT_EQ(PortOfStep("17.0"), 12272);
  for (const char* other : {"", "none", "17", "17.0.1", "a.0", "17."}) {
    EXPECT_EQ(PortOfStep(other), std::nullopt) << other;
  }
}

TEST(FindByHand, LeavesAloneWhatIsOfOneNode) {
  for (const std::vector<std::string>& entries :
       std::vector<std::vector<std::string>>{{"NODE_RANK=0"},
                                             {"MASTER_ADDR=n1", "MASTER_PORT=1"},
                                             {"MASTER_ADDR=localhost", "NODE_RANK=0"},
                                             {"RANK=1", "WORLD_SIZE=2"}}) {
    const ClusterPlace place = FindPlace(Of(entries), "auto");
    EXPECT_TRUE(place.refusal.ok() && place.needs_nnodes.empty()) << entries[0];
  }
  EXPECT_FALSE(FindPlace(Of({"PET_NNODES=2", "MASTER_ADDR=n1", "NODE_RANK=1"}), "auto").found());
  // A process that a worker starts, also a worker of --per-node.
  EXPECT_FALSE(
      FindPlace(Of({"HLAUNCH_JOB_ID=j", "MASTER_ADDR=n1", "NODE_RANK=1"}), "auto").found());
}

// A file with a site's own systems.
std::string SystemsFile(const std::string& text) {
  std::string path = absl::StrCat(testing::TempDir(), "/hlaunch_systems_", ::getpid(), ".json");
  std::ofstream(path) << text;
  return path;
}

TEST(ReadSystems, ASitesOwnSystemIsAskedFirst) {
  const auto own = ReadSystems(SystemsFile(
      R"({"systems": [{"word": "batchy", "title": "a node of Batchy", "proof": ["BATCHY_JOB"],
          "nnodes": "BATCHY_N", "rank": "BATCHY_I|BATCHY_INDEX", "hosts": "BATCHY_HOSTS",
          "port": "BATCHY_PORT"}]})"));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_THAT(ClusterWords(*own), testing::Contains("batchy"));
  const Surroundings here =
      Of({"BATCHY_JOB=1", "BATCHY_N=2", "BATCHY_INDEX=1", "BATCHY_HOSTS=b1 b2", "BATCHY_PORT=99",
          "PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALNRANKS=1"});
  EXPECT_THAT(Texts(FindPlace(here, "auto", *own)),
              ElementsAre("--nnodes=2 (BATCHY_N)", "--node-rank=1 (BATCHY_INDEX)",
                          "--rdzv-endpoint=b1:99 (BATCHY_HOSTS)"));
}

TEST(ReadSystems, NamesTheRowAndTheField) {
  const auto error = [](const std::string& text) {
    return std::string(ReadSystems(SystemsFile(text)).status().message());
  };
  EXPECT_THAT(error("{"), HasSubstr("it is no JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("expected {\"systems\": [...]}"));
  EXPECT_THAT(error(R"({"systems": [{"word": "a", "title": "b", "proof": "C"}]})"),
              HasSubstr("system 1: 'rank' is missing"));
  EXPECT_THAT(error(R"({"systems": [{"word": "a", "nodes": "N"}]})"),
              HasSubstr("system 1: 'nodes' is no field"));
  EXPECT_THAT(error(R"({"systems": [{"word": 7}]})"),
              HasSubstr("system 1: 'word' is no field, or"));
  for (const char* word : {"auto", "none", kOwnCluster}) {  // None of these could name the row.
    EXPECT_THAT(error(absl::StrCat(R"({"systems": [{"word": ")", word,
                                   R"(", "title": "b", "proof": "C", "rank": "R"}]})")),
                HasSubstr(absl::StrCat("system 1: 'word' may not be ", word)));
  }
  EXPECT_THAT(ReadSystems("/nonexistent/s.json").status().message(),
              HasSubstr("it cannot be read"));
}

TEST(CheckFirstTask, LetsOneTaskOfAStepStartHosts) {
  const auto task = [](const char* number, std::vector<std::string> more = {}) {
    more.push_back(absl::StrCat("SLURM_PROCID=", number));
    more.emplace_back("SLURM_STEP_NUM_TASKS=3");
    return CheckFirstTask(Environment(Step(more)));
  };
  EXPECT_TRUE(task("0").ok());
  EXPECT_THAT(std::string(task("2").message()),
              HasSubstr("this is task 2 of a Slurm step of 3 tasks, and task 0 starts the job"));
  EXPECT_TRUE(task("2", {"SLURM_PTY_PORT=4711"}).ok()) << "in a shell";
  EXPECT_TRUE(task("2", {"TORCHELASTIC_RUN_ID=1.0"}).ok()) << "in a worker";
  EXPECT_TRUE(CheckFirstTask(Environment({"SLURM_PROCID=2"})).ok());
}

TEST(SurroundingsOfThisProcess, HasItselfAndItsAncestorsTheNearestFirst) {
  for (const char* variable : {"SLURM_TASK_PID=1", "OMPI_COMM_WORLD_SIZE=2", "PMI_SIZE=2",
                               "PMIX_RANK=0", "MPI_LOCALNRANKS=2", "MV2_COMM_WORLD_SIZE=2"}) {
    const Surroundings here = SurroundingsOfThisProcess(Environment({"A=1", variable}));
    ASSERT_GE(here.ancestors.size(), 2U) << variable;
    EXPECT_EQ(here.ancestors[0], ::getpid());
    EXPECT_EQ(here.ancestors[1], ::getppid());
    EXPECT_EQ(here.environment.Get("A"), "1");
  }
}

TEST(SurroundingsOfThisProcess, DoesNotReadAncestorsThatNothingIsAskedOf) {
  EXPECT_THAT(SurroundingsOfThisProcess(Environment({"A=1", "WORLD_SIZE=2"})).ancestors, IsEmpty());
}

TEST(FindPlace, FindsNothingWhereNothingIs) {
  EXPECT_FALSE(FindPlace(Of({"PATH=/bin", "RANK=0"}), "auto").found());
  EXPECT_EQ(FindPlace(Of(Step()), "none").reason, "--cluster none");
  EXPECT_EQ(FindPlace(Of({}), "pbs").refusal.message(), "--cluster pbs: PBS_JOBID is not set here");
}

}  // namespace
}  // namespace hlaunch
