// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// A test's end of a connection to a store: sends bytes and reads a given number of bytes.
class RawConnection {
 public:
  explicit RawConnection(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    Connect(port);
  }
  explicit RawConnection(UniqueFd unconnected) : fd_(std::move(unconnected)) {}

  void Connect(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    HLAUNCH_CHECK(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
                  0);
  }

  void Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return;  // The next Receive sees that the connection is gone.
      bytes.remove_prefix(static_cast<size_t>(put));
    }
  }

  // The next `size` bytes; fewer if the connection ends or nothing comes for 100 seconds.
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    size_t done = 0;
    pollfd entry{fd_.get(), POLLIN, 0};
    while (done<size&& ::poll(&entry, 1, 100'000)> 0) {
      const ssize_t got = ::recv(fd_.get(), bytes.data() + done, size - done, 0);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }

  // Whether the peer closes the connection within 100 seconds without another byte.
  bool Ends() {
    char byte = 0;
    pollfd entry{fd_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 100'000) > 0 && ::recv(fd_.get(), &byte, 1, 0) <= 0;
  }

  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace hlaunch
