// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "proto/contract/exit_code.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A script of what a worker may leave behind: a grandchild in its session, one in its own session,
// and a daemon orphaned twice. It prints "forked" and `name` when all of them live.
std::string ForkingWorker(int name) {
  return absl::StrCat(
      "sleep 1000 & setsid sleep 1000 & setsid sh -c 'setsid sleep 1000 & exit' & wait $!; "
      "echo forked",
      name, "; exec sleep 1000");
}
constexpr int kForked = 4;

Command Kept(std::vector<std::string> words) {
  words.insert(words.begin(), HLAUNCH_KEPT);
  return {.argv = std::move(words)};
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The living descendants of `root`; all of them must be gone later.
std::vector<pid_t> LivePids(pid_t root) {
  std::vector<pid_t> pids;
  for (const ProcessEntry& entry : Descendants(root)) {
    if (entry.state != 'Z') pids.push_back(entry.pid);
  }
  return pids;
}

TEST(Keeper, PassesTheExitCodeOn) {
  for (const int code : {0, 1, 17, kExitAgentLost, 255}) {
    EXPECT_EQ(Child(Kept({"exit", absl::StrCat(code)})).Wait().exit_code, code);
  }
}

TEST(Keeper, ForwardsSignals) {
  Child kept(Kept({}));
  ASSERT_TRUE(kept.ReadUntil("agent "));
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH}) {
    kept.process().Signal(signal);
    ASSERT_TRUE(kept.ReadUntil(absl::StrCat(SignalName(signal), "\n")));
  }
  kept.process().Signal(SIGTERM);
  EXPECT_EQ(kept.Wait().exit_code, 3);
}

TEST(Keeper, TakesThoseSignalsAloneThatTheUserNamed) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"exec"}}) {
    Command command = Kept(words);
    command.env = OurEnvironment();
    command.env.push_back(absl::StrCat("KEPT_SIGNALS=", SIGUSR1, ",", SIGTERM));
    Child kept(command);
    const pid_t agent = kept.PidAfter("agent ");
    kept.process().Signal(SIGUSR1);
    ASSERT_TRUE(kept.ReadUntil("SIGUSR1\n"));
    kept.process().Signal(SIGWINCH);  // Ignored by default.
    kept.process().Signal(SIGHUP);    // Deadly by default; the agent learns only of the death.
    EXPECT_EQ(kept.Wait().signal, SIGHUP);
    EXPECT_TRUE(kept.ReadUntil("the keeper is dead"));
    EXPECT_TRUE(Gone(agent));
    EXPECT_THAT(kept.ReadAll(), Not(AnyOf(HasSubstr("SIGHUP"), HasSubstr("SIGWINCH"))));
  }
}

TEST(Keeper, EndsAllThatAKilledAgentLeaves) {
  Child kept(Kept({"run", ForkingWorker(1), "run", ForkingWorker(2)}));
  const pid_t agent = kept.PidAfter("agent ");
  ASSERT_TRUE(kept.ReadUntil("forked1") && kept.ReadUntil("forked2"));
  const std::vector<pid_t> pids = LivePids(agent);
  EXPECT_EQ(pids.size(), 2u * kForked);
  ASSERT_EQ(::kill(agent, SIGKILL), 0);
  EXPECT_EQ(kept.Wait().exit_code, kExitAgentLost);
  for (const pid_t pid : pids) EXPECT_FALSE(Exists(pid)) << pid;
  EXPECT_THAT(kept.ReadAll(),
              HasSubstr(absl::StrCat("the agent (pid ", agent,
                                     ") was killed by SIGKILL; ended 8 processes")));
}

// The kernel kills a worker when the thread that started it ends; the agent is dead when its last
// thread ends.
TEST(Keeper, CountsWorkersThatDieBeforeTheLastThreadOfTheirAgent) {
  for (int turn = 0; turn < 20; ++turn) {
    Child kept(Kept({"threads", "20", "run", "exec sleep 1000", "run", "exec sleep 1000"}));
    ASSERT_EQ(::kill(kept.PidAfter("agent "), SIGKILL), 0);
    EXPECT_EQ(kept.Wait().exit_code, kExitAgentLost);
    ASSERT_THAT(kept.ReadAll(), HasSubstr("ended 2 processes")) << turn;
  }
}

TEST(Keeper, EndsTheWorkersOfAnAgentThatStandsStillThenTheAgent) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/standstill", ::getpid());
  for (const auto& [how, words] : {std::pair("stop", "it is stopped, as by SIGSTOP"),
                                   std::pair("spin", "it runs, and its loop does not turn")}) {
    Child kept(Kept({"run", ForkingWorker(1), "run", ForkingWorker(2), "death_report", file, "on",
                     absl::StrCat(SIGUSR2), how}));
    const pid_t agent = kept.PidAfter("agent ");
    ASSERT_TRUE(kept.ReadUntil("forked1") && kept.ReadUntil("forked2"));
    const std::vector<pid_t> pids = LivePids(agent);
    EXPECT_EQ(pids.size(), 2u * kForked);
    ASSERT_EQ(::kill(agent, SIGUSR2), 0);
    EXPECT_EQ(kept.Wait().exit_code, kExitAgentLost);
    for (const pid_t pid : pids) EXPECT_FALSE(Exists(pid)) << pid;
    EXPECT_FALSE(Exists(agent));
    const std::string said = kept.ReadAll();
    EXPECT_THAT(said, HasSubstr(absl::StrCat("the agent (pid ", agent, ") ")));
    EXPECT_THAT(said, HasSubstr("ended 8 processes it left behind"));
    EXPECT_THAT(said, Not(HasSubstr("out of memory")));
    EXPECT_THAT(said, HasSubstr(words));
    EXPECT_EQ(ReadFile(file), "told\n");
    std::remove(file.c_str());
  }
}

TEST(Keeper, ThatWasStoppedItselfJudgesOnceItGoesOn) {
  Child kept(Kept({"run", ForkingWorker(1), "on", absl::StrCat(SIGUSR2), "spin"}));
  const pid_t agent = kept.PidAfter("agent ");
  ASSERT_TRUE(kept.ReadUntil("forked1"));
  const std::vector<pid_t> pids = LivePids(agent);
  ASSERT_EQ(::kill(kept.process().pid(), SIGSTOP), 0);
  ASSERT_EQ(::kill(agent, SIGUSR2), 0);
  ASSERT_TRUE(kept.ReadUntil("SIGUSR2\n"));
  for (const pid_t pid : pids) EXPECT_TRUE(Exists(pid)) << pid;
  kept.process().Signal(SIGCONT);
  EXPECT_EQ(kept.Wait().exit_code, kExitAgentLost);
  for (const pid_t pid : pids) EXPECT_FALSE(Exists(pid)) << pid;
  EXPECT_THAT(kept.ReadAll(), HasSubstr("and its loop does not turn"));
}

Command LateWithin(int ms) {
  Command command = Kept({"late"});
  command.env = OurEnvironment();
  command.env.push_back(absl::StrCat("KEPT_BEGIN_MS=", ms));
  return command;
}

TEST(Keeper, EndsAnAgentThatDoesNotBegin) {
  Child kept(LateWithin(300));
  const pid_t agent = kept.PidAfter("agent ");
  EXPECT_EQ(kept.Wait().exit_code, kExitNoResources);
  EXPECT_FALSE(Exists(agent));
  EXPECT_THAT(kept.ReadAll(),
              HasSubstr(absl::StrCat("the agent (pid ", agent,
                                     ") has not begun its work within 0.3 s (it waits")));
}

TEST(Keeper, EndsAnAgentThatDoesNotBeginAndIsAskedToEnd) {
  Child kept(LateWithin(1500));
  const pid_t agent = kept.PidAfter("agent ");
  kept.process().Signal(SIGTERM);
  EXPECT_EQ(kept.Wait().exit_code, kExitSignalBase + SIGTERM);
  EXPECT_FALSE(Exists(agent));
  EXPECT_THAT(kept.ReadAll(),
              HasSubstr("has not begun its work, nor ended after SIGTERM (it waits"));
}

TEST(Keeper, TakesAnAgentThatHasNotBegunAlong) {
  Child kept(LateWithin(1000000));
  const pid_t agent = kept.PidAfter("agent ");
  kept.process().Signal(SIGKILL);
  EXPECT_EQ(kept.Wait().signal, SIGKILL);
  EXPECT_TRUE(Gone(agent));
}

TEST(Keeper, EndsWhatAnExitedAgentLeaves) {
  Child kept(Kept({"run", "setsid sleep 1000 & sleep 1000"}));
  const pid_t agent = kept.PidAfter("agent ");
  const std::vector<pid_t> pids = LivePids(agent);
  ASSERT_EQ(::kill(agent, SIGTERM), 0);
  EXPECT_EQ(kept.Wait().exit_code, 3);
  for (const pid_t pid : pids) EXPECT_FALSE(Exists(pid)) << pid;
}

TEST(Keeper, RunsTheDeathReportOfAKilledAgentOnly) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/death_report", ::getpid());
  EXPECT_EQ(Child(Kept({"death_report", file, "exit", "5"})).Wait().exit_code, 5);
  EXPECT_EQ(ReadFile(file), "");
  EXPECT_EQ(Child(Kept({"death_report", file, "abort"})).Wait().exit_code, kExitAgentLost);
  EXPECT_EQ(ReadFile(file), "told\n");
}

TEST(Keeper, RemovesTheDirectoryOfAKilledAgentOnly) {
  const std::string directory = absl::StrCat(::testing::TempDir(), "/left", ::getpid());
  std::filesystem::create_directories(directory + "/attempt_0/0");
  EXPECT_EQ(Child(Kept({"directory", directory, "exit", "5"})).Wait().exit_code, 5);
  EXPECT_TRUE(std::filesystem::exists(directory));  // A living agent removes it itself.
  EXPECT_EQ(Child(Kept({"directory", directory, "abort"})).Wait().exit_code, kExitAgentLost);
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST(Keeper, HeedsAllThatItsAgentSaidBeforeItsDeath) {
  const std::string base = absl::StrCat(::testing::TempDir(), "/last", ::getpid());
  std::vector<std::string> words;
  for (int i = 0; i < 8; ++i) {
    const std::string directory = absl::StrCat(base, "/", i);
    std::filesystem::create_directories(directory);
    words.insert(words.end(), {"directory", directory});
  }
  words.insert(words.end(), {"death_report", base + "/told", "abort"});
  EXPECT_EQ(Child(Kept(words)).Wait().exit_code, kExitAgentLost);
  EXPECT_EQ(ReadFile(base + "/told"), "told\n");
  std::filesystem::remove(base + "/told");
  EXPECT_TRUE(std::filesystem::is_empty(base));
  std::filesystem::remove(base);
}

TEST(Keeper, TellsTheAgentOfItsDeath) {
  Child kept(Kept({"run", ForkingWorker(1)}));
  const pid_t agent = kept.PidAfter("agent ");
  ASSERT_TRUE(kept.ReadUntil("forked1"));
  const std::vector<pid_t> pids = LivePids(agent);
  EXPECT_EQ(pids.size(), static_cast<size_t>(kForked));
  kept.process().Signal(SIGKILL);
  EXPECT_EQ(kept.Wait().signal, SIGKILL);
  EXPECT_TRUE(kept.ReadUntil("the keeper is dead"));
  EXPECT_TRUE(Gone(agent));
  for (const pid_t pid : pids) EXPECT_FALSE(Exists(pid)) << pid;
}

TEST(Keeper, DiesWithTheAgentAndTakesTheWorkersAlong) {
  Child kept(Kept({"run", "exec sleep 1000"}));
  const pid_t agent = kept.PidAfter("agent ");
  const std::vector<pid_t> workers = LivePids(agent);
  ASSERT_EQ(workers.size(), 1u);
  ASSERT_EQ(::kill(kept.process().pid(), SIGSTOP), 0);  // The stopped keeper cannot help.
  ASSERT_EQ(::kill(agent, SIGKILL), 0);
  kept.process().Signal(SIGKILL);
  EXPECT_TRUE(Gone(workers[0]));
  kept.Wait();
}

TEST(Keeper, KeepsItsAgentOverAnExec) {
  Child kept(Kept({"exec", "run", "exec env; sleep 1000"}));
  const pid_t agent = kept.PidAfter("agent ");
  EXPECT_NE(agent, kept.process().pid());
  kept.process().Signal(SIGUSR1);
  ASSERT_TRUE(kept.ReadUntil("SIGUSR1"));
  kept.process().Signal(SIGKILL);
  EXPECT_TRUE(kept.ReadUntil("the keeper is dead"));
  EXPECT_THAT(kept.seen(), Not(HasSubstr("HLAUNCH_KEEPER_FD")));
  kept.Wait();
}

TEST(Keeper, LeavesSignalsIgnoredThatNohupIgnores) {
  Child kept({.argv = {"/bin/sh", "-c", "trap '' HUP; exec \"$0\"", HLAUNCH_KEPT}});
  ASSERT_TRUE(kept.ReadUntil("agent "));
  kept.process().Signal(SIGHUP);
  kept.process().Signal(SIGTERM);
  EXPECT_EQ(kept.Wait().exit_code, 3);
  EXPECT_THAT(kept.ReadAll(), Not(HasSubstr("SIGHUP")));
}

TEST(Keeper, SparesTheJobsOfTheScriptThatBecameIt) {
  Child kept(
      {.argv = {"/bin/sh", "-c", "sleep 1000 & echo job $!; exec \"$0\" exit 0", HLAUNCH_KEPT}});
  const pid_t job = kept.PidAfter("job ");
  EXPECT_EQ(kept.Wait().exit_code, 0);
  EXPECT_TRUE(Exists(job));
  ::kill(job, SIGKILL);
}

// After the exec only the keeper uses the memory that the two have shared.
TEST(Keeper, IsSmall) {
  Child kept(Kept({"exec"}));
  ASSERT_TRUE(kept.ReadUntil("agent "));
  std::istringstream lines(ReadFile(absl::StrCat("/proc/", kept.process().pid(), "/smaps_rollup")));
  std::string name;
  int private_kb = 0;
  for (std::string line; std::getline(lines, line);) {
    int kb = 0;
    if (std::istringstream(line) >> name >> kb && name.rfind("Private_", 0) == 0) private_kb += kb;
  }
  RecordProperty("private_kb", private_kb);
#ifndef HLAUNCH_SANITIZED
  EXPECT_LT(private_kb, 1024);
#endif
  kept.process().Signal(SIGTERM);
  kept.Wait();
}

// The keeper is the init of a container without one. Without --mount-proc, /proc shows the outer
// namespace, where its own numbers are those of strangers.
TEST(Keeper, HoldsAsInitOfAContainer) {
  for (const std::string proc : {"--mount-proc", "--fork" /* again: no /proc of its own */}) {
    Child probe({.argv = {"unshare", "--pid", "--fork", proc, "true"}});
    if (probe.Wait().exit_code != 0) GTEST_SKIP() << "no new pid namespace: " << probe.ReadAll();
    Child kept({.argv = {"unshare", "--pid", "--fork", proc, HLAUNCH_KEPT, "run", ForkingWorker(1),
                         "run", "echo parent $PPID; read x < /dev/null; kill -KILL $PPID"}});
    EXPECT_EQ(kept.Wait().exit_code, kExitAgentLost);
    EXPECT_THAT(kept.ReadAll(), HasSubstr("was killed by SIGKILL"));
  }
}

// The numbers of that /proc are other processes' here.
TEST(Keeper, EndsAllThatAnAgentLeavesWhereProcShowsAnOuterPidNamespace) {
  Child probe({.argv = {"unshare", "--pid", "--fork", "true"}});
  if (probe.Wait().exit_code != 0) GTEST_SKIP() << "no new pid namespace: " << probe.ReadAll();
  const std::string worker =
      "sleep 1000 & setsid sleep 1000 & setsid sh -c 'setsid sleep 1000 & exit' & wait $!; "
      "kill -KILL $PPID; exec sleep 1000";
  // The shell is the init, so that the keeper may not kill everything.
  Child kept({.argv = {"unshare", "--pid", "--fork", "sh", "-c", "sleep 1000 & \"$@\"; exit $?",
                       "sh", HLAUNCH_KEPT, "run", worker}});
  EXPECT_EQ(kept.Wait().exit_code, kExitAgentLost);
  EXPECT_THAT(kept.ReadAll(), HasSubstr("was killed by SIGKILL; ended 4 processes"));
}

// The keeper runs in the foreground of its own terminal, without a shell.
TEST(Keeper, DeliversCtrlCOnce) {
  int terminal = -1;
  const pid_t keeper = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (keeper == 0) {
    ::execl(HLAUNCH_KEPT, HLAUNCH_KEPT, nullptr);
    ::_exit(127);
  }
  const UniqueFd owned(terminal);
  std::string seen;
  const auto read_until = [&](const char* text) {
    char buffer[512];
    while (seen.find(text) == std::string::npos && Readable(terminal)) {
      const ssize_t n = ::read(terminal, buffer, sizeof(buffer));
      if (n <= 0) return false;
      seen.append(buffer, static_cast<size_t>(n));
    }
    return true;
  };
  ASSERT_TRUE(read_until("agent "));
  ASSERT_EQ(::write(terminal, "\003", 1), 1);
  ASSERT_TRUE(read_until("SIGINT"));
  ::kill(keeper, SIGTERM);
  ASSERT_TRUE(read_until("SIGTERM"));
  EXPECT_EQ(seen.find("SIGINT"), seen.rfind("SIGINT")) << seen;
  int status = 0;
  ::waitpid(keeper, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(TerminationPending, SeesWhatWasBlockedAndNotTaken) {
  sigset_t ask, before;
  ::sigemptyset(&ask);
  ::sigaddset(&ask, SIGQUIT);
  ::pthread_sigmask(SIG_BLOCK, &ask, &before);
  EXPECT_FALSE(TerminationPending());
  ::raise(SIGQUIT);
  EXPECT_TRUE(TerminationPending());
  int taken = 0;
  ::sigwait(&ask, &taken);
  EXPECT_FALSE(TerminationPending());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace hlaunch
