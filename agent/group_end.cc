// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/group_end.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "asio/post.hpp"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

// How long processes in sessions of their own may live on once no worker lives.
constexpr Duration kOwnSessionGrace = std::chrono::seconds(2);
constexpr Duration kLook = std::chrono::milliseconds(500);

}  // namespace

void GroupEnd::KillAt(Instant when) {
  if (when >= kill_at_) return;
  kill_at_ = when;
  kill_timer_.expires_at(when);
  kill_timer_.async_wait([this, alive = std::weak_ptr<bool>(life_)](const asio::error_code& error) {
    if (!error && !alive.expired()) on_kill_();
  });
}

// Processes in a worker's session have the rest of the grace: the trainer may be an orphan of a
// wrapper script that ended first. But a shell's background processes ignore SIGINT, and nothing
// has reached processes in sessions of their own.
void GroupEnd::HurryOrphans(const std::vector<pid_t>& workers, const std::vector<pid_t>& spare,
                            int stop_signal) {
  std::vector<ProcessEntry> deaf, others;
  bool trainer_may_live = false;
  for (ProcessEntry& entry : Descendants(::getpid(), spare)) {
    if (entry.state == 'Z') continue;
    const bool of_worker =
        std::find(workers.begin(), workers.end(), entry.session) != workers.end();
    const bool is_deaf = of_worker && stop_signal != SIGTERM && IgnoresSignal(entry, stop_signal);
    trainer_may_live = trainer_may_live || (of_worker && !is_deaf);
    (is_deaf ? deaf : others).push_back(std::move(entry));
  }
  if (deaf.empty() && others.empty()) return;  // They are about to be reaped, or unknown.
  if (!trainer_may_live) {
    deaf.insert(deaf.end(), others.begin(), others.end());
    KillAt(MonotonicClock().Now() + kOwnSessionGrace);
  }
  for (const ProcessEntry& entry : deaf) {
    if (hurried_.emplace(entry.pid, entry.start_time).second) SignalProcess(entry, SIGTERM);
  }
  // A process that a shell has just made does not ignore the signal yet.
  look_timer_.expires_after(kLook);
  look_timer_.async_wait([this, alive = std::weak_ptr<bool>(life_)](const asio::error_code& error) {
    if (!error && !alive.expired()) on_look_();
  });
}

void GroupEnd::LookSoon() {
  asio::post(loop_, [this, alive = std::weak_ptr<bool>(life_)] {
    if (!alive.expired()) on_look_();
  });
}

void GroupEnd::Cancel() {
  life_.reset();
  kill_timer_.cancel();
  look_timer_.cancel();
}

void KillOrphans(std::vector<pid_t> spare, const std::vector<pid_t>& stuck, Instant deadline) {
  spare.insert(spare.end(), stuck.begin(), stuck.end());
  for (const ProcessEntry& process :
       KillAndReapDescendants(MonotonicClock(), deadline, spare).stuck) {
    LogWarning(absl::StrCat("cannot end ", process.ToString(), "; going on without it"));
  }
  for (const pid_t pid : stuck) {
    LogWarning(absl::StrCat("cannot end worker ", pid,
                            ": it is stuck in the kernel; going on without it"));
  }
}

}  // namespace hlaunch
