// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "asio/posix/stream_descriptor.hpp"

namespace asio {
class io_context;
}

namespace hlaunch {

// Tells when something changes in folders. Where the kernel has no watches left it tells nothing,
// so whoever watches also looks by himself now and then.
//
// Belongs to the loop's thread.
class FolderWatch {
 public:
  // `mask` is inotify's: what is a change.
  FolderWatch(asio::io_context& loop, uint32_t mask);

  // Calls `changed` after each change in the open `folder`, which may be closed then; the number is
  // for Forget.
  int Watch(int folder, std::function<void()> changed);
  void Forget(int number);

 private:
  void Read();
  void Tell(int watch);

  const uint32_t mask_;
  std::optional<asio::posix::stream_descriptor> kernel_;  // Unset: it cannot be had.
  int next_ = 1;
  std::map<int, int> watch_of_;                               // By number.
  std::map<int, std::map<int, std::function<void()>>> told_;  // By watch, by number.
};

}  // namespace hlaunch
