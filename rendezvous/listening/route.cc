// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/listening/route.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

struct Socket {
  sockaddr_storage address = {};
  socklen_t length = 0;
};

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// getaddrinfo's list, or its error code in `error`.
AddressList LookUp(const std::string& host, int flags, int* error) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  *error = ::getaddrinfo(host.c_str(), "9", &hints, &list);
  return AddressList(*error == 0 ? list : nullptr, &::freeaddrinfo);
}

absl::StatusOr<Socket> Parse(absl::string_view literal) {
  int error = 0;
  const AddressList list = LookUp(std::string(literal), AI_NUMERICHOST, &error);
  if (list == nullptr || literal.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", literal, "' is not an IP address"));
  }
  Socket socket;
  std::memcpy(&socket.address, list->ai_addr, list->ai_addrlen);
  socket.length = list->ai_addrlen;
  return socket;
}

std::string ToText(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

absl::StatusOr<std::string> LocalAddressTowards(absl::string_view literal) {
  HLAUNCH_ASSIGN_OR_RETURN(const Socket peer, Parse(literal));
  const UniqueFd fd(::socket(peer.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Socket own;
  own.length = sizeof own.address;
  // Connecting a datagram socket only asks the routing table.
  if (!fd.valid() ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer.address), peer.length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own.address), &own.length) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no route to ", literal, ": ", std::strerror(errno)));
  }
  return ToText(reinterpret_cast<const sockaddr*>(&own.address), own.length);
}

// The route to an own address begins at that address.
bool IsOwnAddress(absl::string_view literal) {
  const auto from = LocalAddressTowards(literal);
  return from.ok() && *from == literal;
}

absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host) {
  int error = 0;
  const AddressList list = LookUp(host, 0, &error);
  if (host.empty() || list == nullptr) {
    const std::string why = absl::StrCat("cannot resolve '", host, "': ",
                                         host.empty()          ? "empty name"
                                         : error == EAI_SYSTEM ? std::strerror(errno)
                                                               : ::gai_strerror(error));
    const bool may_pass =
        !host.empty() && (error == EAI_AGAIN || error == EAI_NONAME || error == EAI_NODATA ||
                          error == EAI_FAIL || error == EAI_SYSTEM);
    return may_pass ? absl::UnavailableError(why) : absl::InvalidArgumentError(why);
  }
  struct Candidate {
    std::string literal;
    bool routed;
    bool v4;
  };
  std::vector<Candidate> candidates;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    std::string literal = ToText(at->ai_addr, at->ai_addrlen);
    const bool routed = LocalAddressTowards(literal).ok();
    candidates.push_back({std::move(literal), routed, at->ai_family == AF_INET});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.routed != b.routed ? a.routed : a.v4 && !b.v4;
                   });
  std::vector<std::string> literals;
  for (Candidate& candidate : candidates) literals.push_back(std::move(candidate.literal));
  literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
  return literals;
}

int TryToConnect(const std::string& literal, uint16_t port, Duration patience) {
  absl::StatusOr<Socket> peer = Parse(literal);
  if (!peer.ok()) return EINVAL;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&peer->address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&peer->address);
  (peer->address.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port) = htons(port);
  const UniqueFd fd(
      ::socket(peer->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer->address), peer->length) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) return errno;
  pollfd poll_fd = {fd.get(), POLLOUT, 0};
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(patience);
  if (::poll(&poll_fd, 1, static_cast<int>(limit.count())) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

}  // namespace hlaunch
