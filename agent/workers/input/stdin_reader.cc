// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/input/stdin_reader.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "asio/post.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {

StdinReader::StdinReader(asio::io_context& loop, TakeFn take)
    : take_(std::move(take)), readable_(loop), loop_(loop) {
  UniqueFd poll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLIN;
  // A regular file cannot be polled, and need not be.
  if (poll.valid() && ::epoll_ctl(poll.get(), EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0) {
    readable_.assign(poll.Release());
  }
}

void StdinReader::Go() {
  if (going_ || ended_) return;
  going_ = true;
  Await();
}

void StdinReader::Await() {
  const auto read = [this, alive = std::weak_ptr<bool>(life_)](const asio::error_code& error) {
    if (!error && !alive.expired()) ReadOnce();
  };
  if (!readable_.is_open()) return asio::post(loop_, [read] { read({}); });
  readable_.async_wait(asio::posix::descriptor_base::wait_read, read);
}

void StdinReader::ReadOnce() {
  std::string bytes(kStdinChunk, '\0');
  const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return Await();
  going_ = false;
  if (n <= 0) {
    ended_ = true;
    readable_.close();
    take_("");
    return;
  }
  bytes.resize(static_cast<size_t>(n));
  if (take_(std::move(bytes))) Go();
}

}  // namespace hlaunch
