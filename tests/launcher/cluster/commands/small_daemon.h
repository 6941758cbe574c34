// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/envelope.h"
#include "proto/cluster/frame.h"

namespace hlaunch {

// A server on a socket like hlaunchd's that answers with one function. Its frames, threads and
// connections are real; the test supplies the answers. Its threads end with it.
class SmallDaemon {
 public:
  // Answers a question; no value ends the connection. Several threads call it.
  using AnswerFn = std::function<std::optional<Envelope>(const Envelope& question)>;

  SmallDaemon(std::string path, AnswerFn answer)
      : path_(std::move(path)), answer_(std::move(answer)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    ::unlink(path_.c_str());
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    thread_ = std::thread([this] { Accept(); });
  }
  ~SmallDaemon() {
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    for (Connection& each : connections_) ::shutdown(each.fd.get(), SHUT_RDWR);
    for (Connection& each : connections_) each.thread.join();
    ::unlink(path_.c_str());
  }

  bool stopping() const { return stopping_; }
  int connections() const { return count_; }

 private:
  struct Connection {
    UniqueFd fd;
    std::thread thread;
  };

  void Accept() {
    while (true) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.valid()) return;
      ++count_;
      Connection& added = connections_.emplace_back();
      added.fd = std::move(fd);
      added.thread = std::thread([this, socket = added.fd.get()] { Serve(socket); });
    }
  }

  void Serve(int fd) {
    FrameReader reader(kMaxUserFrame);
    char bytes[4096];
    for (ssize_t n; (n = ::read(fd, bytes, sizeof(bytes))) > 0;) {
      const auto frames = reader.Take({bytes, static_cast<size_t>(n)});
      if (!frames.ok()) break;
      for (const std::string& frame : *frames) {
        const auto question = DecodeEnvelope(frame);
        const std::optional<Envelope> answer =
            question.ok() ? answer_(*question) : std::optional<Envelope>();
        if (!answer.has_value()) {
          ::shutdown(fd, SHUT_RDWR);
          return;
        }
        const std::string out = EncodeFrameOf(EncodeEnvelope(*answer));
        if (::send(fd, out.data(), out.size(), MSG_NOSIGNAL) < 0) return;
      }
    }
  }

  const std::string path_;
  const AnswerFn answer_;
  UniqueFd listener_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> count_ = 0;
  std::list<Connection> connections_;  // Only the accepting thread uses it until it ends.
  std::thread thread_;
};

// A socket path that is unique to this test process.
inline std::string SocketOfTest() { return "/tmp/hl-test-" + std::to_string(::getpid()) + ".sock"; }

}  // namespace hlaunch
