// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/waiting_forks.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/workers/fork_server/fork_messages.h"
#include "agent/workers/process/exit_notice.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

struct WaitingForks::Fork {
  Fork(asio::io_context& loop, Process the_process, UniqueFd the_socket)
      : process(std::move(the_process)), socket(std::move(the_socket)), ended(loop) {}
  Process process;
  UniqueFd socket;
  asio::posix::stream_descriptor ended;
};

WaitingForks::WaitingForks(asio::io_context& loop, std::function<void()> on_reaped)
    : loop_(loop), on_reaped_(std::move(on_reaped)) {}
WaitingForks::~WaitingForks() = default;

absl::Status WaitingForks::Add(pid_t pid, UniqueFd socket) {
  HLAUNCH_ASSIGN_OR_RETURN(Process process, Process::Adopt(pid));
  UniqueFd pidfd(::fcntl(process.pidfd(), F_DUPFD_CLOEXEC, 0));
  Fork& fork = waiting_.emplace_back(loop_, std::move(process), std::move(socket));
  asio::error_code error(errno, asio::system_category());
  if (pidfd.valid()) fork.ended.assign(pidfd.get(), error);
  if (!fork.ended.is_open()) {
    LogDebug(absl::StrCat("the end of fork ", pid, " is seen late: ", error.message()));
    return absl::OkStatus();
  }
  (void)pidfd.Release();
  fork.ended.async_wait(
      asio::posix::descriptor_base::wait_read,
      [this, pid, life = std::weak_ptr<bool>(life_)](const asio::error_code& cancelled) {
        if (!cancelled && !life.expired()) OnEnd(pid);
      });
  return absl::OkStatus();
}

void WaitingForks::OnEnd(pid_t pid) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [pid](const Fork& fork) { return fork.process.pid() == pid; });
  if (found == waiting_.end()) return;  // It is a rank now.
  found->process.Reap();
  waiting_.erase(found);
  on_reaped_();
}

size_t WaitingForks::count() const { return waiting_.size(); }

std::vector<pid_t> WaitingForks::pids() const {
  std::vector<pid_t> pids;
  for (const Fork& fork : waiting_) pids.push_back(fork.process.pid());
  return pids;
}

absl::StatusOr<Process> WaitingForks::Become(const Command& command, const std::string& python,
                                             const std::string (&printed)[2]) {
  const Instant now = MonotonicClock().Now();
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [now](const Fork& fork) {
    return !AwaitExitNotice(fork.process.pidfd(), now);
  });
  if (found == waiting_.end()) return absl::UnavailableError("no fork waits for it");
  UniqueFd null;
  if (command.stdin_fd < 0) null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<int> fds = {command.stdin_fd < 0 ? null.get() : command.stdin_fd, command.stdout_fd,
                          command.stderr_fd};
  if (command.further_fd >= 0) fds.push_back(command.further_fd);
  ForkMessage words = {"rank", absl::StrCat(::getpid()), absl::StrJoin(command.cpus, ",")};
  for (const std::string& entry : command.env) {
    if (!absl::StartsWith(entry, "_=")) words.push_back(entry);
  }
  words.push_back(absl::StrCat("_=", python));
  for (size_t i = 0; i < 2; ++i) {  // The rank's own pipes are empty still.
    if (!printed[i].empty() && ::write(fds[1 + i], printed[i].data(), printed[i].size()) < 0) {
      LogDebug(absl::StrCat("what modules printed is lost: ", std::strerror(errno)));
    }
  }
  if (!SendAtOnce(found->socket.get(), Packed(words), fds)) {
    found->process.Signal(SIGKILL);
    return absl::UnavailableError("a fork did not take what it was told");
  }
  Process process = std::move(found->process);
  waiting_.erase(found);
  return process;
}

void WaitingForks::Kill() {
  for (Fork& fork : waiting_) {
    fork.socket.Close();
    fork.process.Signal(SIGKILL);
  }
}

void WaitingForks::AwaitEnds(Instant deadline) {
  while (!waiting_.empty() && AwaitExitNotice(waiting_.front().process.pidfd(), deadline)) {
    waiting_.front().process.Reap();
    waiting_.pop_front();
  }
}

}  // namespace hlaunch
