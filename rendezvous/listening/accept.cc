// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/listening/accept.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace hlaunch {

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

int AcceptConnections(int listener, int most, absl::FunctionRef<void(UniqueFd)> take) {
  for (int i = 0; i < most; ++i) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      take(std::move(fd));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return EAGAIN;
    } else if (OutOfDescriptors(errno)) {
      return errno;
    }
  }
  return 0;
}

}  // namespace hlaunch
