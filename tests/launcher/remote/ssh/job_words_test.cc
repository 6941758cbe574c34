// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/job_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cli/options/parse_options.h"
#include "launcher/remote/ssh/dial_back.h"
#include "launcher/remote/ssh/make_plan.h"
#include "launcher/remote/ssh/starter.h"
#include "launcher/remote/ssh/take_start.h"

namespace hlaunch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Options Parse(std::vector<const char*> words, const Environment& environment = Environment()) {
  words.insert(words.begin(), "hlaunch");
  auto options = ParseOptions(static_cast<int>(words.size()), words.data(), environment);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : Options();
}

TEST(WordsForHost, AreTheUsersWithoutWhatConcernsTheStart) {
  Options options =
      Parse({"-H", "a,b:4", "-x", "FOO=1", "-xBAR=2", "--nproc-per-node=2", "--launch-agent",
             "rsh %h", "--rdzv-conf", "join_timeout=9", "--stdin", "-m", "pkg.train", "--x"});
  std::vector<TargetHost> hosts = {{"", "a", {}}, {"", "b", 4}};
  ASSERT_TRUE(FitNodesToHosts(options, hosts).ok());
  EXPECT_EQ(absl::StrJoin(WordsForHost(options, hosts[1], 1, "id"), " "),
            "--nproc-per-node=2 -m --nnodes 2:2 --node-rank 1 --rdzv-id id --rdzv-conf "
            "join_timeout=9,is_host=0 --on-host-loss end --cluster none --quiet");
  EXPECT_EQ(WordsForHost(options, hosts[0], 0, "id").back(), "--stdin");
}

TEST(ExportWords, AreForThisHostWhereTheUserChoosesVariables) {
  const auto words = [](std::vector<const char*> typed) {
    typed.insert(typed.end(), {"--hosts=a,b", "x"});
    return absl::StrJoin(ExportWords(Parse(typed).hosts), " ");
  };
  EXPECT_EQ(words({"-x", "FOO=1"}), "");
  EXPECT_EQ(words({"--export", "none"}), "--export none");
  EXPECT_EQ(words({"--export=A,B", "-xFOO=1"}), "--export A,B --export-var FOO=1");
}

TEST(WordsForHost, AreDividedWhereOneWordHasSeveralOptions) {
  Options options = Parse({"-H", "a,b", "-vxFOO=1", "-vx", "BAR=-v2", "train.py"});
  EXPECT_TRUE(SaysOption(options, "--export-var"));
  EXPECT_THAT(absl::StrJoin(WordsForHost(options, {"", "b", {}}, 1, "id"), " "),
              testing::StartsWith("-v -v --nnodes"));
}

TEST(WordsForHost, TakeTheWorkersOfTheList) {
  Options options = Parse({"--hosts", "a:4", "train.py"});
  std::vector<TargetHost> hosts = {{"", "a", 4}};
  ASSERT_TRUE(FitNodesToHosts(options, hosts).ok());
  EXPECT_THAT(absl::StrJoin(WordsForHost(options, hosts[0], 0, "id"), " "),
              HasSubstr("--nproc-per-node 4"));
}

TEST(WordsForHost, TakeTypedNumbersOfWorkersBeforeTheEnvironments) {
  Options options = Parse({"--hosts", "a:2,b", "train.py"}, Environment({"PET_NPROC_PER_NODE=3"}));
  std::vector<TargetHost> hosts = {{"", "a", 2}, {"", "b", {}}};
  ASSERT_TRUE(FitNodesToHosts(options, hosts).ok());
  const std::string a = absl::StrJoin(WordsForHost(options, hosts[0], 0, "id"), " ");
  EXPECT_THAT(a, HasSubstr("--nproc-per-node 2"));
  EXPECT_THAT(a, Not(HasSubstr("--nproc-per-node=3")));
  EXPECT_THAT(absl::StrJoin(WordsForHost(options, hosts[1], 1, "id"), " "),
              HasSubstr("--nproc-per-node=3"));
}

TEST(OneHostTwice, NamesBothNamesOfThisHost) {
  const std::vector<TargetHost> hosts = {{"", "localhost", {}}, {"", "b", {}}, {"", "me", {}}};
  EXPECT_EQ(OneHostTwice(hosts, {true, false, false}), "");
  EXPECT_THAT(OneHostTwice(hosts, {true, false, true}),
              HasSubstr("localhost and me are both this host"));
}

TEST(OneMachineTwice, NamesBothNamesOfOneMachine) {
  const std::vector<TargetHost> hosts = {{"", "a", {}}, {"eva", "b", {}}, {"", "c", {}}};
  EXPECT_EQ(OneMachineTwice(hosts, {"m1", "m2", ""}), "");
  EXPECT_EQ(OneMachineTwice(hosts, {"m1", "", ""}), "");
  EXPECT_EQ(OneMachineTwice(hosts, {"", "", ""}), "") << "it is not known of any yet";
  EXPECT_THAT(OneMachineTwice(hosts, {"m1", "m2", "m1"}), HasSubstr("a and c are one machine"));
  EXPECT_THAT(OneMachineTwice(hosts, {"m1", "m2", "m2"}), HasSubstr("eva@b and c are one machine"));
}

TEST(WordsForHost, LeaveDevicesToTheSchedulerWhoseJobItIs) {
  Options options = Parse({"train.py"}, Environment({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a,b"}));
  std::vector<TargetHost> hosts = {{"", "a", 4}, {"", "b", 4}};
  ASSERT_TRUE(FitNodesToHosts(options, hosts).ok());
  EXPECT_EQ(absl::StrJoin(WordsForHost(options, hosts[1], 1, "id"), " "),
            "--nnodes 2:2 --node-rank 1 --rdzv-id id --rdzv-conf is_host=0 --on-host-loss "
            "end --cluster slurm "
            "--quiet");
}

// The file with the hosts and slots is not on the other hosts.
TEST(WordsForHost, TakeGridEnginesSlotsFromHere) {
  const std::string file = testing::TempDir() + "/hlaunch_pe_hosts";
  std::ofstream(file) << "n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 UNDEFINED\n";
  Options options =
      Parse({"--hosts", "allocation", "t.py"}, Environment({"JOB_ID=9", "PE_HOSTFILE=" + file}));
  std::filesystem::remove(file);
  EXPECT_EQ(options.hosts.hosts, "n1:4,n2:2");
  std::vector<TargetHost> hosts = {{"", "n1", 4}, {"", "n2", 2}};
  ASSERT_TRUE(FitNodesToHosts(options, hosts).ok());
  EXPECT_THAT(absl::StrJoin(WordsForHost(options, hosts[1], 1, "id"), " "),
              HasSubstr("--cluster none --nproc-per-node 2"));
}

TEST(WordsForHost, HaveEachItsPartOfAllRanks) {
  const auto parts = [](std::vector<const char*> words, std::vector<TargetHost> hosts) {
    Options options = Parse(std::move(words));
    const absl::Status fits = FitNodesToHosts(options, hosts);
    if (!fits.ok()) return std::string(fits.message());
    std::string found;
    for (const TargetHost& host : hosts) {
      const auto all = WordsForHost(options, host, 0, "id");
      const auto at = std::find(all.begin(), all.end(), "--nproc-per-node");
      EXPECT_EQ(std::count(all.begin(), all.end(), "--nproc-per-node"), 1);
      absl::StrAppend(&found, host.name, *(at + 1), " ");
    }
    return found;
  };
  EXPECT_EQ(
      parts({"-H", "a,b,c", "-n", "8", "t.py"}, {{"", "a", {}}, {"", "b", {}}, {"", "c", {}}}),
      "a3 b3 c2 ");
  EXPECT_EQ(parts({"-H", "a,b", "-np", "1", "t.py"}, {{"", "a", {}}, {"", "b", {}}}), "a1 ");
  EXPECT_EQ(parts({"-H", "a:4,b:4", "-n", "6", "t.py"}, {{"", "a", 4}, {"", "b", 4}}), "a4 b2 ");
  // As in mpirun: so many of all ranks on each host.
  EXPECT_EQ(parts({"-H", "a,b,c", "-n", "8", "--nproc-per-node", "4", "t.py"},
                  {{"", "a", {}}, {"", "b", {}}, {"", "c", {}}}),
            "a4 b4 ");
  EXPECT_EQ(parts({"-H", "a:8,b:8", "-n", "2", "--nproc-per-node", "1", "t.py"},
                  {{"", "a", 8}, {"", "b", 8}}),
            "a1 b1 ");
  EXPECT_EQ(parts({"-H", "a:8,b", "-n", "4", "--nproc-per-node", "1", "t.py"},
                  {{"", "a", 8}, {"", "b", {}}}),
            "-n 4: the hosts have room for 2 workers, 2 hosts with --nproc-per-node 1 (-N) each; "
            "name more hosts, or leave one of the two numbers out");
  // Each host checks its part, as it alone knows its sockets.
  EXPECT_EQ(parts({"-H", "a:8,b:8", "-n", "4", "--nproc-per-node", "1:socket", "t.py"},
                  {{"", "a", 8}, {"", "b", 8}}),
            "a1:socket=2 b1:socket=2 ");
  EXPECT_EQ(parts({"-H", "a,b", "--num_processes", "3", "t.py"}, {{"", "a", {}}, {"", "b", {}}}),
            "a2 b1 ");
  EXPECT_THAT(parts({"-H", "a:1", "--num-processes=3", "t.py"}, {{"", "a", 1}}),
              HasSubstr("--num-processes 3: the hosts have room for 1 worker;"));
  EXPECT_THAT(parts({"-H", "a:4,b", "-n", "6", "t.py"}, {{"", "a", 4}, {"", "b", {}}}),
              HasSubstr("room for 5 workers"));
  EXPECT_THAT(
      parts({"-H", "a,b", "-n", "1", "--nnodes", "2", "t.py"}, {{"", "a", {}}, {"", "b", {}}}),
      HasSubstr("-n 1 is on 1 host and --nnodes asks for 2"));
  EXPECT_THAT(
      parts({"-H", "a,b", "-n", "4", "--nnodes", "1:2", "t.py"}, {{"", "a", {}}, {"", "b", {}}}),
      HasSubstr("give --nproc-per-node"));
}

TEST(FitNodesToHosts, CountsHosts) {
  std::vector<TargetHost> hosts = {{"", "a", {}}, {"", "b", {}}, {"", "c", {}}};
  Options options = Parse({"--hosts", "a,b,c", "--nnodes", "1:2", "train.py"});
  auto left = hosts;
  ASSERT_TRUE(FitNodesToHosts(options, left).ok());
  EXPECT_EQ(left.size(), 2u);
  options = Parse({"--hosts", "a,b,c", "--spares", "1", "train.py"});
  left = hosts;
  ASSERT_TRUE(FitNodesToHosts(options, left).ok());
  EXPECT_EQ(options.policy.max_nodes, 2);
  EXPECT_EQ(left.size(), 3u);
  options = Parse({"--hosts", "a,b,c", "--nnodes", "4", "train.py"});
  EXPECT_FALSE(FitNodesToHosts(options, left).ok());
}

TEST(HostOptions, FitTogether) {
  const auto says = [](std::vector<const char*> words, const char* variable = "") {
    words.insert(words.begin(), "hlaunch");
    const auto options = ParseOptions(static_cast<int>(words.size()), words.data(),
                                      Environment({std::string("HLAUNCH_HOSTS=") + variable}));
    return options.ok() ? "hosts " + options->hosts.hosts : std::string(options.status().message());
  };
  EXPECT_THAT(says({"--include", "a", "t.py"}), HasSubstr("add --hosts"));
  EXPECT_THAT(says({"--hosts", "a", "--rdzv-endpoint", "b", "t.py"}), HasSubstr("leave one"));
  EXPECT_THAT(says({"t.py"}, "a,b"), "hosts a,b");
  EXPECT_THAT(says({"--hosts", "c", "t.py"}, "a,b"), "hosts c");
  EXPECT_THAT(says({"--standalone", "t.py"}, "a,b"), "hosts ");
  EXPECT_THAT(says({"--nnodes", "1", "t.py"}, "a,b"), "hosts ");
  EXPECT_THAT(says({"--nnodes", "1:1", "t.py"}, "a,b"), "hosts ");
  EXPECT_THAT(says({"--nnodes", "1:2", "t.py"}, "a,b"), "hosts a,b");
  EXPECT_THAT(says({"--nnodes", "2", "--rdzv-endpoint", "x", "t.py"}, "a,b"), "hosts ");
}

TEST(StartCommand, IsAFixedListOfWords) {
  const TargetHost host = {"eva", "c9", {}};
  Starter ssh;
  ssh.ssh_words = {"-p", "22"};
  const std::string command = absl::StrJoin(StartCommand(ssh, host, false, "/x/hlaunch"), " ");
  EXPECT_THAT(command, HasSubstr("-oBatchMode=yes"));
  EXPECT_THAT(command, HasSubstr(" -l eva -p 22 -- c9 /x/hlaunch agent --stdin"));
  EXPECT_THAT(StartCommand(ssh, host, false, "/in st/hlaunch"), Contains("'/in st/hlaunch'"));
  EXPECT_THAT(StartCommand(ssh, host, true, "/in st/hlaunch"), Contains("/in st/hlaunch"));
  EXPECT_THAT(StartCommand(ssh, host, true, "/x/hlaunch"),
              ElementsAre("/x/hlaunch", "agent", "--stdin"));
  HostWish wish;
  wish.launch_agent = "kubectl exec -i 'pod %h' %n --";
  const auto other = FindStarter(wish, Environment());
  ASSERT_TRUE(other.ok());
  EXPECT_THAT(
      StartCommand(*other, {"", "p0", {}, 3}, true, "hlaunch"),
      ElementsAre("kubectl", "exec", "-i", "pod p0", "3", "--", "hlaunch", "agent", "--stdin"));
  wish.launch_agent = "a 'b";
  EXPECT_FALSE(FindStarter(wish, Environment()).ok());
}

TEST(PushCommand, LeavesNothingToARemoteShell) {
  Starter starter;
  starter.pushed = std::make_shared<const PushedProgram>(
      PushedProgram{std::string(7 * kPushBlock, 0), "c0ffee"});
  const auto ssh = PushCommand(starter, {"", "c9", {}}, false);
  const std::string script = ssh[ssh.size() - 4];
  EXPECT_EQ(script.front(), '\'');
  EXPECT_EQ(script.back(), '\'');
  EXPECT_EQ(script.find_first_of("'\\!\n", 1), script.size() - 1);
  EXPECT_THAT(absl::StrJoin(ssh, " "), testing::EndsWith("' hlaunch 7 c0ffee"));
  starter.agent = {"kubectl", "exec", "-i", "%h", "--"};
  const auto kubectl = PushCommand(starter, {"", "p0", {}}, false);
  EXPECT_EQ(kubectl[3], "p0");
  EXPECT_EQ(kubectl[7], script.substr(1, script.size() - 2));
}

TEST(StarterEnvironment, KeepsWhatShapesTheJobsTasksFromSrun) {
  const Environment all({"SLURM_JOB_ID=7", "SLURM_NTASKS=8", "SLURM_CPU_BIND=x", "SLURM_CONF=c",
                         "HLAUNCH_TOKEN=secret", "SRUN_CPUS_PER_TASK=2", "A=1",
                         "HLAUNCH_PYTHON=/only/here/python3"});
  Starter starter;
  EXPECT_THAT(StarterEnvironment(starter, all), testing::SizeIs(7));
  starter.agent = {"/usr/bin/srun", "-w", "%h"};
  EXPECT_THAT(StarterEnvironment(starter, all),
              testing::UnorderedElementsAre("SLURM_JOB_ID=7", "SLURM_CONF=c", "A=1"));
}

TEST(ChildEnvironment, HasThePythonOfThisHostsHlaunchElseThatOfTheTerminalsIfItIsHere) {
  const auto python = [](const char* own, const char* sent) {
    own == nullptr ? ::unsetenv("HLAUNCH_PYTHON") : ::setenv("HLAUNCH_PYTHON", own, 1);
    StartMessage message;
    if (sent != nullptr) message.environment = {absl::StrCat("HLAUNCH_PYTHON=", sent)};
    const std::string found = Environment(ChildEnvironment(message)).Get("HLAUNCH_PYTHON");
    ::unsetenv("HLAUNCH_PYTHON");
    return found;
  };
  EXPECT_EQ(python(nullptr, "/bin/sh"), "/bin/sh");
  EXPECT_EQ(python("/own/python3", "/bin/sh"), "/own/python3");
  EXPECT_EQ(python(nullptr, nullptr), "");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(python(nullptr, "/not/here/python3"), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("is not on this host"));
}

TEST(Candidates, BeginWithTheMostPromising) {
  const std::vector<LocalAddress> local = {{"lo", "127.0.0.1"},    {"eth0", "10.0.0.1"},
                                           {"eth0", "fd77::1"},    {"eth0", "fe80::1%eth0"},
                                           {"ib0", "192.168.0.1"}, {"x", "169.254.1.1"}};
  EXPECT_THAT(CandidatesOf("", "192.168.0.1", local, 4),
              ElementsAre("192.168.0.1:4", "10.0.0.1:4", "[fd77::1]:4"));
  EXPECT_THAT(CandidatesOf("fd77::1", "", local, 4),
              ElementsAre("[fd77::1]:4", "10.0.0.1:4", "192.168.0.1:4"));
  EXPECT_THAT(OrderCandidates({"10.0.0.1:4", "10.0.0.2:4"}, "10.0.0.2 5 10.0.0.9 22"),
              ElementsAre("10.0.0.2:4", "10.0.0.1:4"));
  EXPECT_THAT(OrderCandidates({"10.0.0.1:4"}, ""), ElementsAre("10.0.0.1:4"));
}

TEST(DialBack, SaysWhatEachCameTo) {
  const Dialled none = DialBack({"127.0.0.1:1", "nonsense"}, std::chrono::seconds(5));
  EXPECT_EQ(none.place, "");
  EXPECT_THAT(none.why, HasSubstr("127.0.0.1:1 (Connection refused)"));
  EXPECT_EQ(DialBack({}, std::chrono::seconds(5)).place, "");
}

}  // namespace
}  // namespace hlaunch
