// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker/process.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/devices/visible_devices.h"
#include "proto/base/status_macros.h"

// clone() by the name that ThreadSanitizer does not intercept: it takes every clone for a fork,
// and then no longer checks this thread, whose memory the child shares.
// NOLINTNEXTLINE(bugprone-reserved-identifier): glibc's own name.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace hlaunch {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";
constexpr size_t kChildStack = 64 * 1024;

// A set of numbers as the kernel reads them.
using Mask = std::vector<unsigned long>;
constexpr size_t kBitsPerWord = 8 * sizeof(unsigned long);

// All that the child needs, made before it exists; and what it says of its failure.
struct ChildPlan {
  const char* path;
  char* const* argv;
  char* const* env;
  const char* directory;  // Null: stay.
  int fds[3];
  pid_t parent;
  const rlimit* descriptors;  // Null: as ours.
  const unsigned long* cpus;  // A mask of `cpu_words`; none: as ours.
  size_t cpu_words;
  const unsigned long* memory;  // Of NUMA nodes, likewise.
  size_t memory_words;
  const char* failed_at = nullptr;  // Null: the program was executed.
  int error = 0;
  int cpus_error = 0;  // 0: as asked.
  int memory_error = 0;
};

int Fail(ChildPlan* plan, const char* where) {
  plan->failed_at = where;
  plan->error = errno;
  return 127;
}

__attribute__((no_sanitize("address", "thread", "undefined"))) void CloseFrom(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  // Old container runtimes refuse the call. What hlaunch opens is close-on-exec anyway.
  for (unsigned fd = first; fd < 65536; ++fd) ::syscall(SYS_close, fd);
}

// Only system calls, as RunChild. A failure is told and changes nothing else.
__attribute__((no_sanitize("address", "thread", "undefined"))) void Bind(ChildPlan* plan) {
  if (plan->cpu_words > 0 && ::syscall(SYS_sched_setaffinity, 0,
                                       plan->cpu_words * sizeof(unsigned long), plan->cpus) < 0) {
    plan->cpus_error = errno;
  }
  // The kernel takes one bit less than it is told.
  if (plan->memory_words > 0 && ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, plan->memory,
                                          plan->memory_words * kBitsPerWord + 1) < 0) {
    plan->memory_error = errno;
  }
}

// Runs in the child between clone and exec, on its own stack but in the parent's memory, while
// the parent's thread is suspended: only system calls, no library function that keeps state,
// no allocation. `plan` is how it reports.
__attribute__((no_sanitize("address", "thread", "undefined"))) int RunChild(void* argument) {
  auto* plan = static_cast<ChildPlan*>(argument);
  if (::syscall(SYS_setsid) < 0) return Fail(plan, "setsid");
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // A parent that died before the line above will never be signalled for.
  if (::syscall(SYS_getppid) != plan->parent) return 127;

  // Above 2 first, so that no dup3 overwrites a descriptor that is still to be copied.
  for (int& fd : plan->fds) {
    fd = static_cast<int>(::syscall(SYS_fcntl, fd, F_DUPFD, 3));
    if (fd < 0) return Fail(plan, "its standard streams");
  }
  for (int i = 0; i < 3; ++i) {
    if (::syscall(SYS_dup3, plan->fds[i], i, 0) < 0) return Fail(plan, "its standard streams");
  }
  CloseFrom(3);
  if (plan->directory != nullptr && ::syscall(SYS_chdir, plan->directory) != 0) {
    return Fail(plan, "its working directory");
  }
  if (plan->descriptors != nullptr) {
    ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, plan->descriptors, nullptr);
  }
  Bind(plan);

  // The kernel's struct sigaction is all zero for SIG_DFL, on every architecture.
  const unsigned long defaults[8] = {};
  for (int signal = 1; signal <= 64; ++signal) {
    ::syscall(SYS_rt_sigaction, signal, defaults, nullptr, 8);
  }
  const unsigned long no_signals = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, 8);
  ::syscall(SYS_execve, plan->path, plan->argv, plan->env);
  return Fail(plan, "exec");
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string InDirectory(const Command& command, const std::string& path) {
  if (command.working_directory.empty() || absl::StartsWith(path, "/")) return path;
  return absl::StrCat(command.working_directory, "/", path);
}

bool IsFile(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

// The path to execute. As execvp: a file that may not be executed does not end the search.
absl::StatusOr<std::string> FindProgram(const Command& command) {
  const std::string& name = command.argv[0];
  if (name.empty()) return absl::NotFoundError("the program's name is empty");
  if (absl::StrContains(name, '/')) return name;
  absl::string_view path = kDefaultPath;
  for (const std::string& entry : command.env) {
    if (absl::StartsWith(entry, "PATH=")) path = absl::string_view(entry).substr(5);
  }
  std::string refused;
  for (absl::string_view directory : absl::StrSplit(path, ':')) {
    const std::string candidate = absl::StrCat(directory.empty() ? "." : directory, "/", name);
    const std::string seen = InDirectory(command, candidate);
    if (!IsFile(seen)) continue;
    if (::access(seen.c_str(), X_OK) == 0) return candidate;
    if (refused.empty()) refused = candidate;
  }
  if (!refused.empty()) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot run ", refused, ": it is not executable; chmod +x it"));
  }
  return absl::NotFoundError(absl::StrCat("no program named ", name, " in PATH (", path, ")"));
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

// Where the child is to take its memory. Whoever started us under `numactl` has decided it.
Mask MemoryMask(const Command& command) {
  int policy = MPOL_DEFAULT;
  if (command.memory_node < 0) return {};
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0 &&
      policy != MPOL_DEFAULT) {
    return {};
  }
  return MakeMask({command.memory_node});
}

// What could not be bound; empty: all is as asked.
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

// The first bytes of `path`: enough for the kernel to tell what it is.
std::string Head(const std::string& path) {
  char buffer[256];
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t n = fd.valid() ? ::read(fd.get(), buffer, sizeof(buffer)) : -1;
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : std::string();
}

// "/usr/bin/python4" of "#! /usr/bin/python4 -u\n…"; empty if `head` is of no script.
std::string Interpreter(absl::string_view head) {
  if (!absl::ConsumePrefix(&head, "#!")) return "";
  const absl::string_view line = head.substr(0, head.find('\n'));
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return "";
  // A carriage return is part of the name to the kernel, and the reason why it is not found.
  return absl::StrCat(words[0], absl::EndsWith(line, "\r") ? " (the line ends in CR LF)" : "");
}

absl::Status ExecError(int error, const std::string& path, const std::string& seen) {
  const std::string what = absl::StrCat("cannot run ", path, ": ");
  const std::string head = Head(seen);
  const std::string interpreter = Interpreter(head);
  switch (error) {
    case ENOENT:
      if (!IsFile(seen)) return absl::NotFoundError(absl::StrCat(what, "no such file"));
      if (!interpreter.empty()) {
        return absl::NotFoundError(absl::StrCat(what, "its interpreter ", interpreter,
                                                " is missing; correct the script's first line"));
      }
      return absl::NotFoundError(
          absl::StrCat(what, "its program loader is missing; it was built for another system"));
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return absl::NotFoundError(absl::StrCat(what, std::strerror(error)));
    case ENOEXEC:
      return absl::PermissionDeniedError(absl::StrCat(
          what, absl::StartsWith(head, "\177ELF")
                    ? "it was built for another machine"
                    : "it is not a program: no #! line; name the interpreter before it"));
    case EACCES:
    case EPERM:
      if (!IsFile(seen)) return absl::PermissionDeniedError(absl::StrCat(what, "not a file"));
      if (::access(seen.c_str(), X_OK) != 0) {
        return absl::PermissionDeniedError(
            absl::StrCat(what, "it is not executable; chmod +x it or name its interpreter"));
      }
      return absl::PermissionDeniedError(absl::StrCat(
          what, interpreter.empty()
                    ? "the file system forbids it (noexec?)"
                    : absl::StrCat("its interpreter ", interpreter, " may not be executed")));
    case E2BIG:
      return absl::InvalidArgumentError(
          absl::StrCat(what, "arguments and environment are more than the kernel takes"));
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(what, std::strerror(error)));
    default:
      return absl::PermissionDeniedError(absl::StrCat(what, std::strerror(error)));
  }
}

absl::Status ChildError(const ChildPlan& plan, const Command& command) {
  const std::string path = plan.path;
  if (absl::string_view(plan.failed_at) == "exec") {
    return ExecError(plan.error, path, InDirectory(command, path));
  }
  if (plan.directory != nullptr && absl::string_view(plan.failed_at) == "its working directory") {
    const std::string text =
        absl::StrCat("cannot run ", path, " in ", plan.directory, ": ", std::strerror(plan.error));
    return plan.error == EACCES ? absl::PermissionDeniedError(text) : absl::NotFoundError(text);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot run ", path, ": ", plan.failed_at, ": ", std::strerror(plan.error)));
}

// The child shares our memory until exec, so the parent need not copy its page tables, which
// takes longer than all the rest in a big process, and the error comes back in `plan`.
// A handler must not run in the child then: all signals are blocked around the call.
pid_t Clone(ChildPlan* plan, int* pidfd) {
  const std::unique_ptr<char[]> stack(new char[kChildStack]);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::__clone(RunChild, stack.get() + kChildStack,
                              CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, plan, pidfd);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
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

absl::StatusOr<Process> Process::Spawn(const Command& command) {
  if (command.argv.empty()) return absl::InvalidArgumentError("no program is named");
  HLAUNCH_ASSIGN_OR_RETURN(const std::string path, FindProgram(command));
  const std::vector<char*> argv = Pointers(command.argv);
  const std::vector<char*> env = Pointers(command.env);
  const UniqueFd null(command.stdin_fd < 0 ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : -1);
  if (command.stdin_fd < 0 && !null.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot run ", path, ": /dev/null: ", std::strerror(errno)));
  }
  rlimit descriptors = {};
  if (command.descriptor_limit && ::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    descriptors.rlim_cur = std::min<rlim_t>(*command.descriptor_limit, descriptors.rlim_max);
  }
  const Mask cpus = MakeMask(command.cpus);
  const Mask memory = MemoryMask(command);
  ChildPlan plan{
      path.c_str(),
      argv.data(),
      env.data(),
      command.working_directory.empty() ? nullptr : command.working_directory.c_str(),
      {null.valid() ? null.get() : command.stdin_fd, command.stdout_fd, command.stderr_fd},
      ::getpid(),
      command.descriptor_limit ? &descriptors : nullptr,
      cpus.data(),
      cpus.size(),
      memory.data(),
      memory.size()};
  int pidfd = -1;
  const pid_t pid = Clone(&plan, &pidfd);
  if (pid < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot run ", path, ": no new process: ", std::strerror(errno)));
  }
  UniqueFd owned(pidfd);
  if (plan.failed_at != nullptr) {
    ::waitpid(pid, nullptr, 0);
    return ChildError(plan, command);
  }
  return Process(pid, std::move(owned), BindingWarning(plan, command));
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
