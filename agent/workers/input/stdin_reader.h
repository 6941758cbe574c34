// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"

namespace hlaunch {

inline constexpr size_t kStdinChunk = 32 << 10;  // The largest piece that is read at once.

// Reads this process's stdin in the loop. It leaves the descriptor's flags alone: other processes
// share it and do not expect it to be non-blocking.
//
// Belongs to the loop's thread; `loop` outlives it.
class StdinReader {
 public:
  // `take` gets each piece of data, and an empty text at the end. It returns true if more may come
  // at once; after false, reading goes on when Go is called.
  using TakeFn = std::function<bool(std::string bytes)>;
  StdinReader(asio::io_context& loop, TakeFn take);

  void Go();

 private:
  void Await();
  void ReadOnce();

  const TakeFn take_;
  // An epoll that holds stdin; closed if stdin is a file.
  asio::posix::stream_descriptor readable_;
  asio::io_context& loop_;
  bool going_ = false;
  bool ended_ = false;
  const std::shared_ptr<bool> life_ = std::make_shared<bool>(true);  // Expires with this object.
};

}  // namespace hlaunch
