// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/advice.h"

#include <gtest/gtest.h>

#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/exit_code.h"
#include "tests/launcher/report/job/failure.h"

namespace hlaunch {
namespace {

Outcome Of(const WorkerFailure& failure) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {failure};
  return outcome;
}

// What failing programs print, and what the advice must name.
TEST(AdviceFor, NamesTheWayOut) {
  const struct {
    const char* says;
    const char* advice;
  } rows[] = {
      // Output of the real programs, see tests/end_to_end/planted_failures_test.py.
      {"[vm:77] OPAL ERROR: Buffer type (described vs non-described) mismatch - operation not "
       "allowed in file ext3x_client.c at line 112",
       "--mpi pmix"},
      {"Open MPI requires access to a local PMIx server to execute.", "--mpi pmix"},
      {"OSError: [Errno 98] Address already in use", "ss -ltnp"},
      {"socket.gaierror: [Errno -2] Name or service not known", "/etc/hosts"},
      {"OSError: [Errno 113] No route to host", "routes"},
      {"OSError: [Errno 101] Network is unreachable", "routes"},
      {"ModuleNotFoundError: No module named 'transformers'", "install it there"},
      {"ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
       "install it there"},
      {"OSError: libnccl.so.2: cannot open shared object file: No such file or directory",
       "LD_LIBRARY_PATH"},
      {"ImportError: /x/ext.so: undefined symbol: _ZN2at4_ops", "another version"},
      {"ImportError: /x/ext.so: file too short", "corrupt"},
      {"OSError: [Errno 27] File too large", "ulimit -f"},
      {"AssertionError: Torch not compiled with CUDA enabled", "a torch with CUDA"},
      {"RuntimeError: Distributed package doesn't have NCCL built in", "gloo"},
      {"RuntimeError: nccl2 requires at least one CUDA device", "hlaunch devices"},
      {"ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
       "hlaunch devices"},
      {"OSError: [Errno 24] Too many open files", "ulimit -n"},
      {"OSError: [Errno 28] No space left on device: '/data/x'", "df -h"},
      {"PermissionError: [Errno 13] Permission denied: '/data'", "owner and mode"},
      {"MemoryError", "memory"},
      {"OSError: [Errno 12] Cannot allocate memory", "memory"},
      {"FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'", "every node"},
      {"SyntaxError: invalid syntax", "PYTHON_EXEC"},
      {"bdb.BdbQuit", "--stdin"},
      {"RecursionError: maximum recursion depth exceeded", "without end"},
      {"RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. ", "num_workers"},
      {"RuntimeError: DataLoader worker (pid(s) 77) exited unexpectedly", "num_workers=0"},
      {"RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed "
       "out "
       "waiting 2000ms for recv operation to complete",
       "py-spy"},
      {"torch.distributed.DistStoreError: wait timeout after 1000ms, keys: /default_pg/0//cpu//0/1",
       "/default_pg/0//cpu//0/1 in the store: fewer ranks came than the script waits for, or not "
       "all "
       "hosts have the same torch"},
      {"torch.distributed.DistStoreError: wait timeout after 1000ms, keys: /mine", "of its own"},
      {"RuntimeError: Socket Timeout", "the same torch"},
      {"RuntimeError: Connection closed by peer [10.0.0.1]:4711", "another worker was gone"},
      // From the sources of torch, gloo, NCCL and CUDA, and from what their users report.
      {"RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible "
       "that dataloader's workers are out of shared memory.",
       "--shm-size"},
      {"RuntimeError: Gloo connectFullMesh failed with [x.cc:1] no error", "GLOO_SOCKET_IFNAME"},
      {"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms", "it names"},
      {"hlaunch.TimedOut: rank 3 has not come to group 'g', missed in barrier #1", "fewer ranks"},
      {"ValueError: Invalid backend: 'hlaunch'", "hlaunch's back end"},
      {"RuntimeError: CUDA error: invalid device ordinal", "--nproc-per-node"},
      {"RuntimeError: No CUDA GPUs are available", "--nproc-per-node"},
      {"RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
       "driver"},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "smaller batch"},
      {"RuntimeError: CUDA error: device-side assert triggered", "CUDA_LAUNCH_BLOCKING=1"},
      {"ValueError: Number of processes must be defined.", "JAX_NUM_PROCESSES"},
      {"RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "nvidia-smi"},
      {"RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::64",
       "Gaudi card"},
      {"RuntimeError: synStatus=26 [Generic failure] Device acquire failed.", "hl-smi"},
      {"RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_BRIDGE Graph compile failed. "
       "synStatus=synStatus 26",
       "HABANA_LOGS"},
      {"torch.distributed.DistBackendError: NCCL error: unhandled system error", "NCCL_DEBUG=INFO"},
      {"RuntimeError: NCCL version mismatch", "same torch"},
      {"torch.distributed.DistBackendError: [Rank 1] Watchdog caught collective operation timeout: "
       "WorkNCCL(SeqNum=3, OpType=ALLREDUCE)",
       "late for a collective"},
      {"RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
       "new one.",
       "find_unused_parameters"},
      {"ValueError: bad batch", ""},
  };
  for (const auto& row : rows) {
    WorkerFailure failure = Failure(3, 1);
    failure.message = row.says;
    const std::string by_file = AdviceFor(Of(failure), 0);
    EXPECT_TRUE(absl::StrContains(by_file, row.advice)) << row.says << "\n" << by_file;
    EXPECT_EQ(by_file.empty(), row.advice[0] == '\0') << row.says << "\n" << by_file;
    failure.message.clear();
    failure.log_tail = absl::StrCat("[W] Too many open files, retrying\n",
                                    "Traceback (most recent call last):\n  File \"t.py\"\n",
                                    row.says, "\n[W] bye\n");
    EXPECT_EQ(AdviceFor(Of(failure), 0), by_file);
  }
}

TEST(AdviceFor, KnowsOpenMpi5WithoutItsTexts) {
  WorkerFailure failure = Failure(3, 14);
  failure.log_tail = "Sorry!  You were supposed to get help about:\n    no-pmi\nfrom the file:\n";
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), "--mpi pmix"));
}

TEST(AdviceFor, KnowsTheSignals) {
  const struct {
    int signal;
    const char* advice;
  } rows[] = {{SIGKILL, "who ends processes on node1"},
              {SIGSEGV, "PYTHONFAULTHANDLER=1"},
              {SIGBUS, "/dev/shm of node1"},
              {SIGILL, "CPU of node1"},
              {SIGABRT, "abort"},
              {SIGTERM, "did not send it"}};
  for (const auto& row : rows) {
    const std::string advice = AdviceFor(Of(Failure(3, 0, row.signal)), 0);
    EXPECT_TRUE(absl::StrContains(advice, row.advice)) << row.signal << advice;
  }
}

TEST(AdviceFor, KnowsLackOfMemoryFromOtherKills) {
  WorkerFailure failure = Failure(3, 0, SIGKILL);
  failure.out_of_memory = true;
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), "a higher limit"));
}

TEST(AdviceFor, KnowsAStallFromOtherKills) {
  WorkerFailure failure = Failure(3, 0, SIGKILL);
  failure.evidence = "any words";
  const std::pair<FailureKind, const char*> rows[] = {
      {FailureKind::kStalled, "--heartbeat-timeout"},
      {FailureKind::kStalledWaiting, "--heartbeat-timeout"},
      {FailureKind::kHangs, "--hang-timeout"},
      {FailureKind::kSilent, "--watch-log-silence"},
      {FailureKind::kWroteLine, "--watch-log 'warn:PATTERN'"},
      {FailureKind::kWarnedBefore, "ping -M do"}};
  for (const auto& [kind, advice] : rows) {
    failure.kind = kind;
    EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), advice)) << advice;
  }
}

// Whoever rewords a sentence changes no advice.
TEST(AdviceFor, DoesNotReadTheEvidence) {
  const std::string without = AdviceFor(Of(Failure(3, 0, SIGKILL)), 0);
  for (const char* evidence :
       {"stalled: no heartbeat for 62 s", "hangs: it has not come", "is silent: no line",
        "wrote 'nan'", "its Python is /usr/bin/python3", "before the round: what of the MTU"}) {
    WorkerFailure failure = Failure(3, 0, SIGKILL);
    failure.evidence = evidence;
    EXPECT_EQ(AdviceFor(Of(failure), 0), without) << evidence;
  }
  Outcome outcome = Of(Failure(0, 1));
  outcome.awaited = {{2, 0, "node1", "exited with code 0"}};
  EXPECT_EQ(AdviceFor(outcome, 0), "");
  outcome.awaited[0].did = "was done";
  outcome.awaited[0].exited = true;
  EXPECT_TRUE(absl::StrContains(AdviceFor(outcome, 0), "sys.exit()"));
}

TEST(AdviceFor, SaysToLookAtTheWorkerThatHasNotCome) {
  const auto advice = [](const char* words, int named) {
    WorkerFailure failure = Failure(0, 1);
    failure.message = words;
    Outcome outcome = Of(failure);
    outcome.awaited = {{named, 0, "node1", "did something"}};
    return AdviceFor(outcome, 0);
  };
  const char* const late = "hlaunch.TimedOut: rank 0 waited in vain for rank 2 on node1 in barrier";
  EXPECT_TRUE(absl::StrContains(advice(late, 2), "see where rank 2 on node1 stands (py-spy"));
  EXPECT_EQ(advice(late, Failure(0, 1).rank), "") << "all waited, at different places";
  EXPECT_EQ(advice("hlaunch.PeerLost: rank 2 on node1 left the group before barrier #7", 2), "");
}

TEST(AdviceFor, AnAbortIsExplainedByItsWords) {
  WorkerFailure failure = Failure(3, 0, SIGABRT);
  failure.log_tail =
      "terminate called after throwing an instance of 'std::bad_alloc'\n"
      "  what():  std::bad_alloc\n";
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), "ran out of memory"));
}

TEST(AdviceFor, KnowsTheAbortOfTorchAsPythonEnds) {
  WorkerFailure failure = Failure(3, 0, SIGABRT);
  failure.log_tail = "terminate called without an active exception\n";
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), "os._exit(0)"));
}

TEST(AdviceFor, ReadsAProgramThatIsNoPython) {
  WorkerFailure failure = Failure(3, 2);
  failure.log_tail =
      "python3: can't open file '/x/train.py': [Errno 2] No such file or directory\n";
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), "missing on node1"));
}

TEST(AdviceFor, NamesTheHostsThatSayTheSame) {
  Outcome outcome = Of(Failure(3, 1));
  outcome.failures.push_back(Failure(5, 1));
  outcome.failures.push_back(Failure(0, 1));
  outcome.failures[0].message = outcome.failures[1].message = "ModuleNotFoundError: No module 'x'";
  outcome.failures[2].message = "RuntimeError: Connection closed by peer";
  EXPECT_TRUE(absl::StrContains(AdviceFor(outcome, 0), "cannot be imported on node1 and node2:"));
}

TEST(AdviceFor, NamesThePythonThatRan) {
  WorkerFailure failure = Failure(3, 1);
  failure.message = "ModuleNotFoundError: No module named 'torch'";
  failure.kind = FailureKind::kImportFailed;
  failure.evidence = "its Python is /usr/bin/python3";
  EXPECT_EQ(AdviceFor(Of(failure), 0),
            "it cannot be imported on node1: install it there for the Python that ran, or name "
            "another one with PYTHON_EXEC; its Python is /usr/bin/python3");
  failure.evidence +=
      "; VIRTUAL_ENV is /env, which has another one: PYTHON_EXEC=/env/bin/python names that";
  EXPECT_EQ(
      AdviceFor(Of(failure), 0),
      "it cannot be imported on node1: install it there for the Python that ran, or name another "
      "one with PYTHON_EXEC; its Python is /usr/bin/python3; VIRTUAL_ENV is /env, which has "
      "another "
      "one: PYTHON_EXEC=/env/bin/python names that");
}

TEST(AdviceFor, KnowsOptionsThatWereMeantForHlaunch) {
  const auto advice = [](const char* says) {
    WorkerFailure failure = Failure(3, 2);
    failure.log_tail = says;
    return AdviceFor(Of(failure), 0);
  };
  const std::string one =
      "--nproc-per-node is an option of hlaunch too, and all words after the script are the "
      "script's own: for hlaunch, write it before the script";
  EXPECT_EQ(advice("usage: train.py [-h]\ntrain.py: error: unrecognized arguments: "
                   "--nproc-per-node 2\n"),
            one);
  EXPECT_EQ(advice("Error: No such option: --nproc-per-node\n"), one);
  EXPECT_EQ(
      advice("FATAL Flags parsing error:\n  Unknown command line flag 'nproc-per-node'. Did\n"),
      one);
  EXPECT_EQ(advice("ValueError: Some specified arguments are not used by the HfArgumentParser: "
                   "['--nproc-per-node', '2']\n"),
            one);
  EXPECT_EQ(
      advice("train.py: error: unrecognized arguments: --nnodes=2 --lr 1 --rdzv_endpoint a\n"),
      "--nnodes and --rdzv_endpoint are options of hlaunch too, and all words after the "
      "script are the script's own: for hlaunch, write them before the script");
  EXPECT_EQ(advice("train.py: error: unrecognized arguments: --lr 0.1\n"), "");
}

// Lightning's ddp_spawn in a rank of hlaunch, with torch 2.13.
TEST(AdviceFor, KnowsAProgramThatStartsRanksBesideTheOneThatItIs) {
  WorkerFailure failure = Failure(0, 1);
  failure.message =
      "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
      "network address. port: 44473, useIpv6: false, code: -98, name: EADDRINUSE, message: x";
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), "another program on node0"));
  failure.traceback = "  File \"rendezvous.py\", line 280, in _env_rendezvous_handler\n    store =";
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 0), "add --per-node"));
  EXPECT_TRUE(absl::StrContains(AdviceFor(Of(failure), 44473), "--master-store=worker"));
}

TEST(AdviceFor, SaysNothingBesideAWorkerThatNeverRan) {
  WorkerFailure failure = Failure(3, 127);
  failure.pid = 0;
  failure.message = "no such program: ./train: No such file or directory";
  EXPECT_EQ(AdviceFor(Of(failure), 0), "");
}

TEST(AdviceFor, IsForTheJobIfNoWorkerEndedIt) {
  Outcome outcome = Of(Failure(3, 0, SIGSEGV));
  outcome.worker_failed = false;
  outcome.exit_code = kExitNodeLost;
  EXPECT_TRUE(absl::StrContains(AdviceFor(outcome, 0), "look at that host first"));
}

// What torch 1.13, torch 2.13 (both backends), Python and gRPC print if a port is taken.
TEST(AdviceFor, AProgramThatServesAtMasterPortIsTheFlag) {
  const char* said[] = {
      "RuntimeError: The server socket has failed to listen on any local network address. The "
      "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
      "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
      "network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: "
      "address already in use",
      "OSError: [Errno 98] Address already in use: 0.0.0.0:29500",
      "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 29500): address "
      "already in use",
      "E1121 add_port.cc:83] Failed to add port to server: No address added out of total 1 "
      "resolved for '[::]:29500'",
  };
  for (const char* text : said) {
    Outcome outcome;
    outcome.exit_code = 1;
    outcome.worker_failed = true;
    outcome.failures = {Failure(0, 1)};
    outcome.failures[0].log_tail = absl::StrCat("step 1\n", text, "\n");
    EXPECT_NE(AdviceFor(outcome, 29500).find("add --master-store=worker"), std::string::npos)
        << text;
    EXPECT_EQ(AdviceFor(outcome, 0).find("--master-store"),
              std::string::npos);  // hlaunch did not serve it.
    EXPECT_EQ(AdviceFor(outcome, 2950).find("--master-store"), std::string::npos);
    outcome.failures[0].log_tail.clear();
    outcome.failures[0].message = text;
    EXPECT_NE(AdviceFor(outcome, 29500).find("add --master-store=worker"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace hlaunch
