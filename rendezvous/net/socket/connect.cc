// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/connect.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace hlaunch {

UniqueFd BeginToConnect(const std::string& address, uint16_t port, int* error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  *error = EINVAL;
  if (::getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &found) != 0) return {};
  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool begun = fd.valid() && (::connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 ||
                                    errno == EINPROGRESS);
  *error = errno;
  ::freeaddrinfo(found);
  if (!begun) return {};
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

}  // namespace hlaunch
