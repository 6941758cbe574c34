// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"

namespace hlaunch {

inline constexpr size_t kStdinChunk = 32 << 10;  // The most that comes at once.

// Reads this process's stdin in the loop, and leaves it as it is: other processes share it, and
// would not expect that it does not block.
//
// Belongs to the loop's thread; `loop` outlives it.
class StdinReader {
 public:
  // `take` gets what comes, and at the end nothing; it returns whether more may come at once, else
  // Go says so.
  using TakeFn = std::function<bool(std::string bytes)>;
  StdinReader(asio::io_context& loop, TakeFn take);

  void Go();

 private:
  void Await();
  void ReadOnce();

  const TakeFn take_;
  asio::posix::stream_descriptor readable_;  // An epoll that holds stdin; closed: a file.
  asio::io_context& loop_;
  bool going_ = false;
  bool ended_ = false;
};

}  // namespace hlaunch
