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

// Logs which ranks wait for which, once that has lasted for kFirstNotice, then after twice as
// long each time.
//
// Belongs to the loop thread.
class AwaitedNotice {
 public:
  static constexpr Duration kFirstNotice = std::chrono::seconds(10);

  // `awaited` describes the wait in one line; empty if no rank waits. `hint` is added to each line.
  AwaitedNotice(asio::io_context& loop, std::function<std::string()> awaited, std::string hint);
  ~AwaitedNotice();

  // Call this when something has changed.
  void Look();

  // Stops all logging.
  void Hush();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
