// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Tells the user that workers are being stopped, why and for how long, unless they stop at once.
//
// Belongs to the loop thread.
class StopNotice {
 public:
  explicit StopNotice(asio::io_context& loop);
  ~StopNotice();

  // Workers are being stopped for `reason`, which may be empty, and are killed after `grace`.
  // `alive` says how many are left; it is called from the loop until End.
  void Begin(std::string reason, Duration grace, std::function<int()> alive);

  // The workers have stopped.
  void End();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// "rank 3 (node1) exited with code 7; stopping 7 workers, up to 30 s (--shutdown-timeout)". With 0
// workers it names what the workers left behind. Pure.
std::string DescribeStopping(const std::string& reason, int workers, Duration grace);

}  // namespace hlaunch
