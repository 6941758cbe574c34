// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <map>

#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {

// The stand-ins of workers that run elsewhere: a moment after its start, each shows in its name
// which process its worker is.
//
// Belongs to the loop thread.
class StandIns {
 public:
  // `on_known` is called from the loop, once for each worker.
  StandIns(asio::io_context& loop, std::function<void(int local_rank, pid_t pid)> on_known)
      : timer_(loop), on_known_(std::move(on_known)) {}

  // Process `pid`, a child of this process, stands in for that worker, until Ended is called.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank) { unknown_.erase(local_rank); }

  // `on_known` is not called any more.
  void Stop();

 private:
  void LookLater();

  asio::steady_timer timer_;
  const std::function<void(int, pid_t)> on_known_;
  std::map<int, pid_t> unknown_;  // By local rank.
};

}  // namespace hlaunch
