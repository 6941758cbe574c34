// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/explain_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/hosts/end_of_job.h"
#include "launcher/cli/hosts/exported.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

FailedStart Failed(std::vector<std::string> lines, int exit_code) {
  FailedStart failed;
  failed.host = "eva@c9";
  failed.starter = "ssh";
  failed.agent_path = "/opt/bin/hlaunch";
  failed.own_version = "1+abc";
  failed.exit_code = exit_code;
  failed.last_lines = std::move(lines);
  return failed;
}

TEST(ExplainStart, SaysSshsOwnWordsAndWhatHelps) {
  const struct {
    const char* line;
    const char* way_out;
    bool try_again;
  } kCases[] = {
      {"eva@c9: Permission denied (publickey).", "ssh-copy-id eva@c9", false},
      {"Host key verification failed.", "ssh-keyscan -H c9 >> ~/.ssh/known_hosts", false},
      {"Host key for c9 has changed and you have requested strict checking.", "ssh-keygen -R c9",
       false},
      {"ssh: connect to host c9 port 22: Connection refused", "no sshd listens", false},
      {"ssh: connect to host c9 port 22: Connection timed out", "ping c9", false},
      {"ssh: Could not resolve hostname c9: Name or service not known", "getent hosts c9", false},
      {"kex_exchange_identification: read: Connection reset by peer", "MaxStartups", true},
      {"Connection closed by remote host", "MaxStartups", true},
  };
  for (const auto& each : kCases) {
    const StartVerdict verdict = ExplainStart(Failed({"noise", each.line, ""}, 255));
    EXPECT_THAT(verdict.cause, HasSubstr(each.line));
    EXPECT_THAT(verdict.way_out, HasSubstr(each.way_out)) << each.line;
    EXPECT_EQ(verdict.try_again, each.try_again) << each.line;
  }
}

TEST(ExplainStart, AProgramThatIsNotThereIsSoughtInThePath) {
  const StartVerdict verdict =
      ExplainStart(Failed({"bash: /opt/bin/hlaunch: No such file or directory"}, kExitNotFound));
  EXPECT_TRUE(verdict.try_the_path);
  EXPECT_THAT(verdict.cause, HasSubstr("No such file"));
  EXPECT_THAT(verdict.way_out, HasSubstr("--agent-path"));
  EXPECT_TRUE(verdict.needs_program);
  EXPECT_FALSE(ExplainStart(Failed({}, kExitNotExecutable)).try_the_path);
  FailedStart pushed = Failed({"sh: /proc/self/fd/3: Permission denied"}, kExitNotExecutable);
  pushed.pushed = true;
  EXPECT_FALSE(ExplainStart(pushed).needs_program);
  EXPECT_THAT(ExplainStart(pushed).way_out, HasSubstr("TMPDIR"));
  EXPECT_THAT(ExplainStart(pushed).way_out, HasSubstr("a dd that knows iflag=fullblock"));
}

TEST(ExplainStart, SaysWhatTheAgentMet) {
  FailedStart failed = Failed({}, kExitNotStarted);
  failed.started = true;
  failed.other_version = "2+def";
  EXPECT_EQ(ExplainStart(failed).cause, "hlaunch there is 2+def, and here 1+abc");
  EXPECT_TRUE(ExplainStart(failed).needs_program);
  failed.other_version.clear();
  failed.error_kind = "directory";
  failed.error = "no working directory /x there: No such file or directory";
  EXPECT_THAT(ExplainStart(failed).cause, HasSubstr("/x"));
  EXPECT_THAT(ExplainStart(failed).way_out, HasSubstr("make it there"));
  failed.error_kind = "reach";
  failed.error = "cannot reach this host: 10.0.0.1:4 (No route to host)";
  EXPECT_THAT(ExplainStart(failed).way_out, HasSubstr("firewall"));
}

TEST(ExplainStart, ASilentStarterIsTimedOut) {
  FailedStart failed = Failed({}, 0);
  failed.exit_code.reset();
  failed.timed_out = true;
  failed.waited_s = 20;
  EXPECT_THAT(ExplainStart(failed).cause, HasSubstr("ssh did not answer within 20 s"));
}

TEST(RepeatsTheEnd, OnlyWhatSrunSaysOfTheExitCode) {
  EXPECT_TRUE(RepeatsTheEnd("srun", "srun: error: n1: task 0: Exited with exit code 37\n"));
  EXPECT_FALSE(RepeatsTheEnd("srun", "srun: error: n1: task 0: Killed\n"));
  EXPECT_FALSE(RepeatsTheEnd("ssh", "srun: error: n1: task 0: Exited with exit code 37\n"));
}

TEST(GoesOnWithout, ADrainedOrALostNodeIfEnoughOthersLive) {
  EXPECT_TRUE(GoesOnWithout(kExitOk, 2, 2));
  EXPECT_TRUE(GoesOnWithout(kExitAgentLost, 2, 2));
  EXPECT_FALSE(GoesOnWithout(kExitOk, 1, 2));  // Too few nodes: the job is over.
  EXPECT_FALSE(GoesOnWithout(7, 2, 2));        // The node failed.
}

TEST(ExitCodeOfJob, IsTheJobsOwn) {
  const auto code = [](std::vector<std::optional<int>> codes, bool failed = false, int signal = 0) {
    JobEnd end;
    end.start_failed = failed;
    end.stop_signal = signal;
    end.exit_codes = std::move(codes);
    return ExitCodeOfJob(end);
  };
  EXPECT_EQ(code({0, 0}), kExitOk);
  EXPECT_EQ(code({7, 7}), 7);
  EXPECT_EQ(code({kExitAgentLost, 7}), 7);
  EXPECT_EQ(code({std::nullopt, 7}), 7);
  EXPECT_EQ(code({kExitNodeStopped, std::nullopt}), kExitNodeStopped);
  EXPECT_EQ(code({std::nullopt}), kExitNodeLost);
  EXPECT_EQ(code({kExitNodeStopped, std::nullopt}, true), kExitNotStarted);
  EXPECT_EQ(code({130, 130}, false, 2), 130);
  EXPECT_EQ(code({0, 0}, false, 2), kExitOk);
  JobEnd cut;  // No connection is left to report it.
  cut.exit_codes = {std::nullopt, kExitNodeStopped};
  cut.decided = 3;
  EXPECT_EQ(ExitCodeOfJob(cut), 3);
}

TEST(InheritedVariables, AreAllButWhatExportLeavesOutAndThenThoseOfX) {
  const Environment here({"HOME=/root", "A=1", "SECRET=x", "HLAUNCH_TOKEN=t"});
  HostWish wish;
  const auto inherited = [&] { return *InheritedVariables(wish, here, "HLAUNCH_TOKEN"); };
  EXPECT_THAT(inherited(), UnorderedElementsAre("HOME=/root", "A=1", "SECRET=x"));
  wish.variables = {"A=2", "B=b=c", "HOME"};
  EXPECT_THAT(inherited(), UnorderedElementsAre("HOME=/root", "A=2", "SECRET=x", "B=b=c"));
  wish.exported = "none";
  EXPECT_THAT(inherited(), UnorderedElementsAre("HOME=/root", "A=2", "B=b=c"));
  wish.variables.clear();
  wish.exported = "A,C";
  EXPECT_THAT(inherited(), ElementsAre("A=1"));
  wish.variables = {"H*"};
  EXPECT_THAT(inherited(), UnorderedElementsAre("A=1", "HOME=/root"));
  wish.variables = {"MISSING"};
  EXPECT_FALSE(InheritedVariables(wish, here, "").ok());
}

TEST(ExportedVariables, NameThePythonOfTheEnvironmentInWhichHlaunchLies) {
  const Environment here({"HLAUNCH_PYTHON=/v/bin/python3", "HLAUNCH_TOKEN=t"});
  for (const char* exported : {"", "none", "all"}) {
    HostWish wish;
    wish.exported = exported;
    EXPECT_THAT(*ExportedVariables(wish, here), ElementsAre("HLAUNCH_PYTHON=/v/bin/python3"));
  }
}

TEST(ExportedVariables, AreThoseOfPathsAndLibrariesAndNoSecrets) {
  const Environment here({"PATH=/bin", "NCCL_DEBUG=INFO", "HF_HOME=/hf", "HF_TOKEN=x",
                          "HLAUNCH_TOKEN=x", "MY=1", "HOME=/root", "CUDA_VISIBLE_DEVICES=0",
                          "HLAUNCH_COMM_X=1", "SSH_AUTH_SOCK=/s"});
  HostWish wish;
  EXPECT_THAT(*ExportedVariables(wish, here),
              ElementsAre("HF_HOME=/hf", "HLAUNCH_COMM_X=1", "NCCL_DEBUG=INFO", "PATH=/bin"));
  wish.variables = {"MY", "HF_TOKEN", "NEW=a=b", "PATH=/usr/bin"};
  wish.exported = "none";
  EXPECT_THAT(*ExportedVariables(wish, here),
              ElementsAre("HF_TOKEN=x", "MY=1", "NEW=a=b", "PATH=/usr/bin"));
  wish.variables = {};
  EXPECT_THAT(*ExportedVariables(wish, here), IsEmpty());
  wish.exported = "all";
  EXPECT_THAT(*ExportedVariables(wish, here), ElementsAre("HF_HOME=/hf", "HLAUNCH_COMM_X=1", "MY=1",
                                                          "NCCL_DEBUG=INFO", "PATH=/bin"));
  wish.exported = "MY,HOME,HF_TOKEN";
  EXPECT_THAT(*ExportedVariables(wish, here), ElementsAre("HOME=/root", "MY=1"));
  for (const char* wrong : {"NOT_SET", "HLAUNCH_TOKEN=x", "=x", "A B=1"}) {
    wish.variables = {wrong};
    EXPECT_FALSE(ExportedVariables(wish, here).ok()) << wrong;
  }
}

}  // namespace
}  // namespace hlaunch
