// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/connect.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/connection/handshake.h"
#include "comm/connection/shm_connection.h"
#include "comm/connection/tcp_connection.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// The remaining time for poll; at least a millisecond, so that one attempt is made even if the
// deadline has passed.
int MillisLeft(Instant deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 1, 1 << 30));
}
bool Passed(Instant deadline) { return MonotonicClock().Now() >= deadline; }

// Null if `to` is on another host, or nobody listens there any more.
absl::StatusOr<std::unique_ptr<OutConnection>> ConnectLocally(const RankAddress& to,
                                                              const Handshake& handshake,
                                                              Instant deadline) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("unix socket");
  const auto [address, length] = AbstractAddress(to.local_name);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return nullptr;
    if (Passed(deadline)) {
      return absl::DeadlineExceededError("the rank's queue of new connections is full");
    }
    ::poll(nullptr, 0, 1);  // No descriptor tells when the queue has room.
  }
  HLAUNCH_ASSIGN_OR_RETURN(ShmMapping mapping, ShmMapping::Make());
  if (!SendWithDescriptor(fd.get(), handshake, mapping.fd())) return nullptr;
  return MakeShmOutConnection(std::move(fd), std::move(mapping));
}

// Begins to open a TCP stream; does not wait for the other end.
absl::StatusOr<UniqueFd> BeginTcp(const RankAddress& to) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(to.address.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("no address: '", to.address, "'"));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("TCP socket");
  SetNoDelay(fd.get());
  if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return SystemError(HostPort(to.address, to.port));
  }
  return fd;
}

absl::StatusOr<UniqueFd> ConnectTcp(const RankAddress& to, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd fd, BeginTcp(to));
  const std::string where = HostPort(to.address, to.port);
  pollfd writable{fd.get(), POLLOUT, 0};
  while (::poll(&writable, 1, MillisLeft(deadline)) <= 0) {
    if (Passed(deadline)) {
      return absl::DeadlineExceededError(absl::StrCat("no answer from ", where));
    }
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    errno = error;
    return SystemError(where);
  }
  return fd;
}

// Opens the further streams of the connection that `handshake` began.
OpenStream OpenStreamsOf(const RankAddress& to, const Handshake& handshake) {
  return [to, handshake](int stream) -> ExtraStream {
    auto fd = BeginTcp(to);
    if (!fd.ok()) return {};
    Handshake own = handshake;
    own.stream = stream;
    return {*std::move(fd), std::string(reinterpret_cast<const char*>(&own), sizeof own)};
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutConnection>> Connect(const RankAddress& address, Rank self,
                                                       const std::string& own_host,
                                                       bool shared_memory, int streams,
                                                       Instant deadline) {
  const Handshake handshake = MakeHandshake(address, self, own_host);
  if (shared_memory) {
    HLAUNCH_ASSIGN_OR_RETURN(std::unique_ptr<OutConnection> local,
                             ConnectLocally(address, handshake, deadline));
    if (local != nullptr) return local;
  }
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd socket, ConnectTcp(address, deadline));
  // The handshake fits into the empty send buffer.
  if (::send(socket.get(), &handshake, sizeof handshake, MSG_NOSIGNAL) != sizeof handshake) {
    return SystemError("TCP socket");
  }
  return MakeTcpOutConnection(std::move(socket), streams, OpenStreamsOf(address, handshake));
}

}  // namespace hlaunch
