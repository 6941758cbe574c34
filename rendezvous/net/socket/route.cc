// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/route.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/find_host.h"

namespace hlaunch {
namespace {

struct Socket {
  sockaddr_storage address = {};
  socklen_t length = 0;
};

absl::StatusOr<Socket> Parse(absl::string_view literal) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (literal.empty() || ::getaddrinfo(std::string(literal).c_str(), nullptr, &hints, &list) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", literal, "' is not an IP address"));
  }
  Socket socket;
  std::memcpy(&socket.address, list->ai_addr, list->ai_addrlen);
  socket.length = list->ai_addrlen;
  ::freeaddrinfo(list);
  return socket;
}

std::string ToText(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

// Returns false if a socket that connects is neither accepted nor refused until `deadline`.
bool AwaitRoom(int fd, Instant deadline) {
  pollfd poll_fd = {fd, POLLOUT, 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
    const int ready = ::poll(&poll_fd, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready == 1;  // A signal may come meanwhile.
  }
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

// The route to one of this host's addresses begins at that address.
bool IsOwnAddress(absl::string_view literal) {
  const auto from = LocalAddressTowards(literal);
  return from.ok() && *from == literal;
}

absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host) {
  if (host.empty()) return absl::InvalidArgumentError("cannot resolve '': empty name");
  FoundHost found = FindHost(host);
  if (found.error != 0) {
    const std::string why = absl::StrCat("cannot resolve '", host, "': ", found.why);
    constexpr int kMayPass[] = {EAI_AGAIN, EAI_NONAME, EAI_NODATA, EAI_FAIL, EAI_SYSTEM};
    const bool may_pass = std::count(std::begin(kMayPass), std::end(kMayPass), found.error) > 0;
    return may_pass ? absl::UnavailableError(why) : absl::InvalidArgumentError(why);
  }
  struct Candidate {
    std::string literal;
    bool routed;
    bool v4;
  };
  std::vector<Candidate> candidates;
  for (std::string& literal : found.literals) {
    const bool routed = LocalAddressTowards(literal).ok();
    const bool v4 = !absl::StrContains(literal, ':');
    candidates.push_back({std::move(literal), routed, v4});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.routed != b.routed ? a.routed : a.v4 && !b.v4;
                   });
  std::vector<std::string> literals;
  for (Candidate& candidate : candidates) literals.push_back(std::move(candidate.literal));
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
  if (!AwaitRoom(fd.get(), MonotonicClock().Now() + patience)) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

}  // namespace hlaunch
