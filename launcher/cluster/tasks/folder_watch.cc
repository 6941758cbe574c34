// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/folder_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"

namespace hlaunch {

FolderWatch::FolderWatch(asio::io_context& loop, uint32_t mask) : mask_(mask) {
  const int fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd < 0) return;
  kernel_.emplace(loop, fd);
  Read();
}

int FolderWatch::Watch(int folder, std::function<void()> changed) {
  const int number = next_++;
  if (!kernel_) return number;
  const std::string path = absl::StrCat("/proc/self/fd/", folder);
  const int watch = ::inotify_add_watch(kernel_->native_handle(), path.c_str(), mask_ | IN_ONLYDIR);
  if (watch < 0) return number;
  watch_of_[number] = watch;
  told_[watch][number] = std::move(changed);
  return number;
}

void FolderWatch::Forget(int number) {
  const auto found = watch_of_.find(number);
  if (found == watch_of_.end()) return;
  const int watch = found->second;
  watch_of_.erase(found);
  auto& told = told_[watch];
  told.erase(number);
  if (!told.empty()) return;
  told_.erase(watch);
  ::inotify_rm_watch(kernel_->native_handle(), watch);
}

void FolderWatch::Read() {
  kernel_->async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    alignas(inotify_event) char bytes[16 << 10];
    const ssize_t n = ::read(kernel_->native_handle(), bytes, sizeof bytes);
    std::vector<int> changed;
    for (ssize_t at = 0; at + static_cast<ssize_t>(sizeof(inotify_event)) <= n;) {
      inotify_event event;
      std::memcpy(&event, bytes + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event) + event.len;
      if (changed.empty() || changed.back() != event.wd) changed.push_back(event.wd);
    }
    for (const int watch : changed) Tell(watch);
    Read();
  });
}

void FolderWatch::Tell(int watch) {
  const auto found = told_.find(watch);
  if (found == told_.end()) return;
  const auto told = found->second;  // A copy, since a callback may forget another one.
  for (const auto& [number, changed] : told) {
    if (watch_of_.count(number) > 0) changed();
  }
}

}  // namespace hlaunch
