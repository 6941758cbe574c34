// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/exit_notice.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>

namespace hlaunch {
namespace {

constexpr size_t kStack = 64 * 1024;

struct Notice {
  pid_t pid;
  UniqueFd tell;
};

void* AwaitExitOf(void* argument) {
  const std::unique_ptr<Notice> notice(static_cast<Notice*>(argument));
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(notice->pid), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  ::eventfd_write(notice->tell.get(), 1);  // Also if another thread has reaped the child.
  return nullptr;
}

// Returns true if the thread has started; it then owns `notice`.
bool StartThread(Notice* notice) {
  pthread_t thread;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStack);
  sigset_t all, before;  // The other threads handle signals.
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::pthread_create(&thread, &attributes, AwaitExitOf, notice);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace

bool KernelHasPidfds() {
  static const bool has = [] {
    const UniqueFd own(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    return own.valid() || (errno != ENOSYS && errno != EPERM);
  }();
  return has;
}

// Not ::pidfd_open: glibc 2.36 declares it without extern "C".
UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(KernelHasPidfds() ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
}

bool AwaitExitNotice(int fd, Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
  pollfd exited = {fd, POLLIN, 0};
  return ::poll(&exited, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) == 1;
}

UniqueFd NoticeExit(pid_t pid) {
  UniqueFd exited(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  auto notice = std::make_unique<Notice>();
  notice->pid = pid;
  notice->tell = UniqueFd(::fcntl(exited.get(), F_DUPFD_CLOEXEC, 0));
  if (!notice->tell.valid() || !StartThread(notice.get())) return {};
  (void)notice.release();  // The thread owns it now.
  return exited;
}

}  // namespace hlaunch
