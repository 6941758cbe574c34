// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"

namespace hlaunch {

// The end of a group of workers that is being stopped: when all of it is killed, and what becomes
// of the processes that workers have left behind.
//
// Belongs to the loop thread.
class GroupEnd {
 public:
  // Both are called from the loop. `on_kill`: the time of the group is over. `on_look`: some of the
  // orphans may be gone.
  GroupEnd(asio::io_context& loop, std::function<void()> on_kill, std::function<void()> on_look)
      : loop_(loop),
        kill_timer_(loop),
        look_timer_(loop),
        on_kill_(std::move(on_kill)),
        on_look_(std::move(on_look)) {}

  // Calls `on_kill` at `when`, unless an earlier time was set.
  void KillAt(Instant when);

  // Once no worker lives: sends SIGTERM once to each orphan that has heard of no end, and may set
  // an earlier time to kill. `workers` are all pids of workers, `spare` is left alone, and
  // `stop_signal` is what workers have got.
  void HurryOrphans(const std::vector<pid_t>& workers, const std::vector<pid_t>& spare,
                    int stop_signal);

  // Calls `on_look` in the next turn of the loop.
  void LookSoon();

  // Nothing is called any more.
  void Cancel();

 private:
  asio::io_context& loop_;
  asio::steady_timer kill_timer_, look_timer_;
  const std::function<void()> on_kill_, on_look_;
  Instant kill_at_ = Instant::max();
  std::set<std::pair<pid_t, uint64_t>> hurried_;  // Orphans that got SIGTERM, by start time.
  std::shared_ptr<bool> life_ = std::make_shared<bool>(true);  // Expires with Cancel.
};

// Kills and reaps all descendants but `spare` and the workers `stuck`, which the kernel holds, and
// logs which are left at `deadline`.
void KillOrphans(std::vector<pid_t> spare, const std::vector<pid_t>& stuck, Instant deadline);

}  // namespace hlaunch
