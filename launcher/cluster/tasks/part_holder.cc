// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/part_holder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// Uses the system call, since glibc's header of pidfd_open cannot be used from C++.
UniqueFd OpenPid(pid_t pid) {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) return UniqueFd();
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace

bool HasEnded(pid_t pid, uint64_t start_time) {
  const std::optional<ProcessEntry> found = ReadProcess(pid);
  if (!found) return ::kill(pid, 0) != 0 && errno == ESRCH;
  return found->start_time != start_time || found->state == 'Z' || found->state == 'X';
}

PartHolder::PartHolder(asio::io_context& loop, pid_t pid, uint64_t start_time,
                       std::function<void()> ended)
    : loop_(loop), pid_(pid), start_time_(start_time), ended_(std::move(ended)) {
  Watch();
}

void PartHolder::Watch() {
  UniqueFd pidfd = OpenPid(pid_);
  // Another process may have the number by now. Then Look notices the end.
  if (!pidfd.valid() || HasEnded(pid_, start_time_)) return;
  pidfd_.emplace(loop_, pidfd.Release());
  pidfd_->async_wait(asio::posix::stream_descriptor::wait_read,
                     [ended = ended_](std::error_code error) {
                       if (!error) ended();
                     });
}

void PartHolder::Look() {
  if (pidfd_) return;
  Watch();
  if (pidfd_ || !HasEnded(pid_, start_time_)) return;
  const auto ended = ended_;  // A copy, since the call may destroy this object.
  ended();
}

void PartHolder::Signal(int signal) {
  if (pidfd_ &&
      ::syscall(SYS_pidfd_send_signal, pidfd_->native_handle(), signal, nullptr, 0) == 0) {
    return;
  }
  if (!HasEnded(pid_, start_time_)) ::kill(pid_, signal);
}

void PartHolder::Reap() {
  siginfo_t ignored;
  if (pidfd_) {
    const auto pidfd = static_cast<id_t>(pidfd_->native_handle());
    ::waitid(static_cast<idtype_t>(P_PIDFD), pidfd, &ignored, WEXITED | WNOHANG);
  } else {
    ::waitid(P_PID, static_cast<id_t>(pid_), &ignored, WEXITED | WNOHANG);
  }
}

}  // namespace hlaunch
