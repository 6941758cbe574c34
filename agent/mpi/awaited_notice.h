// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>

namespace asio {
class io_context;
}

namespace hlaunch {

// Says who waits for whom, once that has lasted for 10 s, and then after twice as long each time.
//
// Belongs to the loop thread.
class AwaitedNotice {
 public:
  // `awaited` says it in one line; empty: nobody waits. `hint` is added to each line.
  AwaitedNotice(asio::io_context& loop, std::function<std::string()> awaited, std::string hint);
  ~AwaitedNotice();

  // Something has changed.
  void Look();

  // Says nothing any more.
  void Hush();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
