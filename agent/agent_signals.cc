// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/agent_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "proto/base/status_macros.h"

namespace hlaunch {

SignalRequest SignalRules::Take(int signal, bool counts, bool is_ending) {
  if (signal == SIGCHLD) return SignalRequest::kReap;
  if (std::find(ending_.begin(), ending_.end(), signal) == ending_.end()) {
    return SignalRequest::kForward;
  }
  if (signal == SIGINT && counts) ++ctrl_c_;
  if (first_ != 0 || is_ending) {
    const int kills = first_ == SIGINT ? 2 : 1;
    return ctrl_c_ < kills ? SignalRequest::kNothing : SignalRequest::kKill;
  }
  first_ = signal;
  return SignalRequest::kLeave;
}

struct SignalListener::State {
  explicit State(asio::io_context& loop) : signals(loop), keeper(loop) {}

  void Await() {
    signals.async_wait(asio::posix::descriptor_base::wait_read,
                       [this](const asio::error_code& error) {
                         if (error) return;
                         ReadAll();
                         Await();
                       });
  }

  void ReadAll() {
    signalfd_siginfo info = {};
    while (::read(signals.native_handle(), &info, sizeof info) ==
           static_cast<ssize_t>(sizeof info)) {
      on_signal(static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid));
    }
  }

  asio::posix::stream_descriptor signals;
  asio::posix::stream_descriptor keeper;
  std::function<void(int, pid_t)> on_signal;
};

SignalListener::SignalListener(asio::io_context& loop) : state_(std::make_unique<State>(loop)) {}
SignalListener::~SignalListener() = default;

absl::Status SignalListener::Listen(const SignalNumbers& named,
                                    std::function<void(int signal, pid_t sender)> on_signal) {
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd fd, AgentSignals(named));
  state_->signals.assign(fd.Release());
  state_->on_signal = std::move(on_signal);
  state_->Await();
  return absl::OkStatus();
}

void SignalListener::WatchKeeper(int keeper_fd, std::function<void()> on_death) {
  state_->keeper.assign(::fcntl(keeper_fd, F_DUPFD_CLOEXEC, 0));
  state_->keeper.async_wait(asio::posix::descriptor_base::wait_read,
                            [on_death = std::move(on_death)](const asio::error_code& error) {
                              if (!error) on_death();
                            });
}

}  // namespace hlaunch
