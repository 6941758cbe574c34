// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cluster/finders.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A directory with files, in place of this machine's root.
class Root {
 public:
  Root() : path_(absl::StrCat(testing::TempDir(), "/hlaunch_root_", ::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_ + "/etc/slurm");
  }
  ~Root() { std::filesystem::remove_all(path_); }
  void Write(const std::string& file, const std::string& text) {
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

// "--nnodes=2 (SLURM_STEP_NUM_NODES)" of each option.
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

// The second node's task of step 17.3, as srun sets it; the later entries win.
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
  // A batch script and salloc's shell; the latter as a step of its own in newer releases.
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

TEST(FindSlurm, TakesNothingInAnInteractiveShell) {
  const auto shell = Step({"SLURM_PTY_PORT=4711"});
  EXPECT_THAT(FindPlace(Of(shell), "auto").reason, HasSubstr("srun --pty"));
  EXPECT_TRUE(FindPlace(Of(shell), "slurm").found());
}

TEST(FindSlurm, TakesNothingOfAnotherProcessVariables) {
  const auto stray = Step({"SLURM_TASK_PID=4"});
  EXPECT_THAT(FindPlace(Of(stray, "laptop"), "auto").reason,
              HasSubstr("this host, laptop, is not its node n04"));
  // In a container with pids of its own, and on a site whose node names are no host names.
  EXPECT_TRUE(FindPlace(Of(stray, "n04.cluster.org"), "auto").found());
  EXPECT_TRUE(FindPlace(Of(Step(), "laptop"), "auto").found());
}

TEST(FindSlurm, RefusesSeveralTasksOnANodeEverywhere) {
  const ClusterPlace place =
      FindPlace(Of(Step({"SLURM_STEP_TASKS_PER_NODE=3,1", "SLURM_LOCALID=0"})), "auto");
  EXPECT_EQ(place.refusal.message(),
            "step 17.3 has 3 tasks on a node (SLURM_STEP_TASKS_PER_NODE=3,1) and hlaunch is "
            "started once on each, where it starts all workers: write srun -N2 -n2 "
            "--ntasks-per-node=1 hlaunch --nproc-per-node 3 ...; for a job of its own in every "
            "task add --standalone");
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
  EXPECT_EQ(Texts(FindPlace(Of(OpenMpi({"MASTER_ADDR=n1", "MASTER_PORT=7"})), "auto"))[2],
            "--rdzv-endpoint=n1:7 (MASTER_ADDR)");
}

TEST(FindMpirun, KnowsHydraAndItsLackOfAnAddress) {
  const ClusterPlace place =
      FindPlace(Of({"PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALNRANKS=1", "MPI_LOCALRANKID=0"}), "auto");
  EXPECT_THAT(Texts(place), ElementsAre("--nnodes=2 (PMI_SIZE)", "--node-rank=1 (PMI_RANK)"));
  EXPECT_THAT(place.no_endpoint, HasSubstr("add --rdzv-endpoint HOST"));
}

TEST(FindMpirun, RefusesSeveralProcessesOnANode) {
  EXPECT_THAT(FindPlace(Of(OpenMpi({"OMPI_COMM_WORLD_LOCAL_SIZE=2"})), "auto").refusal.message(),
              HasSubstr("write mpirun -N 1 hlaunch --nproc-per-node 2"));
}

TEST(FindMpirun, LeavesSrunsOwnTasksToSlurm) {
  auto entries =
      Step({"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
  EXPECT_EQ(FindPlace(Of(entries), "auto").cluster, "slurm");
  // Open MPI's daemon is a step of its own, with other numbers.
  entries =
      Step({"OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
  EXPECT_EQ(FindPlace(Of(entries), "auto").cluster, "mpirun");
}

TEST(FindKubernetes, ReinterpretsThePodsRankOfAPyTorchJob) {
  const std::vector<std::string> entries = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "MASTER_ADDR=a-0",
                                            "MASTER_PORT=23456", "WORLD_SIZE=4", "RANK=3"};
  EXPECT_THAT(Texts(FindPlace(Of(entries), "auto")),
              ElementsAre("--nnodes=4 (WORLD_SIZE)", "--node-rank=3 (RANK)",
                          "--master-addr=a-0 (MASTER_ADDR)", "--master-port=23456 (MASTER_PORT)"));
  auto worker = entries;
  worker.emplace_back("LOCAL_RANK=0");
  EXPECT_FALSE(FindPlace(Of(worker), "auto").found());
  EXPECT_EQ(Texts(FindPlace(Of({"KUBERNETES_SERVICE_HOST=1", "MASTER_ADDR=localhost",
                                "MASTER_PORT=1", "WORLD_SIZE=2", "RANK=0"},
                               "job-master-0"),
                            "auto"))[2],
            "--master-addr=job-master-0 (MASTER_ADDR)");
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
}

TEST(FindLsf, NeedsAWordOrJsrun) {
  const std::vector<std::string> job = {"LSB_JOBID=9", "LSB_MCPU_HOSTS=n1 4 n2 2"};
  EXPECT_THAT(FindPlace(Of(job, "n2"), "auto").warnings, ElementsAre(HasSubstr("--cluster lsf")));
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
}

TEST(FindSageMaker, SortsTheHosts) {
  EXPECT_THAT(
      Texts(FindPlace(
          Of({"SM_HOSTS=[\"algo-2\",\"algo-1\"]", "SM_CURRENT_HOST=algo-2", "SM_NUM_GPUS=8"}),
          "auto")),
      ElementsAre("--nnodes=2 (SM_HOSTS)", "--node-rank=1 (SM_CURRENT_HOST)",
                  "--rdzv-endpoint=algo-1:7777 (SM_HOSTS)", "--nproc-per-node=8 (SM_NUM_GPUS)"));
  EXPECT_THAT(FindPlace(Of({"SM_HOSTS=[\"a\"", "SM_CURRENT_HOST=b"}), "auto").refusal.message(),
              HasSubstr("SM_CURRENT_HOST 'b' is not in SM_HOSTS"));
}

TEST(FindPlace, FindsNothingWhereNothingIs) {
  EXPECT_FALSE(FindPlace(Of({"PATH=/bin", "RANK=0"}), "auto").found());
  EXPECT_EQ(FindPlace(Of(Step()), "none").reason, "--cluster none");
  EXPECT_EQ(FindPlace(Of({}), "pbs").refusal.message(), "--cluster pbs: PBS_JOBID is not set here");
}

}  // namespace
}  // namespace hlaunch
