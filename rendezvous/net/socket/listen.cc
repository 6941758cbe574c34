// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/accept.h"

namespace hlaunch {
namespace {

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view address, uint16_t port) {
  const std::string literal(address);
  Endpoint endpoint;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&endpoint.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&endpoint.storage);
  if (inet_pton(AF_INET, literal.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    endpoint.size = sizeof(*v4);
    return endpoint;
  }
  if (inet_pton(AF_INET6, literal.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    endpoint.size = sizeof(*v6);
    return endpoint;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot listen on '", address,
                   "': not an IPv4 or IPv6 address; give a literal, as in 10.0.0.1"));
}

// Maps the errors of socket, bind and listen by hand: Abseil's table maps a used port to
// FailedPrecondition.
absl::Status ListenError(int error, absl::string_view address, uint16_t port) {
  const std::string where =
      absl::StrCat("cannot listen on ", address, " port ", port, ": ", std::strerror(error));
  if (OutOfDescriptors(error)) return absl::ResourceExhaustedError(where);
  switch (error) {
    case EADDRINUSE:
      if (port == 0) return absl::ResourceExhaustedError(where);
      return absl::AlreadyExistsError(absl::StrCat(where, "; another program listens there"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(where, "; it is no address of this host"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(where);
    case EAFNOSUPPORT:
    case EINVAL:
      return absl::InvalidArgumentError(where);
    default:
      return absl::InternalError(where);
  }
}

uint16_t BoundPort(int fd) {
  Endpoint bound;
  bound.size = sizeof(bound.storage);
  HLAUNCH_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) == 0);
  return bound.family() == AF_INET6
             ? ntohs(reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port)
             : ntohs(reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
}

enum class Use { kListen, kReserve, kReserveNamed };

// Two sockets with SO_REUSEADDR may bind the same port as long as neither listens. If both then
// listen at the same moment, the kernel may refuse both. So a socket that was refused only at that
// point tries again: by then the port is taken or free.
constexpr int kTriesToListen = 10;
constexpr int kLongestPauseMicroseconds = 5000;

// Pauses for a different time in each process and thread.
void PauseForARival() {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongestPauseMicroseconds));
}

// The code of an attempt that failed because a rival bound the port, too, and neither has it yet.
constexpr absl::StatusCode kRivalBound = absl::StatusCode::kAborted;

absl::StatusOr<ListeningSocket> TryToBind(const std::string& address, uint16_t port,
                                          bool dual_stack, Use use) {
  HLAUNCH_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(address, port));
  UniqueFd fd(::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ListenError(errno, address, port);
  const int on = 1;
  const int v6_only = dual_stack ? 0 : 1;
  const auto allow_reuse = [&fd, &on] {
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  };
  if (use != Use::kReserve) allow_reuse();
  if (endpoint.family() == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  }
  if (::bind(fd.get(), endpoint.get(), endpoint.size) != 0) {
    return ListenError(errno, address, port);
  }
  if (use == Use::kReserve) allow_reuse();  // Only now: two reservations must not share a port.
  // The kernel caps the backlog at net.core.somaxconn.
  if (use == Use::kListen && ::listen(fd.get(), 1 << 16) != 0) {
    const absl::Status error = ListenError(errno, address, port);
    return absl::IsAlreadyExists(error) ? absl::Status(kRivalBound, error.message()) : error;
  }
  const uint16_t bound = BoundPort(fd.get());
  return ListeningSocket{std::move(fd), bound, address};
}

absl::StatusOr<ListeningSocket> BindTo(const std::string& address, uint16_t port, bool dual_stack,
                                       Use use) {
  absl::StatusOr<ListeningSocket> socket = TryToBind(address, port, dual_stack, use);
  for (int i = 1; i < kTriesToListen && socket.status().code() == kRivalBound; ++i) {
    PauseForARival();
    socket = TryToBind(address, port, dual_stack, use);
  }
  if (socket.status().code() == kRivalBound) {
    return absl::AlreadyExistsError(socket.status().message());
  }
  return socket;
}

absl::StatusOr<ListeningSocket> BindToAll(uint16_t port, Use use) {
  absl::StatusOr<ListeningSocket> both = BindTo("::", port, /*dual_stack=*/true, use);
  // A kernel without IPv6 says EAFNOSUPPORT, one with it switched off EADDRNOTAVAIL.
  if (absl::IsInvalidArgument(both.status())) return BindTo("0.0.0.0", port, false, use);
  return both;
}

}  // namespace

absl::StatusOr<ListeningSocket> Listen(absl::string_view address, uint16_t port) {
  if (address.empty()) return BindToAll(port, Use::kListen);
  return BindTo(std::string(address), port, /*dual_stack=*/false, Use::kListen);
}

absl::StatusOr<ListeningSocket> Reserve(uint16_t port, bool named) {
  return BindToAll(port, named ? Use::kReserveNamed : Use::kReserve);
}

}  // namespace hlaunch
