// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/worker_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

Assignment SecondOfTwoNodes() {
  Assignment round;
  round.round = 4;
  round.restart_count = 1;
  round.max_restarts = 3;
  round.node_rank = 1;
  round.num_nodes = 2;
  round.first_rank = 8;
  round.world_size = 12;
  round.master_addr = "10.0.0.1";
  round.master_port = 29501;
  return round;
}

WorkerSpec FourWorkers(std::vector<std::string> inherited = {}) {
  WorkerSpec spec;
  spec.job_id = "job1";
  spec.nproc = 4;
  spec.inherited_env = std::move(inherited);
  return spec;
}

NodeFacts Facts() { return {10, "eth0", "/tmp/e/2.json", "10.0.0.1:29400", "/logs"}; }

std::optional<std::string> Value(const std::vector<std::string>& env, const std::string& name) {
  std::optional<std::string> value;
  for (const std::string& entry : env) {
    if (!absl::StartsWith(entry, name + "=")) continue;
    EXPECT_FALSE(value.has_value()) << name << " is there twice";
    value = entry.substr(name.size() + 1);
  }
  return value;
}

TEST(WorkerEnv, GivesAThreadToEachCoreOfTheWorkersShare) {
  WorkerSpec spec = FourWorkers();
  NodeFacts facts = Facts();  // 10 cores
  const auto threads = [&](int local_rank) {
    return Value(WorkerEnv(SecondOfTwoNodes(), local_rank, spec, facts), "OMP_NUM_THREADS");
  };
  EXPECT_EQ(threads(0), "2");
  spec.bindings = {
      {{0, 1, 2}, -1, 3, ""}, {{3, 4, 5}, -1, 3, ""}, {{6, 7}, -1, 2, ""}, {{8, 9}, -1, 2, ""}};
  EXPECT_EQ(threads(0), "3");
  EXPECT_EQ(threads(3), "2");
  facts.usable_cores = 4;  // A quota leaves fewer than their bound cores.
  EXPECT_EQ(threads(0), "1");
  spec.inherited_env = {"OMP_NUM_THREADS=7"};
  EXPECT_EQ(threads(0), "7");
}

TEST(WorkerEnv, LeavesDevicesAndCpusToTasksThatHaveTheirOwn) {
  WorkerSpec spec = FourWorkers({"CUDA_VISIBLE_DEVICES=5"});
  NodeFacts facts = Facts();
  facts.usable_cores = 8;
  spec.virtual_local_rank = true;
  EXPECT_FALSE(CheckWorkerSpec(spec, 2).ok()) << "one device for four workers";
  spec.stand_ins.resize(4);
  EXPECT_TRUE(CheckWorkerSpec(spec, 2).ok());
  const auto value = [&](const char* name) {
    return Value(WorkerEnv(SecondOfTwoNodes(), 2, spec, facts), name);
  };
  EXPECT_EQ(value("LOCAL_RANK"), "0");
  EXPECT_EQ(value("CUDA_VISIBLE_DEVICES"), "5") << "each task puts its own in its place";
  EXPECT_EQ(value("OMP_NUM_THREADS"), "2") << "they share the CPUs";
  spec.own_cpus = true;
  EXPECT_EQ(value("OMP_NUM_THREADS"), "8");
}

TEST(WorkerEnv, TellsNeuronWhereItsRuntimesMeet) {
  const auto root = [](WorkerSpec spec, Assignment round) {
    return Value(WorkerEnv(round, 1, spec, Facts()), "NEURON_RT_ROOT_COMM_ID");
  };
  WorkerSpec spec = FourWorkers();
  EXPECT_EQ(root(spec, SecondOfTwoNodes()), std::nullopt);
  spec.on_neuron = true;
  EXPECT_EQ(root(spec, SecondOfTwoNodes()), "10.0.0.1:29502");
  Assignment round = SecondOfTwoNodes();
  round.master_addr = "fd00::1";
  EXPECT_EQ(root(spec, round), "[fd00::1]:29502");
  round.master_port = 65535;
  EXPECT_EQ(root(spec, round), std::nullopt);
  spec.inherited_env = {"NEURON_RT_ROOT_COMM_ID=n0:41000"};
  EXPECT_EQ(root(spec, SecondOfTwoNodes()), "n0:41000");
}

TEST(WorkerEnv, PutsTheTapAtTheEndOfPythonsPath) {
  NodeFacts facts = Facts();
  const auto path = [&](std::vector<std::string> inherited) {
    return Value(WorkerEnv(SecondOfTwoNodes(), 1, FourWorkers(std::move(inherited)), facts),
                 "PYTHONPATH");
  };
  EXPECT_EQ(path({}), std::nullopt);
  EXPECT_EQ(path({"PYTHONPATH=/a:/b"}), "/a:/b");
  facts.tap_packages = "/tmp/t/python";
  EXPECT_EQ(path({}), "/tmp/t/python");
  EXPECT_EQ(path({"PYTHONPATH="}), "/tmp/t/python");
  EXPECT_EQ(path({"PYTHONPATH=/a:/b"}), "/a:/b:/tmp/t/python");
}

TEST(WorkerEnv, SaysTheWorkersPlace) {
  struct Row {
    const char* name;
    const char* value;
  };
  const Row rows[] = {
      {"RANK", "10"},
      {"WORLD_SIZE", "12"},
      {"LOCAL_RANK", "2"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"GROUP_RANK", "1"},
      {"NODE_RANK", "1"},
      {"GROUP_WORLD_SIZE", "2"},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", "10"},
      {"ROLE_WORLD_SIZE", "12"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "29501"},
      {"TORCHELASTIC_RUN_ID", "job1"},
      {"TORCHELASTIC_RESTART_COUNT", "1"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCHELASTIC_ERROR_FILE", "/tmp/e/2.json"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"GLOO_SOCKET_IFNAME", "eth0"},
      {"OMP_NUM_THREADS", "2"},
      {"LOCAL_SIZE", "4"},
      {"CROSS_RANK", "1"},
      {"CROSS_SIZE", "2"},
      {"PYTHONUNBUFFERED", "1"},
      {"HLAUNCH_JOB_ID", "job1"},
      {"HLAUNCH_ENDPOINT", "10.0.0.1:29400"},
      {"HLAUNCH_ROUND", "4"},
      {"HLAUNCH_LOG_DIR", "/logs"},
      {"JAX_NUM_PROCESSES", "12"},
      {"JAX_PROCESS_ID", "10"},
  };
  const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 2, FourWorkers(), Facts());
  for (const Row& row : rows) EXPECT_EQ(Value(env, row.name), row.value) << row.name;
  EXPECT_EQ(env.size(), std::size(rows)) << "and nothing else";
  EXPECT_EQ(env, WorkerEnv(SecondOfTwoNodes(), 2, FourWorkers(), Facts())) << "same order";
}

TEST(WorkerEnv, HasTheSecretOfItsRoundAndNoOtherOne) {
  const std::vector<std::string> inherited = {"HLAUNCH_COMM_SECRET=of-an-outer-job"};
  Assignment round = SecondOfTwoNodes();
  EXPECT_EQ(Value(WorkerEnv(round, 2, FourWorkers(inherited), Facts()), "HLAUNCH_COMM_SECRET"),
            std::nullopt);
  round.comm_secret = "c0ffee";
  EXPECT_EQ(Value(WorkerEnv(round, 2, FourWorkers(inherited), Facts()), "HLAUNCH_COMM_SECRET"),
            "c0ffee");
}

TEST(WorkerEnv, LeadsToTheStoresProxyAndLeavesJaxsCoordinatorWhereItIs) {
  NodeFacts facts = Facts();
  const auto without = WorkerEnv(SecondOfTwoNodes(), 0, FourWorkers(), facts);
  facts.store_proxy_port = 4711;
  const auto with = WorkerEnv(SecondOfTwoNodes(), 0, FourWorkers(), facts);
  EXPECT_EQ(Value(with, "MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(Value(with, "MASTER_PORT"), "4711");
  EXPECT_EQ(Value(with, "JAX_COORDINATOR_ADDRESS"), Value(without, "JAX_COORDINATOR_ADDRESS"));
}

TEST(WorkerEnv, ReplacesWhatAnOuterLauncherSet) {
  const WorkerSpec spec = FourWorkers({"RANK=99", "LOCAL_SIZE=99", "HOME=/root", "MASTER_PORT=1",
                                       "JAX_PROCESS_ID=99", "HLAUNCH_ROUND=99"});
  const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts());
  EXPECT_EQ(Value(env, "RANK"), "8");
  EXPECT_EQ(Value(env, "LOCAL_SIZE"), "4");
  EXPECT_EQ(Value(env, "MASTER_PORT"), "29501");
  EXPECT_EQ(Value(env, "JAX_PROCESS_ID"), "8");
  EXPECT_EQ(Value(env, "HLAUNCH_ROUND"), "4");
  EXPECT_EQ(Value(env, "HOME"), "/root");
}

TEST(WorkerEnv, LetsTheUsersDefaultsWin) {
  for (const char* name : {"OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "PYTHONUNBUFFERED",
                           "NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}) {
    for (const char* value : {"mine", ""}) {
      const WorkerSpec spec = FourWorkers({absl::StrCat(name, "=", value)});
      EXPECT_EQ(Value(WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts()), name), value) << name;
    }
  }
}

TEST(WorkerEnv, NamesTheSignalsThatTheAgentTakes) {
  WorkerSpec spec = FourWorkers({"TORCHELASTIC_SIGNALS_TO_HANDLE=SIGWINCH"});
  EXPECT_EQ(
      Value(WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts()), "TORCHELASTIC_SIGNALS_TO_HANDLE"),
      "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  spec.signals_to_handle = {SIGUSR1, SIGTERM};
  EXPECT_EQ(
      Value(WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts()), "TORCHELASTIC_SIGNALS_TO_HANDLE"),
      "SIGUSR1,SIGTERM");
}

TEST(WorkerEnv, NamesAnInterfaceForSeveralNodesOnly) {
  Assignment alone = SecondOfTwoNodes();
  alone.num_nodes = 1;
  EXPECT_EQ(Value(WorkerEnv(alone, 0, FourWorkers(), Facts()), "GLOO_SOCKET_IFNAME"), std::nullopt);
}

TEST(WorkerEnv, SharesTheCoresOut) {
  struct Row {
    int cores;
    int nproc;
    const char* threads;
  };
  for (const Row& row : {Row{64, 8, "8"}, Row{2, 8, "1"}, Row{7, 2, "3"}, Row{0, 1, "1"}}) {
    WorkerSpec spec = FourWorkers();
    spec.nproc = row.nproc;
    NodeFacts facts = Facts();
    facts.usable_cores = row.cores;
    EXPECT_EQ(Value(WorkerEnv(SecondOfTwoNodes(), 0, spec, facts), "OMP_NUM_THREADS"), row.threads);
  }
}

TEST(WorkerEnv, MakesNoOpenMpiProgramAWorldOfItsOwn) {
  const auto values = [](MpiOffer offer, int world_size, const NodeFacts& facts) {
    Assignment round = SecondOfTwoNodes();
    round.world_size = world_size;
    WorkerSpec spec = FourWorkers();
    spec.mpi = offer;
    const std::vector<std::string> env = WorkerEnv(round, 0, spec, facts);
    std::string found;
    for (const char* name : {"OMPI_MCA_schizo", "OMPI_MCA_pmix", "PMIX_NAMESPACE"}) {
      absl::StrAppend(&found, Value(env, name).value_or("-"), " ");
    }
    return found;
  };
  const std::string others = "^orte,slurm,alps ^s1,s2,cray,flux,isolated ";
  NodeFacts served = Facts();
  served.pmix_env = {"PMIX_NAMESPACE=n"};
  EXPECT_EQ(values(MpiOffer::kMaybe, 8, Facts()), others + "hlaunch-serves-no-pmix ");
  EXPECT_EQ(values(MpiOffer::kDescriptor, 8, Facts()), others + "- ");
  EXPECT_EQ(values(MpiOffer::kAny, 8, served), others + "n ");
  EXPECT_EQ(values(MpiOffer::kPmix, 1, served), others + "n ");
  EXPECT_EQ(values(MpiOffer::kPmix, 1, Facts()), "- - - ") << "a lone rank may be a world";
  EXPECT_EQ(values(MpiOffer::kNone, 8, Facts()), "- - - ");
}

TEST(WorkerEnv, LetsNoUsersLauncherMakeAWorldOfEachRank) {
  WorkerSpec spec = FourWorkers({"OMPI_MCA_schizo=slurm"});
  spec.mpi = MpiOffer::kMaybe;
  EXPECT_EQ(Value(WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts()), "OMPI_MCA_schizo"),
            "^orte,slurm,alps");
  spec.mpi = MpiOffer::kNone;
  EXPECT_EQ(Value(WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts()), "OMPI_MCA_schizo"), "slurm");
}

TEST(WorkerEnv, KeepsTheInheritedOrderAndDropsNonsense) {
  const WorkerSpec spec = FourWorkers({"B=1", "nonsense", "=x", "A=2=3", "C="});
  const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 0, spec, NodeFacts{});
  EXPECT_THAT(std::vector<std::string>(env.begin(), env.begin() + 3),
              ElementsAre("B=1", "A=2=3", "C="));
  EXPECT_EQ(Value(env, "TORCHELASTIC_ERROR_FILE"), std::nullopt) << "unknown facts are not set";
}

TEST(IsInherited, DropsWhatBelongsToALauncher) {
  for (const char* name : {"PMI_RANK",
                           "PMI_FD",
                           "PMIX_RANK",
                           "PMIX_SERVER_URI41",
                           "PRTE_LAUNCHED",
                           "OMPI_MCA_orte_hnp_uri",
                           "OMPI_MCA_ess_base_jobid",
                           "OMPI_MCA_pmix_x",
                           "OMPI_MCA_prte_x",
                           "OMPI_COMM_WORLD_RANK",
                           "OMPI_UNIVERSE_SIZE",
                           "MPI_LOCALRANKID",
                           "MPI_LOCALNRANKS",
                           "MV2_COMM_WORLD_RANK",
                           "JSM_NAMESPACE_RANK",
                           "SLURM_PROCID",
                           "SLURM_LOCALID",
                           "SLURM_NODEID",
                           "SLURM_NTASKS",
                           "SLURM_NTASKS_PER_NODE",
                           "SLURM_TASKS_PER_NODE",
                           "SLURM_DISTRIBUTION",
                           "SLURM_DIST_PLANESIZE",
                           "SLURM_NPROCS",
                           "SLURM_TASK_PID",
                           "SLURM_STEP_ID",
                           "SLURM_STEPID",
                           "SLURM_PMIXP_ABORT_AGENT_PORT",
                           "SLURM_STEP_NODELIST",
                           "RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "GROUP_RANK",
                           "GROUP_WORLD_SIZE",
                           "ROLE_RANK",
                           "ROLE_NAME",
                           "ROLE_WORLD_SIZE",
                           "NODE_RANK",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_RESTART_COUNT",
                           "TORCHELASTIC_MAX_RESTARTS",
                           "TORCHELASTIC_USE_AGENT_STORE",
                           "TORCHELASTIC_ERROR_FILE",
                           "PET_NNODES",
                           "PET_RDZV_ENDPOINT",
                           "HLS_MODULE_ID",
                           "HOROVOD_RANK",
                           "HOROVOD_SIZE",
                           "HOROVOD_LOCAL_RANK",
                           "HOROVOD_LOCAL_SIZE",
                           "HOROVOD_CROSS_RANK",
                           "HOROVOD_CROSS_SIZE",
                           "HLAUNCH_TOKEN",
                           "HLAUNCH_TOKEN_FILE",
                           "HLAUNCH_TLS_KEY",
                           "HLAUNCH_COMM_SECRET",
                           "HLAUNCH_KEEPER_FD"}) {
    EXPECT_FALSE(IsInherited(name)) << name;
  }
}

TEST(WorkerEnv, TheSettingsOfTheCollectivesReachTheWorker) {
  const std::vector<std::string> settings = {
      "HLAUNCH_COMM_SINGLE_COPY=always", "HLAUNCH_COMM_ALL_REDUCE=ring",
      "HLAUNCH_COMM_LIBRARY=/opt/libhlcomm.so.1", "HLAUNCH_SOCKET_IFNAME=eth0"};
  for (const bool keep_env : {false, true}) {
    WorkerSpec spec = FourWorkers(settings);
    spec.keep_env = keep_env;
    const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts());
    EXPECT_THAT(std::vector<std::string>(env.begin(), env.begin() + 4), ElementsAreArray(settings));
  }
}

TEST(WorkerEnv, KeepsTheEnvironmentIfAskedButForItsOwnNames) {
  WorkerSpec spec = FourWorkers({"PMI_RANK=7", "OMPI_COMM_WORLD_SIZE=9", "SLURM_PROCID=3",
                                 "PET_NNODES=2", "RANK=99", "TORCHELASTIC_ERROR_FILE=/outer",
                                 "HLAUNCH_TOKEN=secret", "HLAUNCH_ROUND=99"});
  spec.keep_env = true;
  const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts());
  EXPECT_THAT(
      std::vector<std::string>(env.begin(), env.begin() + 4),
      ElementsAre("PMI_RANK=7", "OMPI_COMM_WORLD_SIZE=9", "SLURM_PROCID=3", "PET_NNODES=2"));
  EXPECT_EQ(Value(env, "RANK"), "8");
  EXPECT_EQ(Value(env, "TORCHELASTIC_ERROR_FILE"), "/tmp/e/2.json");
  EXPECT_EQ(Value(env, "HLAUNCH_TOKEN"), std::nullopt) << "a secret";
  EXPECT_EQ(Value(env, "HLAUNCH_ROUND"), "4");
  // Variables for which hlaunch has no value do not keep an outer launcher's value.
  EXPECT_EQ(Value(WorkerEnv(SecondOfTwoNodes(), 0, spec, {}), "TORCHELASTIC_ERROR_FILE"),
            std::nullopt);
}

TEST(WorkerEnv, SpeaksForOtherLaunchersIfAsked) {
  const std::vector<std::string> outer = {"OMPI_COMM_WORLD_RANK=99", "SLURM_PROCID=99",
                                          "SLURM_JOB_NODELIST=a,b", "SLURM_JOB_ID=4711"};
  for (const bool keep_env : {false, true}) {
    WorkerSpec spec = FourWorkers(outer);
    spec.compat = {"openmpi", "slurm"};
    spec.keep_env = keep_env;
    const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 2, spec, Facts());
    EXPECT_EQ(Value(env, "OMPI_COMM_WORLD_RANK"), "10");
    EXPECT_EQ(Value(env, "SLURM_PROCID"), "10");
    EXPECT_EQ(Value(env, "SLURM_STEP_NODELIST"), "a,b");
    EXPECT_EQ(Value(env, "SLURM_JOB_ID"), "4711");
  }
}

TEST(WorkerEnv, ShowsOneDeviceToEachWorkerIfAsked) {
  struct Row {
    std::vector<std::string> inherited;
    std::optional<std::string> device;  // The device of local rank 1.
  };
  const Row rows[] = {
      {{}, "1"},
      {{"CUDA_VISIBLE_DEVICES=4,5,6,7"}, "5"},
      {{"CUDA_VISIBLE_DEVICES=4, 5 ,6,7"}, "5"},
      {{"CUDA_VISIBLE_DEVICES=GPU-a,MIG-b,c,d"}, "MIG-b"},
      {{"CUDA_VISIBLE_DEVICES="}, ""},
  };
  for (const Row& row : rows) {
    WorkerSpec spec = FourWorkers(row.inherited);
    EXPECT_EQ(
        Value(WorkerEnv(SecondOfTwoNodes(), 1, spec, Facts()), "CUDA_VISIBLE_DEVICES"),
        row.inherited.empty()
            ? std::nullopt
            : std::optional(row.inherited[0].substr(std::string("CUDA_VISIBLE_DEVICES=").size())))
        << "unless asked, what was inherited";
    spec.virtual_local_rank = true;
    const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 1, spec, Facts());
    EXPECT_EQ(Value(env, "CUDA_VISIBLE_DEVICES"), row.device);
    EXPECT_EQ(Value(env, "LOCAL_RANK"), "0");
    EXPECT_EQ(Value(env, "RANK"), "9");
    EXPECT_EQ(Value(env, "LOCAL_WORLD_SIZE"), "4");
  }
}

TEST(WorkerEnv, SaysWhichDeviceIsTheWorkers) {
  WorkerSpec spec = FourWorkers({"HABANA_VISIBLE_MODULES=9", "ROCR_VISIBLE_DEVICES=1",
                                 "CCL_PROCESS_LAUNCHER=pmix", "HLS_MODULE_ID=9"});
  spec.virtual_local_rank = true;
  spec.device_env = {{},
                     {{"HLS_MODULE_ID", "3"},
                      {"HABANA_VISIBLE_MODULES", "0,3"},
                      {"ROCR_VISIBLE_DEVICES", std::nullopt},
                      {"CCL_PROCESS_LAUNCHER", "torchrun", /*is_default=*/true},
                      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*is_default=*/true}}};
  const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 1, spec, Facts());
  EXPECT_EQ(Value(env, "HLS_MODULE_ID"), "3");
  EXPECT_EQ(Value(env, "HABANA_VISIBLE_MODULES"), "0,3");
  EXPECT_EQ(Value(env, "ROCR_VISIBLE_DEVICES"), std::nullopt);
  EXPECT_EQ(Value(env, "CCL_PROCESS_LAUNCHER"), "pmix");
  EXPECT_EQ(Value(env, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(Value(env, "CUDA_VISIBLE_DEVICES"), std::nullopt);
  // Rank 0 got no device assignment, so it gets what torchrun would give it.
  const std::vector<std::string> other = WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts());
  EXPECT_EQ(Value(other, "HLS_MODULE_ID"), std::nullopt);
  EXPECT_EQ(Value(other, "CUDA_VISIBLE_DEVICES"), "0");
}

// Lightning must choose its own environment before its TorchElastic one: it starts the processes of
// a node itself only without LOCAL_RANK.
TEST(WorkerEnv, LeavesTheRanksToAScriptThatStartsTheOthers) {
  WorkerSpec spec = FourWorkers({"RANK=7", "LOCAL_RANK=7", "TORCHELASTIC_RUN_ID=x"});
  spec.nproc = 1;
  spec.starts_others = true;
  const std::vector<std::string> env = WorkerEnv(SecondOfTwoNodes(), 0, spec, Facts());
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                           "TORCHELASTIC_RUN_ID", "OMP_NUM_THREADS"}) {
    EXPECT_EQ(Value(env, name), std::nullopt) << name;
  }
  EXPECT_EQ(Value(env, "NODE_RANK"), "1");
  EXPECT_NE(Value(env, "MASTER_ADDR"), std::nullopt);
  EXPECT_NE(Value(env, "MASTER_PORT"), std::nullopt);
}

TEST(CheckWorkerSpec, WantsADeviceForEachWorkerThatSeesOne) {
  struct Row {
    std::vector<std::string> inherited;
    bool virtual_local_rank;
    const char* says;
  };
  const Row rows[] = {
      {{}, true, ""},
      {{"CUDA_VISIBLE_DEVICES=4,5,6,7"}, true, ""},
      {{"CUDA_VISIBLE_DEVICES=4,5"}, false, ""},
      {{"CUDA_VISIBLE_DEVICES=4,5"},
       true,
       "--virtual-local-rank: 4 workers, but CUDA_VISIBLE_DEVICES=4,5 has 2; start as many "
       "workers, or name more devices"},
      {{"CUDA_VISIBLE_DEVICES=4,,5,,"},
       true,
       "--virtual-local-rank: 4 workers, but CUDA_VISIBLE_DEVICES=4,5 has 2; start as many "
       "workers, or name more devices"},
      {{"CUDA_VISIBLE_DEVICES="},
       true,
       "--virtual-local-rank: 4 workers, but CUDA_VISIBLE_DEVICES= has 0; start as many workers, "
       "or name more devices"},
  };
  for (const Row& row : rows) {
    WorkerSpec spec = FourWorkers(row.inherited);
    spec.virtual_local_rank = row.virtual_local_rank;
    EXPECT_EQ(CheckWorkerSpec(spec, 1).message(), row.says);
  }
  WorkerSpec lone = FourWorkers({"CUDA_VISIBLE_DEVICES="});
  lone.nproc = 1;
  lone.virtual_local_rank = true;
  EXPECT_TRUE(CheckWorkerSpec(lone, 1).ok()) << "a host without devices";
  lone.compat = {"mpich"};
  EXPECT_FALSE(CheckWorkerSpec(lone, 1).ok());
}

// Except for the last rows, the expected values are those of Python's
// string.Template(word).safe_substitute(local_rank="3").
TEST(WorkerArgv, SubstitutesTheLocalRankAsTorchrunDoes) {
  struct Row {
    const char* word;
    const char* becomes;
  };
  const Row rows[] = {
      {"--dir=/data/${local_rank}/x", "--dir=/data/3/x"},
      {"$local_rank", "3"},
      {"$local_rank-$local_rank.", "3-3."},
      {"${local_rank}${local_rank}", "33"},
      {"$local_ranks", "$local_ranks"},
      {"$LOCAL_RANK", "$LOCAL_RANK"},
      {"${local_rank", "${local_rank"},
      {"${local_rank }", "${local_rank }"},
      {"${x$local_rank}", "${x3}"},
      {"$rank ${HOME} $1 $", "$rank ${HOME} $1 $"},
      {"", ""},
      {"kill $$", "kill $$"},
      {"$$local_rank", "$$local_rank"},
      {"$$$local_rank", "$$3"},
  };
  for (const Row& row : rows) {
    WorkerSpec spec;
    spec.argv = {"$local_rank", row.word};
    EXPECT_THAT(WorkerArgv(spec.argv, 3), ElementsAre("$local_rank", row.becomes))
        << "the program's own name stays as it is";
  }
}

TEST(WorkerArgv, SubstitutesThePlaceOnlyIfItIsTold) {
  const std::vector<std::string> argv = {
      "${rank}", "${rank} of ${world_size} $rank ${RANK} $${rank}",
      "tcp://${master_addr}:${master_port}", "${node_rank}/${nnodes}/${local_rank}", "${home}"};
  const std::vector<std::string> env = {"RANK=5",      "WORLD_SIZE=8",       "MASTER_ADDR=10.0.0.1",
                                        "NODE_RANK=1", "GROUP_WORLD_SIZE=2", "MASTER_PORT=29500"};
  EXPECT_THAT(WorkerArgv(argv, 1, &env), ElementsAre("${rank}", "5 of 8 $rank ${RANK} $${rank}",
                                                     "tcp://10.0.0.1:29500", "1/2/1", "${home}"));
  EXPECT_EQ(WorkerArgv(argv, 1)[1], argv[1]);
  const std::vector<std::string> without_a_rank = {"NODE_RANK=1"};
  EXPECT_EQ(WorkerArgv(argv, 1, &without_a_rank)[1], argv[1]);
}

std::vector<OtherProgram> TwoOthers() {
  return {{1, {"./b"}, {"A=2", "C=3"}, ""}, {2, {"./c"}, {}, "/data"}};
}

TEST(RanksOfPrograms, GivesTheFirstWhatTheOthersLeave) {
  EXPECT_THAT(*RanksOfPrograms({}, 4), ElementsAre(4));
  EXPECT_THAT(*RanksOfPrograms(TwoOthers(), 5), ElementsAre(2, 1, 2));
  EXPECT_THAT(*RanksOfPrograms(TwoOthers(), 3), ElementsAre(1, 2));
  EXPECT_EQ(RanksOfPrograms(TwoOthers(), 2).status().message(),
            "the programs of --also need 3 ranks, and there are 2: start more workers");
}

TEST(ProgramNumber, IsThatOfTheRank) {
  std::vector<int> of_five, of_three;
  for (int rank = 0; rank < 5; ++rank) of_five.push_back(ProgramNumber(TwoOthers(), rank, 5));
  for (int rank = 0; rank < 3; ++rank) of_three.push_back(ProgramNumber(TwoOthers(), rank, 3));
  EXPECT_THAT(of_five, ElementsAre(0, 0, 1, 2, 2));
  EXPECT_THAT(of_three, ElementsAre(0, 1, 1));
  EXPECT_EQ(ProgramNumber({}, 7, 8), 0);
}

TEST(WorkerEnv, HasTheVariablesOfTheRanksProgram) {
  WorkerSpec spec = FourWorkers({"A=1", "B=1"});
  spec.others = TwoOthers();
  const auto value = [&spec](int local_rank, const char* name) {  // Ranks 8 to 11 of 12.
    return Value(WorkerEnv(SecondOfTwoNodes(), local_rank, spec, Facts()), name);
  };
  EXPECT_EQ(value(0, "A"), "1");
  EXPECT_EQ(value(0, "C"), std::nullopt);
  EXPECT_EQ(value(1, "A"), "2");
  EXPECT_EQ(value(1, "B"), "1");
  EXPECT_EQ(value(1, "C"), "3");
  EXPECT_EQ(value(2, "A"), "1");
}

TEST(ChosenDefaults, AreSaidOnceForTheWholeJob) {
  Assignment round = SecondOfTwoNodes();
  EXPECT_EQ(ChosenDefaults(round, FourWorkers(), Facts()), "");
  round.node_rank = 0;
  EXPECT_EQ(ChosenDefaults(round, FourWorkers(), Facts()), "");  // No repetition after a restart.
  round.round = 1;
  EXPECT_EQ(
      ChosenDefaults(round, FourWorkers(), Facts()),
      "workers get GLOO_SOCKET_IFNAME=eth0 and OMP_NUM_THREADS=2; set it to choose otherwise");
}

TEST(ChosenDefaults, LeaveOutWhatTheUserSet) {
  Assignment round = SecondOfTwoNodes();
  round.node_rank = 0;
  round.round = 1;
  EXPECT_EQ(ChosenDefaults(round, FourWorkers({"OMP_NUM_THREADS=9"}), Facts()),
            "workers get GLOO_SOCKET_IFNAME=eth0; set it to choose otherwise");
  EXPECT_EQ(
      ChosenDefaults(round, FourWorkers({"OMP_NUM_THREADS=9", "GLOO_SOCKET_IFNAME=lo"}), Facts()),
      "");
}

TEST(WorkerEnv, LeavesTheStoreToRank0WhereThatServesIt) {
  Assignment round = SecondOfTwoNodes();
  round.worker_store = true;
  EXPECT_EQ(Value(WorkerEnv(round, 0, FourWorkers(), Facts()), "TORCHELASTIC_USE_AGENT_STORE"),
            "False");
}

TEST(WorkerEnv, NamesTheCoordinatorOfJaxUnlessTheUserDid) {
  const char* name = "JAX_COORDINATOR_ADDRESS";
  Assignment round = SecondOfTwoNodes();
  EXPECT_FALSE(Value(WorkerEnv(round, 0, FourWorkers(), Facts()), name).has_value());
  round.coordinator_port = 40001;
  EXPECT_EQ(Value(WorkerEnv(round, 0, FourWorkers(), Facts()), name), "10.0.0.1:40001");
  round.master_addr = "fd00::1";
  EXPECT_EQ(Value(WorkerEnv(round, 0, FourWorkers(), Facts()), name), "[fd00::1]:40001");
  const WorkerSpec own = FourWorkers({"JAX_COORDINATOR_ADDRESS=n0:1"});
  EXPECT_EQ(Value(WorkerEnv(round, 0, own, Facts()), name), "n0:1");
}

TEST(IsInherited, KeepsWhatBelongsToTheUser) {
  for (const char* name : {"PATH",
                           "HOME",
                           "LD_LIBRARY_PATH",
                           "CUDA_VISIBLE_DEVICES",
                           "OMPI_MCA_btl_tcp_if_include",
                           "NCCL_DEBUG",
                           "PT_HPU_LAZY_MODE",
                           "SLURM_JOB_ID",
                           "SLURM_JOB_NODELIST",
                           "SLURM_NNODES",
                           "TORCHELASTIC_ENABLE_FILE_TIMER",
                           "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
                           "ROLE_ID",
                           "GROUP_ID",
                           "ID",
                           "TF_CONFIG",
                           "JAX_COORDINATOR_ADDRESS",
                           "MASTER_KEY",
                           "HOROVOD_FUSION_THRESHOLD",
                           "RANKING",
                           "PETS"}) {
    EXPECT_TRUE(IsInherited(name)) << name;
  }
}

}  // namespace
}  // namespace hlaunch
