// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/parse_options.h"
#include "launcher/job/spec/make_job_spec.h"
#include "launcher/job/spec/node_binding.h"
#include "launcher/job/spec/token.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/tokens.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

Options Read(std::vector<const char*> words) {
  words.insert(words.begin(), "hlaunch");
  absl::StatusOr<Options> options = ParseOptions(static_cast<int>(words.size()), words.data());
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options{};
}

// A host with 6 usable CPUs, where every token file holds `token`.
HostProbes FakeProbes(const absl::StatusOr<TokenFile>& token = TokenFile{kToken + std::string("\n"),
                                                                         false}) {
  return {[] { return 6; }, [] { return std::string("random-id"); },
          [token](const std::string&) { return token; },
          [](const ScriptRequest& request, const Environment&) { return request.command; }};
}

absl::StatusOr<JobSpec> Make(std::vector<const char*> words, std::vector<std::string> env = {},
                             const HostProbes& probes = FakeProbes()) {
  return MakeJobSpec(Read(std::move(words)), Environment(std::move(env)), probes);
}

TEST(HearsAnybody, WhereMetricsAPageOrAStoreForOthersIsWanted) {
  const auto hears = [](std::vector<const char*> words) {
    const Options options = Read(std::move(words));
    return HearsAnybody(options, MakeJobSpec(options, Environment(), FakeProbes()).value());
  };
  EXPECT_FALSE(hears({"a"}));
  EXPECT_FALSE(hears({"--nproc-per-node", "8", "a"}));
  EXPECT_TRUE(hears({"--metrics-port", "0", "a"}));
  EXPECT_TRUE(hears({"--status-page", "0", "a"}));
  EXPECT_TRUE(hears({"--store-allow", "all", "a"}));
  EXPECT_TRUE(hears({"--any-user", "a"}));
}

TEST(DecideHostLoss, AJobThatMayRestartOutlivesTheHostOfItsRendezvous) {
  struct {
    std::vector<const char*> words;
    HostLoss loss;
  } const rows[] = {
      {{"--nnodes=3", "--rdzv-endpoint=n0", "--max-restarts=5", "x"}, HostLoss::kWait},
      {{"--nnodes=2", "--rdzv-endpoint=n0", "--max-restarts=5", "x"}, HostLoss::kWait},
      {{"--nnodes=3", "--rdzv-endpoint=n0", "x"}, HostLoss::kEnd},
      {{"--nnodes=3", "--rdzv-endpoint=n0,n1", "--max-restarts=5", "x"}, HostLoss::kEnd},
      {{"--nnodes=3", "--master-addr=n0", "--max-restarts=5", "x"}, HostLoss::kEnd},
      {{"--hosts=a,b,c", "--max-restarts=5", "x"}, HostLoss::kEnd},
      {{"--nnodes=1", "--rdzv-endpoint=n0", "--max-restarts=5", "x"}, HostLoss::kEnd},
      {{"--nnodes=3", "--rdzv-endpoint=n0", "--max-restarts=5", "--on-host-loss=end", "x"},
       HostLoss::kEnd},
      {{"--nnodes=3", "--rdzv-endpoint=n0", "--on-host-loss=continue", "x"}, HostLoss::kContinue},
      {{"--nnodes=3", "--rdzv-endpoint=n0", "--on-host-loss=auto", "x"}, HostLoss::kEnd},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(DecideHostLoss(Read(row.words)), row.loss) << row.words[0] << " " << row.words[1];
  }
}

TEST(MakeJobSpec, NamesACountOfNodesOrRanksThatNothingElseMakesAJobOf) {
  const auto warnings = [](std::vector<const char*> words, const char* entry,
                           const char* more = "A=1") {
    words.insert(words.end(), {"--nproc-per-node=8", "x"});
    return Make(std::move(words), {entry, more})->warnings;
  };
  EXPECT_THAT(
      warnings({}, "NNODES=2"),
      ElementsAre("NNODES is 2, and this is a job of one node with 8 ranks: for several nodes set "
                  "MASTER_ADDR and NODE_RANK, or write --nnodes 2 --rdzv-endpoint HOST on "
                  "each; --nnodes 1 says that one is meant"));
  EXPECT_THAT(warnings({}, "AZUREML_NODE_COUNT=3"), ElementsAre(HasSubstr("AZUREML_NODE_COUNT")));
  EXPECT_THAT(warnings({}, "WORLD_SIZE=16"), ElementsAre(HasSubstr("WORLD_SIZE is 16")));
  EXPECT_THAT(warnings({}, "WORLD_SIZE=16", "RANK=0"), ElementsAre(HasSubstr("--nnodes N")));
  EXPECT_THAT(warnings({}, "WORLD_SIZE=16", "MASTER_ADDR=n0"),
              ElementsAre(HasSubstr("nodes set NODE_RANK, or write --nnodes N")));
  EXPECT_THAT(warnings({}, "WORLD_SIZE=16", "NODE_RANK=0"),
              ElementsAre(HasSubstr("nodes set MASTER_ADDR, or write")));
  EXPECT_THAT(warnings({}, "WORLD_SIZE=16", "MASTER_ADDR=localhost"),
              ElementsAre(HasSubstr("set MASTER_ADDR to the first node's name and NODE_RANK, or")));
  for (const char* fits : {"WORLD_SIZE=8", "WORLD_SIZE=1", "NNODES=1", "NNODES=x"}) {
    EXPECT_THAT(warnings({}, fits), IsEmpty()) << fits;
  }
  for (const char* said : {"--nnodes=1", "--standalone", "--cluster=none"}) {
    EXPECT_THAT(warnings({said}, "NNODES=2"), IsEmpty()) << said;
  }
  for (const char* worker : {"LOCAL_RANK=0", "TORCHELASTIC_RUN_ID=none", "HLAUNCH_JOB_ID=j"}) {
    EXPECT_THAT(warnings({}, "WORLD_SIZE=16", worker), IsEmpty()) << worker;
  }
}

// They were dropped in silence.
TEST(MakeJobSpec, NamesTheVariablesOfXThatHlaunchDecidesItself) {
  const auto warnings = [](std::vector<const char*> words) {
    words.push_back("x");
    return Make(std::move(words), {"MASTER_ADDR=n0", "A=1"})->warnings;
  };
  EXPECT_THAT(warnings({"-x", "RANK=7", "-x", "A", "-x", "MASTER_ADDR", "-x", "RANK=8"}),
              ElementsAre("-x RANK, MASTER_ADDR: not used, since hlaunch itself decides what "
                          "workers get there"));
  EXPECT_THAT(warnings({"-x", "PMI_RANK=1"}), ElementsAre(HasSubstr("-x PMI_RANK: not used")));
  EXPECT_THAT(warnings({"--keep-env", "-x", "SLURM_PROCID=1"}), IsEmpty());
  EXPECT_THAT(warnings({"-x", "OMP_NUM_THREADS=2", "-x", "PYTHONPATH=/p", "-x", "MASTER*"}),
              IsEmpty());
  EXPECT_THAT(warnings({"-n", "2", "--also", "-n 1 -x LOCAL_RANK=3 y"}),
              ElementsAre(HasSubstr("-x LOCAL_RANK: not used")));
}

// A host where `python` is the first word of every worker. A shim runs Python 1 in /tmp and Python
// 2 in every other directory.
HostProbes ShimProbes(const std::string& python) {
  HostProbes probes = FakeProbes();
  probes.make_worker_argv = [python](const ScriptRequest&, const Environment&) {
    return std::vector<std::string>{python, "x"};
  };
  probes.ask_shim = [](const std::string&, const std::string& directory, const Environment&) {
    const std::string version = directory == "/tmp" ? "1" : "2";
    return ShimChoice{"/versions/" + version + "/python3", {"PATH=/versions/" + version}};
  };
  return probes;
}

constexpr char kShim[] = "/home/u/.asdf/shims/python3";

// Such a shim looks for .tool-versions or .python-version in the directory in which it is run.
TEST(MakeJobSpec, LetsAShimChooseThePythonInThisDirectory) {
  const auto made = [](const char* python, std::vector<const char*> words) {
    words.push_back("x.py");
    return Make(std::move(words), {"PATH=/bin"}, ShimProbes(python))->worker;
  };
  const WorkerSpec elsewhere = made(kShim, {"--wdir", "/tmp"});
  EXPECT_EQ(elsewhere.argv.front(), "/versions/2/python3");
  EXPECT_THAT(elsewhere.inherited_env, UnorderedElementsAre("PATH=/versions/2", "PWD=/tmp"));
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(made(kShim, {}).argv.front(), kShim);
  EXPECT_EQ(made(kShim, {"--wdir", here.c_str()}).argv.front(), kShim);
  EXPECT_EQ(made("/usr/bin/python3", {"--wdir", "/tmp"}).argv.front(), "/usr/bin/python3");
}

TEST(MakeJobSpec, SaysWhichPythonAShimRunsThatWasTyped) {
  const auto spec =
      Make({"--wdir", "/tmp", "--no-python", "python3", "x.py"}, {"A=1"}, ShimProbes(kShim));
  EXPECT_EQ(spec->worker.argv.front(), kShim);
  EXPECT_THAT(spec->warnings,
              ElementsAre("/home/u/.asdf/shims/python3 is a shim: workers run /versions/1/python3, "
                          "that of /tmp, and not /versions/2/python3, that of this directory; name "
                          "one of them by its path"));
}

TEST(MakeJobSpec, RefusesAShimThatRunsNoPythonInThisDirectory) {
  HostProbes probes = ShimProbes(kShim);
  probes.ask_shim = [](const std::string&, const std::string&, const Environment&) {
    return absl::FailedPreconditionError("no version is set");
  };
  EXPECT_EQ(Make({"--wdir", "/tmp", "x.py"}, {}, probes).status().message(), "no version is set");
}

TEST(DecideMode, FollowsWhatWasNamed) {
  struct {
    std::vector<const char*> words;
    JobMode mode;
  } const rows[] = {
      {{"x"}, JobMode::kSingleNode},
      {{"--standalone", "x"}, JobMode::kSingleNode},
      {{"--rdzv-endpoint=n0", "x"}, JobMode::kSingleNode},
      {{"--nnodes=1", "--node-rank=0", "--master-addr=n0", "x"}, JobMode::kSingleNode},
      {{"--nnodes=2", "x"}, JobMode::kListenAndPrint},
      {{"--nnodes=1:2", "x"}, JobMode::kListenAndPrint},
      {{"--nnodes=2", "--rdzv-backend=c10d", "x"}, JobMode::kListenAndPrint},
      {{"--nnodes=2", "--rdzv-endpoint=n0", "x"}, JobMode::kEndpoint},
      {{"--nnodes=2", "--rdzv-endpoint=n0", "--node-rank=1", "x"}, JobMode::kEndpoint},
      {{"--nnodes=2", "--rdzv-endpoint=n0", "--rdzv-backend=static", "x"}, JobMode::kStatic},
      {{"--nnodes=2", "--master-addr=n0", "x"}, JobMode::kStatic},
      {{"--nnodes=2", "--master-addr=n0", "--rdzv-endpoint=n1", "x"}, JobMode::kEndpoint},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(DecideMode(Read(row.words)), row.mode) << testing::PrintToString(row.words);
    EXPECT_EQ(NeedsGrpc(DecideMode(Read(row.words))), row.mode != JobMode::kSingleNode);
  }
}

TEST(MakeJobSpec, GivesTheStaticFormOnePort) {
  const auto spec = Make({"--nnodes=2", "--node-rank=1", "--master-addr=n0", "x"});
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->endpoint.host, "n0");
  EXPECT_EQ(spec->endpoint.port, 29500);
  EXPECT_EQ(spec->master_port, 29500);
  EXPECT_EQ(spec->node.rank, 1);
  EXPECT_EQ(spec->job_id, "none");
}

TEST(MakeJobSpec, LeavesThePortOpenAtAnEndpoint) {
  const auto spec = Make({"--nnodes=1:4", "--rdzv-endpoint=n0:7", "--rdzv-id=j", "x"});
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->endpoint.port, 7);
  EXPECT_EQ(spec->master_port, std::nullopt);
  EXPECT_EQ(spec->job_id, "j");
  EXPECT_EQ(spec->worker.job_id, "j");
  EXPECT_EQ(spec->policy.min_nodes, 1);
  EXPECT_EQ(spec->policy.max_nodes, 4);
}

TEST(MakeJobSpec, KeepsTheNamedPortOfASingleNode) {
  EXPECT_EQ(Make({"--master-port=29511", "x"})->master_port, 29511);
  EXPECT_EQ(Make({"--master-port=0", "x"})->master_port, std::nullopt);
  EXPECT_EQ(Make({"x"})->master_port, std::nullopt);
}

TEST(MakeJobSpec, InventsAJobIdWhereNobodyElseMustKnowIt) {
  EXPECT_EQ(Make({"x"})->job_id, "random-id");
  EXPECT_EQ(Make({"--nnodes=2", "x"})->job_id, "random-id");
  EXPECT_EQ(Make({"--nnodes=2", "--rdzv-id=7", "x"})->job_id, "7");
  EXPECT_EQ(Make({"--nnodes=2", "--rdzv-endpoint=n0", "x"})->job_id, "none");
}

TEST(MakeJobSpec, SaysWhatItDoesNotUse) {
  EXPECT_THAT(Make({"--nnodes=2", "--master-addr=n1", "--rdzv-endpoint=n0:7", "x"})->warnings,
              ElementsAre("--master-addr is not used: --rdzv-endpoint says that the nodes meet at "
                          "n0:7"));
  EXPECT_THAT(
      Make({"--nnodes=2", "--master-addr=n0", "--master-port=7", "--rdzv-endpoint=n0:7", "x"})
          ->warnings,
      IsEmpty());
}

TEST(MakeJobSpec, NotesWhatOfTorchrunsConfIsNotNeeded) {
  const auto spec = Make({"--rdzv-conf=is_host=1,timeout=9,read_timeout=9", "x"});
  EXPECT_EQ(spec->node.is_host, true);
  EXPECT_THAT(spec->notes, ElementsAre("--rdzv-conf: not needed here: timeout, read_timeout"));
  EXPECT_THAT(Make({"x"})->notes, IsEmpty());
}

TEST(MakeJobSpec, MakesThePolicyOfTheOptions) {
  const auto spec = Make({"--nnodes=2:4", "--spares=1", "--preflight=off", "--last-call=5",
                          "--join-timeout=9", "--max-restarts=3", "--rdzv-endpoint=n0", "x"});
  EXPECT_EQ(spec->policy.min_nodes, 2);
  EXPECT_EQ(spec->policy.max_nodes, 4);
  EXPECT_EQ(spec->policy.spares, 1);
  EXPECT_EQ(spec->policy.preflight, Preflight::kOff);
  EXPECT_EQ(spec->policy.last_call, seconds(5));
  EXPECT_EQ(spec->policy.join_timeout, seconds(9));
  EXPECT_EQ(spec->policy.max_restarts, 3);
}

TEST(MakeJobSpec, ScalesTheLeaseWithTheLossLimit) {
  const Lease normal = Make({"x"})->policy.lease;
  EXPECT_EQ(normal.lease, seconds(5));
  EXPECT_EQ(normal.loss_limit, seconds(30));
  EXPECT_EQ(normal.margin, seconds(10));
  const Lease quick = Make({"--loss-limit=1.5", "x"})->policy.lease;
  EXPECT_EQ(quick.lease, milliseconds(500));
  EXPECT_EQ(quick.loss_limit, milliseconds(1500));
  EXPECT_EQ(quick.margin, quick.lease + seconds(5));
}

TEST(MakeJobSpec, GivesStdinToALoneWorkerOrOnRequest) {
  EXPECT_EQ(Make({"x"})->worker.stdin_to, StdinTo::kRank0);
  EXPECT_EQ(Make({"--stdin=none", "x"})->worker.stdin_to, StdinTo::kNobody);
  EXPECT_EQ(Make({"--nproc-per-node=2", "x"})->worker.stdin_to, std::nullopt);
  EXPECT_EQ(Make({"--nproc-per-node=2", "--stdin", "x"})->worker.stdin_to, StdinTo::kRank0);
  EXPECT_EQ(Make({"--nproc-per-node=2", "--stdin=0", "x"})->worker.stdin_to, StdinTo::kRank0);
  EXPECT_EQ(Make({"--nnodes=2", "--rdzv-endpoint=n0", "x"})->worker.stdin_to, std::nullopt);
}

TEST(MakeJobSpec, HasThePrograms) {
  const auto spec =
      Make({"-n", "3", "--also=-n 1 -x A=1 --wdir /tmp b c", "--also", "-n 1 d", "x"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->worker.others.size(), 2u);
  EXPECT_EQ(spec->worker.others[0].ranks, 1);
  EXPECT_THAT(spec->worker.others[0].argv, ElementsAre("b", "c"));
  EXPECT_THAT(spec->worker.others[0].environment, ElementsAre("A=1", "PWD=/tmp"));
  EXPECT_EQ(spec->worker.others[0].directory, "/tmp");
  EXPECT_EQ(spec->worker.others[1].directory, "");
  EXPECT_EQ(Make({"-n", "3", "--also=-n 4 b", "x"}).status().message(),
            "the programs of --also need 4 ranks, and there are 3: give -n, the number of all "
            "ranks");
}

TEST(MakeJobSpec, FillsTheWorkerSpec) {
  const auto spec = Make({"--nproc-per-node=auto", "--shutdown-timeout=5", "t.py", "--lr", "1"},
                         {"A=1", "HLAUNCH_TOKEN=hidden", "B=2"});
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->worker.nproc, 6);
  EXPECT_EQ(spec->worker.stop_grace, seconds(5));
  EXPECT_THAT(spec->worker.argv, ElementsAre("t.py", "--lr", "1"));
  EXPECT_THAT(spec->worker.inherited_env, ElementsAre("A=1", "B=2"));
}

TEST(MakeJobSpec, HandsOnWhatConcernsWorkersAndTheirOutput) {
  const auto spec = Make({"--role=r", "--signals-to-handle=SIGUSR1", "--virtual-local-rank",
                          "--keep-env", "--pass-local-rank", "--compat=slurm", "--tee=3", "t.py"});
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->worker.role, "r");
  EXPECT_THAT(spec->worker.signals_to_handle, ElementsAre(SIGUSR1));
  EXPECT_TRUE(spec->worker.virtual_local_rank);
  EXPECT_TRUE(spec->worker.keep_env);
  EXPECT_THAT(spec->worker.argv, ElementsAre("t.py", "--local-rank=${local_rank}"));
  EXPECT_THAT(spec->worker.compat, ElementsAre("slurm"));
  EXPECT_EQ(spec->logs.tee.Of(0), Streams::kBoth);
}

TEST(MakeJobSpec, PassesTheLocalRankBeforeTheScriptsOwnArguments) {
  for (const char* words : {"-m", "--no-python", "--keep-env"}) {
    const auto spec = Make({words, "--pass-local-rank=--local_rank", "t", "--lr", "1"});
    EXPECT_THAT(spec->worker.argv, ElementsAre("t", "--local_rank=${local_rank}", "--lr", "1"));
  }
}

TEST(MakeJobSpec, RefusesWhatNotEveryWorkerCanHave) {
  const auto refused = [](std::vector<const char*> words, std::vector<std::string> env = {}) {
    const auto spec = Make(std::move(words), std::move(env));
    return spec.ok() || !absl::IsInvalidArgument(spec.status())
               ? ""
               : std::string(spec.status().message());
  };
  EXPECT_THAT(
      refused({"--virtual-local-rank", "--nproc-per-node=3", "x"}, {"CUDA_VISIBLE_DEVICES=0,1"}),
      HasSubstr("3 workers, but CUDA_VISIBLE_DEVICES=0,1 has 2"));
  EXPECT_THAT(refused({"--nnodes=2", "--compat=slurm", "x"}), HasSubstr("SLURM_JOB_NODELIST"));
  EXPECT_EQ(refused({"--nnodes=2", "--compat=slurm", "x"}, {"SLURM_JOB_NODELIST=a,b"}), "");
  EXPECT_THAT(refused({"--nproc-per-node=2", "/dev/stdin"}),
              HasSubstr("/dev/stdin is this process's, and every worker reads its script"));
  EXPECT_EQ(refused({"/dev/stdin"}), "");
  EXPECT_EQ(refused({"--nproc-per-node=2", "--stdin=all", "/dev/stdin"}), "");
  const auto two = [&](std::vector<const char*> program) {
    program.insert(program.begin(), {"--nproc-per-node=2", "--no-python"});
    return refused(std::move(program));
  };
  for (const std::vector<const char*>& program : std::vector<std::vector<const char*>>{
           {"sh"}, {"sh", "-s", "a"}, {"sh", "-ex"}, {"sh", "-"}}) {
    EXPECT_THAT(two(program), HasSubstr("reads its program from standard input"));
  }
  for (const std::vector<const char*>& program :
       std::vector<std::vector<const char*>>{{"sh", "-c", "true"},
                                             {"sh", "-ec", "true"},
                                             {"sh", "job.sh"},
                                             {"sh", "--help"},
                                             {"cat"},
                                             {"perl", "-v"},
                                             {"python_env"},
                                             {"mesh"}}) {
    EXPECT_EQ(two(program), "");
  }
  EXPECT_EQ(refused({"--nproc-per-node=2", "--stdin=0", "--no-python", "sh"}), "");
  EXPECT_EQ(refused({"--no-python", "sh"}), "") << "a lone worker reads it";
  EXPECT_THAT(refused({"--no-python", "setsid", "./train"}), HasSubstr("write setsid --wait"));
  EXPECT_THAT(two({"setsid", "-c", "--fork", "./train", "-w"}), HasSubstr("write setsid --wait"));
  EXPECT_THAT(two({"--also", "-n 1 setsid ./train", "./train"}), HasSubstr("write setsid --wait"));
  for (const char* waits : {"-w", "--wait", "-cw", "--help", "-V"}) {
    EXPECT_EQ(two({"setsid", waits, "./train"}), "") << waits;
  }
}

TEST(MakeJobSpec, TakesThePrefixFromTorchrunsVariable) {
  const std::vector<std::string> env = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=[env]"};
  EXPECT_EQ(Make({"x"}, env)->logs.prefix_template, "[env]");
  EXPECT_EQ(Make({"--log-prefix=[cli]", "x"}, env)->logs.prefix_template, "[cli]");
  EXPECT_EQ(Make({"--log-line-prefix-template=${hostname} ", "x"}, env)->logs.prefix_template,
            "${hostname} ");
  EXPECT_EQ(Make({"--log-line-prefix-template", "", "x"}, env)->logs.prefix_template, "[env]");
  EXPECT_EQ(Make({"--log-line-prefix-template=x", "--log-prefix=[cli]", "x"})->logs.prefix_template,
            "[cli]");
  EXPECT_EQ(Make({"x"})->logs.prefix_template, "");
}

TEST(MakeJobSpec, WarnsOfLocalRanksThatThisNodeLacks) {
  EXPECT_THAT(Make({"--redirects=0:1,12:3", "--tee=1:1", "--local-ranks-filter=0,2",
                    "--nproc-per-node=2", "x"})
                  ->warnings,
              ElementsAre("--redirects names local rank 12, and this node has 2 workers: local "
                          "ranks 0 to 1",
                          "--local-ranks-filter names local rank 2, and this node has 2 workers: "
                          "local ranks 0 to 1"));
  EXPECT_THAT(Make({"--tee=1:1", "x"})->warnings,
              ElementsAre("--tee names local rank 1, and this node has 1 worker: local rank 0"));
  EXPECT_THAT(Make({"--tee=3", "--redirects=0:1", "--local-ranks-filter=0", "x"})->warnings,
              IsEmpty());
}

TEST(MakeJobSpec, KeepsTheRendezvousPortFromAStoreOfRank0) {
  const auto spec = Make({"--nnodes=2", "--master-addr=n0", "--master-store=worker", "x"});
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->worker_store);
  EXPECT_FALSE(spec->master_port.has_value());
  EXPECT_THAT(spec->warnings, ElementsAre(HasSubstr("MASTER_PORT is a port of its own")));
  const auto one = Make({"--master-port=29511", "--master-store=worker", "x"});
  EXPECT_EQ(one->master_port, 29511);
  EXPECT_THAT(one->warnings, IsEmpty());
}

// A lone worker may start the ranks itself; those ranks do not look for hlaunch's store.
TEST(MakeJobSpec, LeavesTheStoreToALoneWorker) {
  const std::vector<std::string> token = {absl::StrCat("HLAUNCH_TOKEN=", kOtherToken)};
  const auto serves = [](const std::vector<const char*>& words,
                         const std::vector<std::string>& env = {}) {
    return Make(words, env)->worker_store;
  };
  EXPECT_TRUE(serves({"x"}));
  EXPECT_TRUE(serves({"--per-node", "x"}));
  EXPECT_TRUE(serves({"--nnodes=2", "--per-node", "x"}));
  EXPECT_FALSE(serves({"--nproc-per-node=2", "x"}));
  EXPECT_FALSE(serves({"--nnodes=2", "x"})) << "hlaunch has started both ranks";
  EXPECT_FALSE(serves({"--nnodes=2", "--per-node", "x"}, token)) << "it would be in clear";
  EXPECT_TRUE(serves({"--nnodes=2", "--per-node", "--tls=off", "x"}, token));
  EXPECT_FALSE(serves({"--nnodes=2", "--per-node", "--store-proxy", "x"}));
  EXPECT_FALSE(serves({"--store-max-value=16M", "x"})) << "of hlaunch's own store";
  EXPECT_FALSE(serves({"--master-store=agent", "x"}));
  EXPECT_TRUE(serves({"--master-store=worker", "--nproc-per-node=2", "x"}));
}

TEST(MakeJobSpec, TakesThePortOfOneNodesStaticEndpointForTheWorkers) {
  const auto port = [](const std::vector<const char*>& words) { return Make(words)->master_port; };
  EXPECT_EQ(port({"--rdzv-backend=static", "--rdzv-endpoint=localhost:29511", "x"}), 29511);
  EXPECT_EQ(port({"--rdzv-backend=static", "--rdzv-endpoint=localhost:29511", "--master-port=29512",
                  "x"}),
            29511);
  EXPECT_EQ(port({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29511", "x"}), std::nullopt);
  EXPECT_EQ(port({"--rdzv-backend=static", "--rdzv-endpoint=localhost:0", "x"}), std::nullopt);
  EXPECT_EQ(port({"--master-port=29512", "x"}), 29512);
}

// When called as torchrun, hlaunch prefixes lines as torchrun does.
TEST(MakeJobSpec, HasTorchrunsPrefixByItsName) {
  const auto prefix = [](std::vector<const char*> words, const char* program = "torchrun") {
    words.insert(words.begin(), program);
    const auto options = ParseOptions(static_cast<int>(words.size()), words.data(), Environment());
    return MakeJobSpec(*options, Environment(), FakeProbes())->logs.prefix_template;
  };
  EXPECT_EQ(prefix({"--nproc-per-node=2", "x"}), "[${role_name}${local_rank}]:");
  EXPECT_EQ(prefix({"--nnodes=2", "--rdzv-endpoint=a", "x"}), "[${role_name}${local_rank}]:");
  EXPECT_EQ(prefix({"--tee=3", "x"}), "[${role_name}${local_rank}]:");
  EXPECT_EQ(prefix({"x"}), "") << "a lone worker's bytes pass unchanged";
  EXPECT_EQ(prefix({"--nproc-per-node=2", "--log-prefix=[x]", "x"}), "[x]");
  EXPECT_EQ(prefix({"--nproc-per-node=2", "x"}, "hlaunch"), "");
}

TEST(MakeJobSpec, TakesTheTokenFromTheNearestSource) {
  const std::vector<const char*> plain = {"--nnodes=2", "x"};
  const std::vector<const char*> file = {"--nnodes=2", "--token-file=/t", "x"};
  EXPECT_EQ(Make(plain)->token, "");
  const std::string in_environment = absl::StrCat("HLAUNCH_TOKEN=", kOtherToken);
  EXPECT_EQ(Make(plain, {in_environment})->token, kOtherToken);
  EXPECT_EQ(Make(plain, {in_environment, "HOME=/home/ann"})->token, kOtherToken);
  EXPECT_EQ(Make(plain, {in_environment, "HLAUNCH_TOKEN_FILE=/t"})->token, kToken);
  EXPECT_EQ(Make(file, {in_environment})->token, kToken);
  EXPECT_EQ(Make(plain, {"HOME=/home/ann"})->token, kToken);
  EXPECT_EQ(Make(plain, {"HOME=/home/ann"}, FakeProbes(absl::NotFoundError("no")))->token, "");
  EXPECT_EQ(Make({"--nnodes=2", "--token-file=none", "x"}, {in_environment})->token, "");
  EXPECT_EQ(Make({"--token-file=/t", "x"})->token, "");  // A single node needs no token.
}

// Otherwise MASTER_ADDR would not be node rank 0's address on all nodes.
TEST(MakeJobSpec, CarriesTheStoresTrafficOnlyWhereItIsAskedFor) {
  using Words = std::vector<const char*>;
  const std::vector<std::string> token = {absl::StrCat("HLAUNCH_TOKEN=", kOtherToken)};
  const auto proxy = [](const auto& spec) {
    return std::pair(spec->store_proxy, spec->store_sealed);
  };
  const std::pair sealed(true, true), clear(true, false), none(false, false), left(false, true);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "x"}, token)), left);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "x"})), none);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "--store-proxy", "x"})), clear);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "--store-proxy", "x"}, token)), sealed);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "--no-store-proxy", "x"}, token)), left);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "--master-store=worker", "x"}, token)), left);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "--tls-cert=c", "--tls-key=k", "--tls-ca=a", "x"})),
            left);
  EXPECT_EQ(proxy(Make(Words{"--store-proxy", "x"}, token)), none);  // One node.
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "--tls=off", "x"}, token)), none);
  EXPECT_EQ(proxy(Make(Words{"--nnodes=2", "--tls=off", "--store-proxy", "x"}, token)), clear);
}

TEST(MakeJobSpec, TakesTheWordOnTls) {
  const std::vector<std::string> token = {absl::StrCat("HLAUNCH_TOKEN=", kOtherToken)};
  using Words = std::vector<const char*>;
  EXPECT_TRUE(Make(Words{"--nnodes=2", "x"}, token)->tls);
  const auto off = Make(Words{"--nnodes=2", "--tls", "off", "x"}, token);
  EXPECT_FALSE(off->tls);
  EXPECT_EQ(off->token, kOtherToken);
  EXPECT_THAT(off->warnings, IsEmpty());
  EXPECT_THAT(Make(Words{"--nnodes=2", "--tls", "off", "x"})->warnings,
              ElementsAre(HasSubstr("--tls off changes nothing")));
  EXPECT_FALSE(
      Make(Words{"--nnodes=2", "--tls=off", "--tls-cert=c", "--tls-key=k", "--tls-ca=a", "x"})
          .ok());
}

TEST(MakeJobSpec, RefusesATokenItCannotUse) {
  const std::vector<const char*> words = {"--nnodes=2", "--token-file=/t", "x"};
  for (const std::string& content : {std::string(), std::string(" \n"), std::string("two\nlines"),
                                     std::string("caf\xc3\xa9"), std::string(5000, 'a')}) {
    const auto spec = Make(words, {}, FakeProbes(TokenFile{content, false}));
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr("/t"));
    EXPECT_THAT(std::string(spec.status().message()), Not(HasSubstr("lines")));
  }
  for (const absl::Status& missing :
       {absl::InvalidArgumentError("no"), absl::NotFoundError("no")}) {
    EXPECT_EQ(Make(words, {}, FakeProbes(missing)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(OwnTokenFile, IsWhereTheUsersOwnFilesAre) {
  EXPECT_EQ(OwnTokenFile(Environment({"HOME=/home/ann"})), "/home/ann/.config/hlaunch/token");
  EXPECT_EQ(OwnTokenFile(Environment({"HOME=/home/ann", "XDG_CONFIG_HOME=/etc/ann"})),
            "/etc/ann/hlaunch/token");
  EXPECT_EQ(OwnTokenFile(Environment({"HOME=/home/ann", "XDG_CONFIG_HOME=relative"})),
            "/home/ann/.config/hlaunch/token");
  EXPECT_EQ(OwnTokenFile(Environment()), "");
}

TEST(MakeJobSpec, WarnsOfATokenThatOthersCanRead) {
  const auto spec =
      Make({"--nnodes=2", "--token-file=/t", "x"}, {}, FakeProbes(TokenFile{kToken, true}));
  EXPECT_THAT(spec->warnings,
              ElementsAre("token file /t can be read by other users; run: chmod 600 /t"));
}

TEST(RealHostProbes, TakeAGroupThatReadsTheFileOfAnotherOwnerForThisUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make another user's file";
  const std::string path = absl::StrCat(testing::TempDir(), "hlaunch_given_token.", ::getpid());
  std::ofstream(path) << "abc\n";
  ASSERT_EQ(::chown(path.c_str(), 65532, static_cast<gid_t>(-1)), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0440), 0);
  EXPECT_FALSE(RealHostProbes().read_token_file(path)->others_can_read);
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_TRUE(RealHostProbes().read_token_file(path)->others_can_read);
  ::unlink(path.c_str());
}

TEST(RealHostProbes, ReadTokenFiles) {
  const HostProbes probes = RealHostProbes();
  const std::string path = absl::StrCat(testing::TempDir(), "hlaunch_token.", ::getpid());
  std::ofstream(path) << "abc\n";
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto token = probes.read_token_file(path);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->content, "abc\n");
  EXPECT_TRUE(token->others_can_read);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_FALSE(probes.read_token_file(path)->others_can_read);
  EXPECT_EQ(probes.read_token_file(path + ".not").status().message(),
            "cannot read the token file " + path + ".not: No such file or directory");
  EXPECT_EQ(probes.read_token_file(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
  ::unlink(path.c_str());
}

TEST(BindWorkers, DrawsNoBindingToAMachineThatIsOnlyDescribed) {
  ::setenv("HWLOC_SYNTHETIC", "pack:2 core:4 pu:2", 1);
  Options options = Read({"--bind", "core", "--report-bindings", "train.py"});
  JobSpec real, planned;
  real.worker.nproc = planned.worker.nproc = 2;
  BindWorkers(options, real);
  options.instead.dry_run = true;
  BindWorkers(options, planned);
  ::unsetenv("HWLOC_SYNTHETIC");
  EXPECT_THAT(real.warnings, ElementsAre(HasSubstr("workers are not bound")));
  EXPECT_THAT(real.binding_lines, IsEmpty());
  EXPECT_EQ(real.binding, "");
  EXPECT_EQ(planned.worker.bindings.size(), 2u);
  EXPECT_THAT(planned.binding_lines, Not(IsEmpty()));
}

TEST(RealHostProbes, CountUsableCpus) { EXPECT_GE(RealHostProbes().usable_cpus(), 1); }

}  // namespace
}  // namespace hlaunch
