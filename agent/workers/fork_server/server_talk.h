// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/workers/fork_server/fork_messages.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The agent's end of the socket to a fork server: it says what the server has to answer in time,
// and takes what the server says.
//
// Belongs to the loop thread.
class ServerTalk : public std::enable_shared_from_this<ServerTalk> {
 public:
  // Called from the loop, and no more after Close.
  struct Events {
    std::function<void(const ForkMessage&)> on_message;
    std::function<void()> on_end;                        // The server has closed its end.
    std::function<void(const std::string&)> on_trouble;  // It does not read or does not answer.
  };

  explicit ServerTalk(asio::io_context& loop) : loop_(loop), socket_(loop), silence_(loop) {}

  // Call this before all else. `fd` is a connected stream socket.
  void Open(UniqueFd fd, Events events);

  // Says something, with descriptors, after which the server says something each time before
  // `limit` is over, until it has answered.
  void Say(const ForkMessage& words, Duration limit, const std::vector<int>& fds = {});

  // A message was an answer to one of Say.
  void Answered() { --expected_; }

  void Close();

 private:
  void HearLater();
  void Hear();
  bool Receive();

  asio::io_context& loop_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer silence_;
  Events events_;
  std::string received_;
  int expected_ = 0;    // Answers that are on their way.
  bool hears_ = false;  // The loop waits for one.
  bool closed_ = false;
  Duration patience_{};
};

}  // namespace hlaunch
