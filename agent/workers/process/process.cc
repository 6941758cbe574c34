// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/process.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/machine/devices/visible_devices.h"
#include "agent/workers/process/exit_notice.h"
#include "agent/workers/process/program_file.h"
#include "agent/workers/process/start_child.h"
#include "proto/base/status_macros.h"
#include "proto/base/thread.h"

namespace hlaunch {
namespace {

// A set of numbers, in the kernel's format.
using Mask = std::vector<unsigned long>;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Mask MakeMask(const std::vector<int>& numbers) {
  Mask mask;
  for (const int number : numbers) {
    const auto bit = static_cast<size_t>(number);
    if (mask.size() <= bit / kBitsPerWord) mask.resize(bit / kBitsPerWord + 1);
    mask[bit / kBitsPerWord] |= 1UL << bit % kBitsPerWord;
  }
  return mask;
}

// The NUMA node for the child's memory; empty if we run under `numactl`, whose policy then stays.
Mask MemoryMask(const Command& command) {
  int policy = MPOL_DEFAULT;
  if (command.memory_node < 0) return {};
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0 &&
      policy != MPOL_DEFAULT) {
    return {};
  }
  return MakeMask({command.memory_node});
}

// Says what could not be bound; empty if nothing failed.
std::string BindingWarning(const ChildPlan& plan, const Command& command) {
  std::string text;
  if (plan.cpus_error != 0) {
    text = absl::StrCat("cannot bind to CPUs ", FormatIds(command.cpus), ": ",
                        std::strerror(plan.cpus_error));
  }
  if (plan.memory_error != 0) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "cannot prefer the memory of NUMA node ",
                    command.memory_node, ": ", std::strerror(plan.memory_error),
                    plan.memory_error == EPERM ? " (in a container: --cap-add=sys_nice)" : "");
  }
  return text;
}

absl::Status ChildError(const ChildPlan& plan, const Command& command) {
  const std::string path = plan.path;
  if (absl::string_view(plan.failed_at) == "exec") {
    return ExecError(plan.error, path, command.working_directory);
  }
  if (plan.directory != nullptr && absl::string_view(plan.failed_at) == "its working directory") {
    const std::string text =
        absl::StrCat("cannot run ", path, " in ", plan.directory, ": ", std::strerror(plan.error));
    return plan.error == EACCES ? absl::PermissionDeniedError(text) : absl::NotFoundError(text);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot run ", path, ": ", plan.failed_at, ": ", std::strerror(plan.error)));
}

}  // namespace

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

ExitStatus ExitStatus::Of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {info.si_status, 0, false};
  return {0, info.si_status, info.si_code == CLD_DUMPED};
}

std::string ExitStatus::ToString() const {
  if (signal == 0) return absl::StrCat("exit code ", exit_code);
  return absl::StrCat("killed by ", SignalName(signal), core ? " (core dumped)" : "");
}

// Everything that the child reads until it executes its program.
struct StartingProcess::State {
  explicit State(Command what) : command(std::move(what)) {}

  // Errors: as Process::Spawn.
  absl::Status Prepare() {
    if (command.argv.empty()) return absl::InvalidArgumentError("no program is named");
    const std::string& program = command.program.empty() ? command.argv[0] : command.program;
    HLAUNCH_ASSIGN_OR_RETURN(path, FindProgram(program, command.env, command.working_directory));
    if (command.stdin_fd < 0) {
      null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!null.valid()) return NoResources(absl::StrCat("/dev/null: ", std::strerror(errno)));
    }
    if (command.descriptor_limit && ::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
      descriptors.rlim_cur = std::min<rlim_t>(*command.descriptor_limit, descriptors.rlim_max);
    }
    argv = Pointers(command.argv);
    env = Pointers(command.env);
    if (command.as_a_shell) SayProgram();
    cpus = MakeMask(command.cpus);
    memory = MemoryMask(command);
    return absl::OkStatus();
  }

  absl::Status Start() {
    plan = {path.c_str(),
            argv.data(),
            env.data(),
            command.working_directory.empty() ? nullptr : command.working_directory.c_str(),
            {null.valid() ? null.get() : command.stdin_fd, command.stdout_fd, command.stderr_fd,
             command.further_fd},
            ::getpid(),
            command.descriptor_limit ? &descriptors : nullptr,
            cpus.data(),
            cpus.size(),
            memory.data(),
            memory.size()};
    int fd = -1;
    const bool pidfds = KernelHasPidfds();
    pid = StartChild(&plan, pidfds ? &fd : nullptr);
    // A container runtime may know pidfd_open and refuse a clone that makes a pidfd.
    if (pid < 0 && pidfds && (errno == EPERM || errno == ENOSYS)) pid = StartChild(&plan, nullptr);
    if (pid < 0) return NoResources(absl::StrCat("no new process: ", NoThreadWords(errno)));
    pidfd = fd >= 0 ? UniqueFd(fd) : NoticeExit(pid);
    if (pidfd.valid()) return absl::OkStatus();
    ::kill(pid, SIGKILL);
    AwaitExec(plan);
    ::waitpid(pid, nullptr, 0);
    return NoResources("nothing tells of its exit");
  }

  // Sets `_` to the path of the program, as a shell does; the inherited value is hlaunch's path.
  void SayProgram() {
    own_path = absl::StrCat("_=", path);
    env.erase(std::remove_if(env.begin(), env.end() - 1,
                             [](const char* entry) { return absl::StartsWith(entry, "_="); }),
              env.end() - 1);
    env.insert(env.end() - 1, own_path.data());
  }

  absl::Status NoResources(const std::string& why) const {
    return absl::ResourceExhaustedError(absl::StrCat("cannot run ", path, ": ", why));
  }

  const Command command;
  std::string path, own_path;
  std::vector<char*> argv, env;
  UniqueFd null;
  rlimit descriptors = {};
  Mask cpus, memory;
  ChildPlan plan = {};
  pid_t pid = 0;
  UniqueFd pidfd;
};

StartingProcess::StartingProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
StartingProcess::StartingProcess(StartingProcess&&) noexcept = default;
StartingProcess::~StartingProcess() {
  if (state_ != nullptr) Await().IgnoreError();
}

absl::StatusOr<Process> StartingProcess::Await() {
  const std::unique_ptr<State> state = std::move(state_);
  AwaitExec(state->plan);
  if (state->plan.failed_at != nullptr) {
    ::waitpid(state->pid, nullptr, 0);
    return ChildError(state->plan, state->command);
  }
  return Process(state->pid, std::move(state->pidfd), BindingWarning(state->plan, state->command));
}

absl::StatusOr<StartingProcess> Process::Start(Command command) {
  auto state = std::make_unique<StartingProcess::State>(std::move(command));
  HLAUNCH_RETURN_IF_ERROR(state->Prepare());
  HLAUNCH_RETURN_IF_ERROR(state->Start());
  return StartingProcess(std::move(state));
}

absl::StatusOr<Process> Process::Spawn(Command command) {
  HLAUNCH_ASSIGN_OR_RETURN(StartingProcess starting, Start(std::move(command)));
  return starting.Await();
}

absl::StatusOr<Process> Process::Adopt(pid_t pid) {
  siginfo_t info = {};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return ::kill(pid, 0) == 0
               ? absl::FailedPreconditionError("its forks do not become children of hlaunch")
               : absl::NotFoundError("it has ended");
  }
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd.valid()) pidfd = NoticeExit(pid);
  if (!pidfd.valid()) return absl::ResourceExhaustedError("nothing tells of its exit");
  return Process(pid, std::move(pidfd), "");
}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    Abandon();
    pid_ = std::exchange(other.pid_, 0);
    pidfd_ = std::move(other.pidfd_);
    warning_ = std::move(other.warning_);
  }
  return *this;
}

void Process::SignalGroup(int signal) const {
  HLAUNCH_CHECK(pid_ > 0);
  ::kill(-pid_, signal);
}

void Process::Signal(int signal) const {
  HLAUNCH_CHECK(pid_ > 0);
  ::kill(pid_, signal);
}

ExitStatus Process::Reap() {
  HLAUNCH_CHECK(pid_ > 0);
  siginfo_t info = {};
  int result;
  do {
    result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
  } while (result != 0 && errno == EINTR);
  HLAUNCH_CHECK(result == 0);
  pid_ = 0;
  pidfd_.Close();
  return ExitStatus::Of(info);
}

void Process::Abandon() {
  if (pid_ > 0) SignalGroup(SIGKILL);
}

}  // namespace hlaunch
