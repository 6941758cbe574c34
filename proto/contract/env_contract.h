// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

// The environment names that hlaunch and its workers agree on. agent/workers/worker/worker_env.h
// says what each holds; this file says only how they are spelled and what is not passed on.

namespace hlaunch {

// Read by hlaunch's own programs. No worker ever sees them.
inline constexpr char kEnvToken[] = "HLAUNCH_TOKEN";
inline constexpr char kEnvTokenFile[] = "HLAUNCH_TOKEN_FILE";
inline constexpr char kEnvHosts[] = "HLAUNCH_HOSTS";
inline constexpr char kEnvClusterFile[] = "HLAUNCH_CLUSTER_FILE";
inline constexpr char kEnvTls[] = "HLAUNCH_TLS";  // "on" or "off".
inline constexpr char kEnvTlsCert[] = "HLAUNCH_TLS_CERT";
inline constexpr char kEnvTlsKey[] = "HLAUNCH_TLS_KEY";
inline constexpr char kEnvTlsCa[] = "HLAUNCH_TLS_CA";
inline constexpr char kEnvKeeperFd[] = "HLAUNCH_KEEPER_FD";
// What task 0 of a node knows of the other tasks; for its agent.
inline constexpr char kEnvTasks[] = "HLAUNCH_TASKS";
// Why the other tasks of this node are gone; for a program that this process becomes.
inline constexpr char kEnvTasksGone[] = "HLAUNCH_TASKS_GONE";
// For the program that a keeper runs to report a death: why, and how the keeper's lines look.
inline constexpr char kEnvDeathReportReason[] = "HLAUNCH_DEATH_REPORT_REASON";
inline constexpr char kEnvLogForm[] = "HLAUNCH_LOG_FORM";
// The folder of a detached job, for the process that runs the job.
inline constexpr char kEnvDetached[] = "HLAUNCH_DETACHED";
// The Python beside which hlaunch was found, or that ran `python -m hlaunch`; for the programs that
// it becomes or starts on this host.
inline constexpr char kEnvPython[] = "HLAUNCH_PYTHON";
// "1" for a Python that is started to become a fork server.
inline constexpr char kEnvForkServer[] = "HLAUNCH_FORK_SERVER";
// What ranks import once on each node if no --preload is given.
inline constexpr char kEnvPreload[] = "HLAUNCH_PRELOAD";
// "1" on hosts that --hosts started: only one of them reports the end.
inline constexpr char kEnvQuietEnd[] = "HLAUNCH_QUIET_END";

// Variables of hlaunch for a worker.
inline constexpr char kEnvJobId[] = "HLAUNCH_JOB_ID";
inline constexpr char kEnvEndpoint[] = "HLAUNCH_ENDPOINT";
inline constexpr char kEnvRound[] = "HLAUNCH_ROUND";
inline constexpr char kEnvLogDir[] = "HLAUNCH_LOG_DIR";
inline constexpr char kEnvHeartbeat[] = "HLAUNCH_HEARTBEAT";
inline constexpr char kEnvBoundary[] = "HLAUNCH_BOUNDARY";
inline constexpr char kEnvTap[] = "HLAUNCH_TAP";  // If hlaunch itself is given "0": no tap.
// The secret by which comm's ranks know each other, new in every round. It is in no log and no
// store.
inline constexpr char kEnvCommSecret[] = "HLAUNCH_COMM_SECRET";

// The place of a worker. Set for every worker.
inline constexpr char kEnvRank[] = "RANK";
inline constexpr char kEnvWorldSize[] = "WORLD_SIZE";
inline constexpr char kEnvLocalRank[] = "LOCAL_RANK";
inline constexpr char kEnvLocalWorldSize[] = "LOCAL_WORLD_SIZE";
inline constexpr char kEnvGroupRank[] = "GROUP_RANK";
inline constexpr char kEnvNodeRank[] = "NODE_RANK";
inline constexpr char kEnvGroupWorldSize[] = "GROUP_WORLD_SIZE";
inline constexpr char kEnvRoleName[] = "ROLE_NAME";
inline constexpr char kEnvRoleRank[] = "ROLE_RANK";
inline constexpr char kEnvRoleWorldSize[] = "ROLE_WORLD_SIZE";
inline constexpr char kEnvMasterAddr[] = "MASTER_ADDR";
inline constexpr char kEnvMasterPort[] = "MASTER_PORT";
inline constexpr char kEnvRunId[] = "TORCHELASTIC_RUN_ID";
inline constexpr char kEnvRestartCount[] = "TORCHELASTIC_RESTART_COUNT";
inline constexpr char kEnvMaxRestarts[] = "TORCHELASTIC_MAX_RESTARTS";
inline constexpr char kEnvUseAgentStore[] = "TORCHELASTIC_USE_AGENT_STORE";
inline constexpr char kEnvErrorFile[] = "TORCHELASTIC_ERROR_FILE";
inline constexpr char kEnvSignalsToHandle[] = "TORCHELASTIC_SIGNALS_TO_HANDLE";
inline constexpr char kEnvLocalSize[] = "LOCAL_SIZE";
inline constexpr char kEnvCrossRank[] = "CROSS_RANK";
inline constexpr char kEnvCrossSize[] = "CROSS_SIZE";
inline constexpr char kEnvJaxNumProcesses[] = "JAX_NUM_PROCESSES";
inline constexpr char kEnvJaxProcessId[] = "JAX_PROCESS_ID";

// Defaults: the user's own value wins.
inline constexpr char kEnvTorchNcclAsync[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
inline constexpr char kEnvNcclAsync[] = "NCCL_ASYNC_ERROR_HANDLING";
inline constexpr char kEnvGlooInterface[] = "GLOO_SOCKET_IFNAME";
inline constexpr char kEnvOmpThreads[] = "OMP_NUM_THREADS";
inline constexpr char kEnvJaxCoordinator[] = "JAX_COORDINATOR_ADDRESS";
inline constexpr char kEnvNeuronRootComm[] = "NEURON_RT_ROOT_COMM_ID";
inline constexpr char kEnvPythonUnbuffered[] = "PYTHONUNBUFFERED";

// A list of directories, separated by colons. hlaunch appends its own.
inline constexpr char kEnvPythonPath[] = "PYTHONPATH";

// Read by the CUDA and HIP runtimes. Set only if each worker sees one device.
inline constexpr char kEnvCudaVisibleDevices[] = "CUDA_VISIBLE_DEVICES";

// How an MPI program finds its PMI-1 server: MPICH, MVAPICH and Intel MPI.
inline constexpr char kEnvPmiFd[] = "PMI_FD";
inline constexpr char kEnvPmiPort[] = "PMI_PORT";  // Used with kEnvPmiId instead of kEnvPmiFd.
inline constexpr char kEnvPmiId[] = "PMI_ID";
inline constexpr char kEnvPmiRank[] = "PMI_RANK";
inline constexpr char kEnvPmiSize[] = "PMI_SIZE";
inline constexpr char kEnvPmiSpawned[] = "PMI_SPAWNED";  // "1" if MPI_Comm_spawn starts it.
inline constexpr char kEnvMpiLocalRank[] = "MPI_LOCALRANKID";
inline constexpr char kEnvMpiLocalSize[] = "MPI_LOCALNRANKS";
inline constexpr char kEnvMpichPmiVersion[] = "MPIR_CVAR_PMI_VERSION";  // A default: "1".
// The first turns off those components of Open MPI 2 to 4 that take a process for a world of its
// own if its launcher is not theirs: Open MPI's, Slurm's or a Cray's. So a rank that finds no PMIx
// server fails in MPI_Init. It replaces the user's value, which could only turn one of them on; all
// others here are defaults. The second turns off what asks a scheduler and not PMIx, and what needs
// no server. The third makes the same of Open MPI 5: a process of a namespace fails without its
// rank and server.
inline constexpr char kEnvOpenMpiSchizo[] = "OMPI_MCA_schizo";
inline constexpr char kEnvOpenMpiPmix[] = "OMPI_MCA_pmix";
inline constexpr char kEnvPmixNamespace[] = "PMIX_NAMESPACE";
inline constexpr char kNoOtherLaunchers[] = "^orte,slurm,alps";
inline constexpr char kNoOtherPmix[] = "^s1,s2,cray,flux,isolated";
inline constexpr char kUnservedNamespace[] = "hlaunch-serves-no-pmix";
// The last one lets waiting ranks yield to others if there are more ranks than cores.
inline constexpr char kEnvOpenMpiYield[] = "OMPI_MCA_mpi_yield_when_idle";

// Variables of other launchers, which --compat openmpi and --compat slurm set.
inline constexpr char kEnvOmpiRank[] = "OMPI_COMM_WORLD_RANK";
inline constexpr char kEnvOmpiSize[] = "OMPI_COMM_WORLD_SIZE";
inline constexpr char kEnvOmpiLocalRank[] = "OMPI_COMM_WORLD_LOCAL_RANK";
inline constexpr char kEnvOmpiLocalSize[] = "OMPI_COMM_WORLD_LOCAL_SIZE";
inline constexpr char kEnvOmpiNodeRank[] = "OMPI_COMM_WORLD_NODE_RANK";
inline constexpr char kEnvOmpiUniverseSize[] = "OMPI_UNIVERSE_SIZE";
inline constexpr char kEnvSlurmProcId[] = "SLURM_PROCID";
inline constexpr char kEnvSlurmLocalId[] = "SLURM_LOCALID";
inline constexpr char kEnvSlurmNodeId[] = "SLURM_NODEID";
inline constexpr char kEnvSlurmNtasks[] = "SLURM_NTASKS";
inline constexpr char kEnvSlurmNprocs[] = "SLURM_NPROCS";
inline constexpr char kEnvSlurmTasksPerNode[] = "SLURM_NTASKS_PER_NODE";
inline constexpr char kEnvSlurmStepNumTasks[] = "SLURM_STEP_NUM_TASKS";
inline constexpr char kEnvSlurmStepNumNodes[] = "SLURM_STEP_NUM_NODES";
inline constexpr char kEnvSlurmStepNodeList[] = "SLURM_STEP_NODELIST";
inline constexpr char kEnvSlurmJobNodeList[] = "SLURM_JOB_NODELIST";  // Slurm's own variable, kept.

// hlaunch's own variables. They are never inherited, whatever the user wants to keep: one may be a
// token.
inline constexpr char kOwnPrefix[] = "HLAUNCH_";
// An exception: the settings of the collectives, which the user sets, but not kEnvCommSecret.
inline constexpr char kCommPrefix[] = "HLAUNCH_COMM_";
inline constexpr char kEnvSocketInterface[] = "HLAUNCH_SOCKET_IFNAME";

// torch's worker watchdog: the first asks the agent for it with "1", the second names its pipe.
inline constexpr char kEnvEnableTimer[] = "TORCHELASTIC_ENABLE_FILE_TIMER";
inline constexpr char kEnvTimerFile[] = "TORCHELASTIC_TIMER_FILE";
// From torchrun 2.13: a worker that is in state D for this many seconds ends the job.
inline constexpr char kEnvKernelWaitLimit[] = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";

// Where this host's hlaunchd listens, for commands; no worker sees it either.
inline constexpr char kEnvDaemonSocket[] = "HLAUNCHD_SOCKET";

// How a service tells its manager that it is ready and alive, and where its output goes. They are
// for hlaunch itself, not for workers.
inline constexpr char kEnvNotifySocket[] = "NOTIFY_SOCKET";
inline constexpr char kEnvWatchdogMicros[] = "WATCHDOG_USEC";
inline constexpr char kEnvWatchdogPid[] = "WATCHDOG_PID";
inline constexpr char kEnvJournalStream[] = "JOURNAL_STREAM";

// What a worker must not inherit if another launcher started hlaunch. A name that hlaunch sets
// needs no entry here: the worker sees hlaunch's value. TF_CONFIG stays: operators set it on
// purpose.
inline constexpr const char* kScrubbedNames[] = {
    kEnvOmpiUniverseSize,  kEnvMpiLocalRank,     kEnvMpiLocalSize,     "HYDI_CONTROL_FD",
    "I_MPI_PMI_LIBRARY",  // Intel MPI would load that library and not speak with hlaunch.
    kEnvSlurmProcId,       kEnvSlurmLocalId,     kEnvSlurmNodeId,      kEnvSlurmNtasks,
    kEnvSlurmTasksPerNode, kEnvSlurmNprocs,      "SLURM_TASK_PID",     kEnvRank,
    kEnvWorldSize,         kEnvLocalRank,        kEnvLocalWorldSize,   kEnvGroupRank,
    kEnvGroupWorldSize,    kEnvRoleName,         kEnvRoleRank,         kEnvRoleWorldSize,
    kEnvNodeRank,          kEnvMasterAddr,       kEnvMasterPort,       kEnvRunId,
    kEnvRestartCount,      kEnvMaxRestarts,      kEnvUseAgentStore,    kEnvErrorFile,
    "HLS_MODULE_ID",       "HOROVOD_RANK",       "HOROVOD_SIZE",       "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",  "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", kEnvNotifySocket,
    kEnvWatchdogMicros,    kEnvWatchdogPid,      kEnvJournalStream,
};

// Only prefixes that belong to one runtime, never a short word that users use too. Intel MPI takes
// SLURM_TASKS_PER_NODE and SLURM_DISTRIBUTION for where its ranks are.
inline constexpr const char* kScrubbedPrefixes[] = {
    kOwnPrefix,        "PET_",           "PMI_",           "PMIX_",          "PRTE_",
    "OMPI_MCA_orte_",  "OMPI_MCA_ess_",  "OMPI_MCA_pmix_", "OMPI_MCA_prte_", "OMPI_COMM_WORLD_",
    "MV2_COMM_WORLD_", "JSM_NAMESPACE_", "SLURM_STEP_",    "SLURM_STEPID",   "SLURM_GTIDS",
    "SLURM_PMIX",      "SLURM_MPI_TYPE", "SLURM_TASKS_",   "SLURM_DIST",     "PALS_",
    "I_MPI_HYDRA_",
};

}  // namespace hlaunch
