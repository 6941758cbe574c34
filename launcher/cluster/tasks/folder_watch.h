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

// Tells when something changes in folders. If the kernel has no watches left, it tells nothing. So
// its user must also look now and then.
//
// Belongs to the loop's thread.
class FolderWatch {
 public:
  // `mask` is inotify's mask of the changes to tell.
  FolderWatch(asio::io_context& loop, uint32_t mask);

  // Calls `changed` after each change in the open `folder`, which may be closed after this call.
  // Returns a number for Forget.
  int Watch(int folder, std::function<void()> changed);
  void Forget(int number);

 private:
  void Read();
  void Tell(int watch);

  const uint32_t mask_;
  std::optional<asio::posix::stream_descriptor> kernel_;  // Unset: inotify is not available.
  int next_ = 1;
  std::map<int, int> watch_of_;                               // By number.
  std::map<int, std::map<int, std::function<void()>>> told_;  // By watch, then by number.
};

}  // namespace hlaunch
