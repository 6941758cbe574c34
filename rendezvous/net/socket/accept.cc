// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/accept.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

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

std::string PeerName(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  auto* address = reinterpret_cast<sockaddr*>(&peer);
  if (::getpeername(fd, address, &size) != 0 ||
      ::getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return absl::StrCat(host, " port ", port);
}

}  // namespace hlaunch
