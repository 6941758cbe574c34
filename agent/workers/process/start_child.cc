// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/start_child.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "agent/workers/process/raw_syscall.h"

// This name of clone() is not intercepted by ThreadSanitizer. ThreadSanitizer takes every clone for
// a fork and then stops checking this thread, whose memory the child shares.
// NOLINTNEXTLINE(bugprone-reserved-identifier): glibc's own name.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace hlaunch {
namespace {

constexpr size_t kChildStack = 64 * 1024;

// The kernel's struct sigaction is all zero for SIG_DFL, on every architecture. It is not made in
// the child: without optimisation, that would call memset.
constexpr unsigned long kDefaultAction[8] = {};

// Code that runs in the child must contain no call inserted by a sanitizer or a linker. With only
// no_sanitize("thread"), clang still reports every function entry and exit to ThreadSanitizer: the
// child would do that as the parent's thread, while the parent does it too.
#if defined(__clang__)
#define HLAUNCH_IN_CHILD \
  __attribute__((no_sanitize("address", "undefined"), disable_sanitizer_instrumentation))
#else
#define HLAUNCH_IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

HLAUNCH_IN_CHILD int Fail(ChildPlan* plan, const char* where, long result) {
  plan->failed_at = where;
  plan->error = static_cast<int>(-result);
  return 127;
}

HLAUNCH_IN_CHILD void CloseFrom(unsigned first) {
  if (RawSyscall(SYS_close_range, first, ~0U, 0) == 0) return;
  // Old container runtimes refuse close_range. All descriptors that hlaunch opens are close-on-exec
  // anyway.
  for (unsigned fd = first; fd < 65536; ++fd) RawSyscall(SYS_close, fd);
}

// Records a failure in `plan`; the child goes on.
HLAUNCH_IN_CHILD void Bind(ChildPlan* plan) {
  long result = 0;
  if (plan->cpu_words > 0) {
    result = RawSyscall(SYS_sched_setaffinity, 0,
                        static_cast<long>(plan->cpu_words * sizeof(unsigned long)),
                        RawArgument(plan->cpus));
  }
  if (result < 0) plan->cpus_error = static_cast<int>(-result);
  result = 0;
  if (plan->memory_words > 0) {  // The kernel uses one bit less than it is told.
    result = RawSyscall(SYS_set_mempolicy, MPOL_PREFERRED, RawArgument(plan->memory),
                        static_cast<long>(plan->memory_words * kBitsPerWord + 1));
  }
  if (result < 0) plan->memory_error = static_cast<int>(-result);
}

// Makes `plan->fds` the child's first descriptors and closes all others. Returns 0 or an error.
HLAUNCH_IN_CHILD long TakeStreams(ChildPlan* plan) {
  const int count = plan->fds[3] < 0 ? 3 : 4;
  // First copy all of them above that range, so that no dup3 overwrites a descriptor still to be
  // copied.
  for (int i = 0; i < count; ++i) {
    const long above = RawSyscall(SYS_fcntl, plan->fds[i], F_DUPFD, count);
    if (above < 0) return above;
    plan->fds[i] = static_cast<int>(above);
  }
  for (int i = 0; i < count; ++i) {
    if (const long result = RawSyscall(SYS_dup3, plan->fds[i], i, 0); result < 0) return result;
  }
  CloseFrom(static_cast<unsigned>(count));
  return 0;
}

HLAUNCH_IN_CHILD void ResetSignals() {
  for (int signal = 1; signal <= 64; ++signal) {
    RawSyscall(SYS_rt_sigaction, signal, RawArgument(kDefaultAction), 0, 8);
  }
  const unsigned long no_signals = 0;
  RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, RawArgument(&no_signals), 0, 8);
}

// Runs in the child between clone and exec, on its own stack but in the parent's memory and with
// the parent thread's errno, while the parent goes on. So it uses only RawSyscall, no library
// function, no allocation. It reports through `plan`.
HLAUNCH_IN_CHILD int RunChild(void* argument) {
  auto* plan = static_cast<ChildPlan*>(argument);
  long result = RawSyscall(SYS_setsid);
  if (result < 0) return Fail(plan, "setsid", result);
  RawSyscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  // If the parent died before the line above, no signal will come.
  if (RawSyscall(SYS_getppid) != plan->parent) return 127;
  result = TakeStreams(plan);
  if (result < 0) return Fail(plan, "its standard streams", result);
  if (plan->directory != nullptr) result = RawSyscall(SYS_chdir, RawArgument(plan->directory));
  if (result < 0) return Fail(plan, "its working directory", result);
  if (plan->descriptors != nullptr) {
    RawSyscall(SYS_prlimit64, 0, RLIMIT_NOFILE, RawArgument(plan->descriptors), 0);
  }
  Bind(plan);
  ResetSignals();
  result = RawSyscall(SYS_execve, RawArgument(plan->path), RawArgument(plan->argv),
                      RawArgument(plan->env));
  return Fail(plan, "exec", result);
}

}  // namespace

pid_t StartChild(ChildPlan* plan, int* pidfd) {
  plan->stack = std::make_unique_for_overwrite<char[]>(kChildStack);
  plan->shares_memory = 1;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // Kernels without CLONE_PIDFD ignore it.
  const int flags =
      CLONE_VM | (pidfd == nullptr ? 0 : CLONE_PIDFD) | CLONE_CHILD_CLEARTID | SIGCHLD;
  // No CLONE_VFORK: it would block the parent until the moment that CLONE_CHILD_CLEARTID tells
  // anyway.
  const pid_t pid = ::__clone(RunChild, plan->stack.get() + kChildStack, flags, plan, pidfd,
                              nullptr, &plan->shares_memory);
  const int error = errno;
  if (pid < 0) plan->shares_memory = 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

void AwaitExec(const ChildPlan& plan) {
  while (__atomic_load_n(&plan.shares_memory, __ATOMIC_ACQUIRE) != 0) {
    ::syscall(SYS_futex, &plan.shares_memory, FUTEX_WAIT, 1, nullptr, nullptr, 0);
  }
}

}  // namespace hlaunch
