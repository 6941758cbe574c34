// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/node_facts.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Command Shell(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }

std::string WriteFile(const std::string& name, const std::string& text, mode_t mode) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/", ::getpid(), name);
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
  return path;
}

absl::Status SpawnError(Command command) {
  command.env = {"PATH=/usr/bin:/bin"};
  return Process::Spawn(std::move(command)).status();
}

TEST(Spawn, ReportsEveryExitCode) {
  for (const int code : {0, 1, 2, 126, 127, 128, 200, 255}) {
    const ExitStatus status = Child(Shell(absl::StrCat("exit ", code))).Wait();
    EXPECT_EQ(status.exit_code, code);
    EXPECT_EQ(status.signal, 0);
    EXPECT_EQ(status.ShellCode(), code);
  }
}

TEST(Spawn, ReportsTheSignal) {
  for (const int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGUSR1}) {
    const std::string script = absl::StrCat("ulimit -c 0; kill -", signal, " $$");
    const ExitStatus status = Child(Shell(script)).Wait();
    EXPECT_EQ(status.signal, signal);
    EXPECT_EQ(status.ShellCode(), 128 + signal);
    EXPECT_EQ(status.ToString(), absl::StrCat("killed by ", SignalName(signal)));
  }
}

TEST(Spawn, RunsOnTheCpusItIsGiven) {
  const std::vector<int> allowed = AllowedCpus();
  ASSERT_FALSE(allowed.empty());
  for (const int cpu : {allowed.front(), allowed.back()}) {
    Command command = Shell("grep Cpus_allowed_list /proc/self/status");
    command.cpus = {cpu};
    Child child(command);
    EXPECT_EQ(child.ReadAll(), absl::StrCat("Cpus_allowed_list:\t", cpu, "\n"));
    EXPECT_EQ(child.process().warning(), "");
    child.Wait();
  }
  EXPECT_EQ(AllowedCpus(), allowed) << "the child shares our memory, not our affinity";
}

TEST(Spawn, TakesMemoryFromTheNodeItIsGivenUnlessWeHaveAPolicy) {
  if (::access("/proc/self/numa_maps", R_OK) != 0) GTEST_SKIP() << "the kernel knows no NUMA";
  Command command = Shell("grep -c prefer:0 /proc/self/numa_maps");
  command.memory_node = 0;
  Child child(command);
  EXPECT_THAT(child.ReadAll(), Not(testing::StartsWith("0")));
  EXPECT_EQ(child.process().warning(), "");
  child.Wait();
  const unsigned long node_0 = 1;
  ASSERT_EQ(::syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &node_0, 65), 0);
  Child interleaved(command);
  EXPECT_THAT(interleaved.ReadAll(), testing::StartsWith("0"));
  interleaved.Wait();
  EXPECT_EQ(::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0), 0);
}

TEST(Spawn, StartsTheProgramAlsoWhereItCannotBeBound) {
  Command command = Shell("echo started");
  command.cpus = {5000};
  command.memory_node = 500;
  Child child(command);
  EXPECT_EQ(child.ReadAll(), "started\n");
  EXPECT_THAT(child.process().warning(),
              HasSubstr("cannot bind to CPUs 5000: Invalid argument; cannot prefer the memory of "
                        "NUMA node 500: "));
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(Spawn, NamesAMissingProgram) {
  const absl::Status by_path = SpawnError({.argv = {"/no/such/program"}});
  EXPECT_EQ(by_path.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(by_path.message()), HasSubstr("/no/such/program"));
  const absl::Status by_name = SpawnError({.argv = {"no-such-program"}});
  EXPECT_EQ(by_name.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(by_name.message()), HasSubstr("no-such-program in PATH (/usr/bin:/bin)"));
}

TEST(Spawn, NamesAMissingInterpreter) {
  const std::string script = WriteFile("a.py", "#! /no/such/python3 -u\n", 0755);
  const absl::Status status = SpawnError({.argv = {script}});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("interpreter /no/such/python3 is missing"));
}

TEST(Spawn, RefusesWhatIsNoProgram) {
  const absl::Status text = SpawnError({.argv = {WriteFile("b", "import torch\n", 0755)}});
  EXPECT_EQ(text.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(text.message()), HasSubstr("it is not a program: no #! line"));
  const absl::Status mode = SpawnError({.argv = {WriteFile("c", "#! /bin/sh\n", 0644)}});
  EXPECT_EQ(mode.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(mode.message()), HasSubstr("not executable"));
  EXPECT_EQ(SpawnError({.argv = {"/tmp"}}).code(), absl::StatusCode::kPermissionDenied);
}

TEST(Spawn, RefusesWhatTheKernelDoesNotTake) {
  EXPECT_EQ(SpawnError({}).code(), absl::StatusCode::kInvalidArgument);
  const std::string huge(1 << 20, 'x');
  EXPECT_EQ(SpawnError({.argv = {"/bin/true", huge}}).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status directory =
      SpawnError({.argv = {"/bin/true"}, .working_directory = "/no/such/directory"});
  EXPECT_EQ(directory.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(directory.message()), HasSubstr("/no/such/directory"));
}

TEST(Spawn, LeavesNoChildBehindOnError) {
  EXPECT_FALSE(SpawnError({.argv = {"/no/such/program"}}).ok());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// A limit on processes does not bind root, so this child of the test becomes another user.
TEST(Spawn, SaysThatTheNodeIsOutOfProcesses) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(9);
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(9);
    const absl::Status status = SpawnError({.argv = {"/bin/true"}});
    ::_exit(status.code() == absl::StatusCode::kResourceExhausted ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Spawn, LooksUpTheWorkersPath) {
  Command command = {.argv = {"true"}, .env = {"PATH=/nowhere:/bin"}};
  EXPECT_EQ(Child(command).Wait().exit_code, 0);
  command.env = {"A=b"};
  EXPECT_EQ(Child(command).Wait().exit_code, 0);
}

TEST(Spawn, RunsAProgramUnderAnotherName) {
  Child child({.argv = {"another", "-c", "echo $0"}, .program = "/bin/sh"});
  EXPECT_EQ(child.ReadAll(), "another\n");
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(Spawn, RunsInTheWorkingDirectory) {
  Child child({.argv = {"bin/pwd"}, .working_directory = "/usr"});
  EXPECT_EQ(child.ReadAll(), "/usr\n");
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(Spawn, SaysTheProgramsOwnPathAsAShellDoes) {
  Command command{.argv = {"env"}, .env = {"PATH=/usr/bin:/bin", "_=/bin/hlaunch", "A=1"}};
  command.as_a_shell = true;
  Child child(command);
  EXPECT_EQ(child.ReadAll(), "PATH=/usr/bin:/bin\nA=1\n_=/usr/bin/env\n");
  child.Wait();
}

TEST(Spawn, GivesExactlyTheEnvironment) {
  Child child({.argv = {"/usr/bin/env"}, .env = {"A=1", "B=two words"}});
  EXPECT_EQ(child.ReadAll(), "A=1\nB=two words\n");
  child.Wait();
}

TEST(Spawn, MakesASessionOfItsOwn) {
  Child child({.argv = {"/bin/cat", "/proc/self/stat"}});
  const std::vector<std::string> fields = absl::StrSplit(child.ReadAll(), ' ');
  const std::string pid = absl::StrCat(child.process().pid());
  EXPECT_EQ(fields[0], pid);
  EXPECT_EQ(fields[4], pid) << "process group";
  EXPECT_EQ(fields[5], pid) << "session";
  child.Wait();
}

TEST(Spawn, ResetsMaskAndDispositions) {
  sigset_t set, before;
  ::sigfillset(&set);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  ::signal(SIGPIPE, SIG_IGN);
  Child child({.argv = {"/bin/cat", "/proc/self/status"}});
  const std::vector<std::string> lines = absl::StrSplit(child.ReadAll(), '\n');
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  EXPECT_THAT(lines, Contains("SigBlk:\t0000000000000000"));
  EXPECT_THAT(lines, Contains("SigIgn:\t0000000000000000"));
  EXPECT_THAT(lines, Contains("SigCgt:\t0000000000000000"));
  child.Wait();
}

TEST(Spawn, LowersTheLimitOnDescriptors) {
  rlimit ours = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &ours), 0);
  const auto limits = [](std::optional<uint64_t> limit) {
    Command command = Shell("ulimit -Sn; ulimit -Hn");
    command.descriptor_limit = limit;
    Child child(std::move(command));
    const std::string said = child.ReadAll();
    child.Wait();
    return said;
  };
  const auto words = [](rlim_t limit) {
    return limit == RLIM_INFINITY ? "unlimited" : absl::StrCat(limit);
  };
  EXPECT_EQ(limits(123), absl::StrCat("123\n", words(ours.rlim_max), "\n"));
  EXPECT_EQ(limits(std::nullopt),
            absl::StrCat(words(ours.rlim_cur), "\n", words(ours.rlim_max), "\n"));
  rlimit still = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &still), 0);
  EXPECT_EQ(still.rlim_cur, ours.rlim_cur) << "the child shares our memory, not our limits";
}

TEST(Spawn, PassesNoOtherDescriptor) {
  std::vector<UniqueFd> open;
  for (int i = 0; i < 20; ++i) open.emplace_back(::open("/dev/null", O_RDONLY));  // Not O_CLOEXEC.
  Child child({.argv = {"/bin/ls", "/proc/self/fd"}});
  EXPECT_EQ(child.ReadAll(), "0\n1\n2\n3\n") << "3 is the directory that ls reads";
  child.Wait();
}

TEST(Spawn, ReadsStdinOrNothing) {
  Child nothing({.argv = {"/bin/cat"}});
  EXPECT_EQ(nothing.ReadAll(), "");
  nothing.Wait();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  ASSERT_EQ(::write(write_end.get(), "hello", 5), 5);
  write_end.Close();
  Child cat({.argv = {"/bin/cat"}, .stdin_fd = read_end.get()});
  EXPECT_EQ(cat.ReadAll(), "hello");
  cat.Wait();
}

// The spawning process is killed; the child must not outlive it.
TEST(Spawn, DiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    absl::StatusOr<Process> sleeper = Process::Spawn({.argv = {"/bin/sleep", "1000"}});
    const pid_t pid = sleeper.ok() ? sleeper->pid() : 0;
    if (::write(ends[1], &pid, sizeof(pid)) != sizeof(pid)) ::_exit(1);
    ::raise(SIGKILL);
  }
  ::waitpid(parent, nullptr, 0);
  pid_t sleeper = 0;
  ASSERT_EQ(::read(ends[0], &sleeper, sizeof(sleeper)), static_cast<ssize_t>(sizeof(sleeper)));
  ASSERT_GT(sleeper, 0);
  EXPECT_TRUE(Gone(sleeper));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Process, SignalsTheWholeGroup) {
  Child child(Shell("sleep 1000 & echo child $!; wait"));
  const pid_t sleeper = child.PidAfter("child ");
  child.process().SignalGroup(SIGTERM);
  EXPECT_EQ(child.Wait().signal, SIGTERM);
  EXPECT_TRUE(Gone(sleeper));
}

TEST(Process, KillsItsGroupWhenAbandoned) {
  pid_t pid = 0;
  {
    Child child(Shell("sleep 1000"));
    pid = child.process().pid();
  }
  EXPECT_TRUE(Gone(pid));
  ::waitpid(pid, nullptr, 0);
}

TEST(StartingProcess, SeveralAreOnTheirWayAtOnceAndEachSaysHowItEnded) {
  std::vector<StartingProcess> starting;
  for (int i = 0; i < 40; ++i) {
    Command command{.argv = {"/bin/sh", "-c", absl::StrCat("exit ", i)}};
    if (i % 10 == 9) command.working_directory = absl::StrCat("/no/such/place/", i);
    starting.push_back(Process::Start(std::move(command)).value());
  }
  for (int i = 0; i < 40; ++i) {
    absl::StatusOr<Process> process = starting[static_cast<size_t>(i)].Await();
    if (i % 10 == 9) {
      EXPECT_THAT(process.status().message(), HasSubstr(absl::StrCat("/no/such/place/", i)));
      continue;
    }
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ(process->Reap().exit_code, i);
  }
}

TEST(StartingProcess, OneThatNobodyAwaitsIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  {
    const auto starting = Process::Start({.argv = {"/bin/sleep", "1000"}, .stdout_fd = ends[1]});
    ASSERT_TRUE(starting.ok());
  }
  write_end.Close();
  char byte;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << "it holds the pipe while it lives";
  EXPECT_EQ(::waitpid(-1, nullptr, 0) > 0, true);
}

}  // namespace
}  // namespace hlaunch
