// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/process/start_child.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

// clone() by the name that ThreadSanitizer does not intercept: it takes every clone for a fork,
// and then no longer checks this thread, whose memory the child shares.
// NOLINTNEXTLINE(bugprone-reserved-identifier): glibc's own name.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace hlaunch {
namespace {

constexpr size_t kChildStack = 64 * 1024;

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

}  // namespace

pid_t StartChild(ChildPlan* plan, int* pidfd) {
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

}  // namespace hlaunch
