// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/server_talk.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "asio/post.hpp"

namespace hlaunch {

void ServerTalk::Open(UniqueFd fd, Events events) {
  socket_.assign(fd.Release());
  events_ = std::move(events);
}

void ServerTalk::Say(const ForkMessage& words, Duration limit, const std::vector<int>& fds) {
  patience_ = expected_++ == 0 ? limit : std::max(patience_, limit);
  if (SendAtOnce(socket_.native_handle(), Packed(words), fds)) return HearLater();
  asio::post(loop_, [self = shared_from_this()] {
    if (!self->closed_) self->events_.on_trouble("it does not read");
  });
}

void ServerTalk::Close() {
  closed_ = true;
  silence_.cancel();
  if (socket_.is_open()) socket_.close();
}

void ServerTalk::HearLater() {
  silence_.expires_after(patience_);
  silence_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && !self->closed_) self->events_.on_trouble("it does not answer");
  });
  if (std::exchange(hears_, true)) return;
  socket_.async_wait(asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->hears_ = false;
                       if (!error) self->Hear();
                     });
}

void ServerTalk::Hear() {
  if (closed_) return;
  if (!Receive()) return events_.on_end();
  while (!closed_) {
    const std::optional<ForkMessage> message = TakeMessage(received_);
    if (!message) break;
    events_.on_message(*message);
  }
  if (closed_) return;
  if (expected_ > 0) {
    HearLater();
  } else {
    silence_.cancel();
  }
}

// Reads what there is; returns false at the end.
bool ServerTalk::Receive() {
  char buffer[4096];
  const ssize_t n = ::recv(socket_.native_handle(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (n > 0) received_.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace hlaunch
