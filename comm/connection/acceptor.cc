// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/acceptor.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "comm/connection/shm_connection.h"
#include "comm/connection/tcp_connection.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// More sockets than this without a handshake do not come from ranks.
constexpr size_t kMostPending = 4096;

absl::StatusOr<UniqueFd> ListenLocally(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("unix socket");
  const auto [address, length] = AbstractAddress(name);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(fd.get(), 4096) != 0) {
    return SystemError("unix socket");
  }
  return fd;
}

// The process at the other end of a unix socket, as the kernel knows it.
std::optional<pid_t> PeerPid(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return std::nullopt;
  }
  return credentials.pid;
}

}  // namespace

absl::StatusOr<Acceptor> Acceptor::Open(const std::string& address) {
  Acceptor acceptor;
  acceptor.address_.token = absl::StrCat(NewJobId(), NewJobId());
  acceptor.address_.local_name = absl::StrCat("hlaunch-comm-", NewJobId(), NewJobId());
  HLAUNCH_ASSIGN_OR_RETURN(acceptor.local_, ListenLocally(acceptor.address_.local_name));
  HLAUNCH_ASSIGN_OR_RETURN(acceptor.tcp_, Listen(address, 0));
  acceptor.address_.address = address;
  acceptor.address_.port = acceptor.tcp_.port;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  acceptor.address_.host = host;
  return acceptor;
}

std::vector<int> Acceptor::pending_fds() const {
  std::vector<int> fds;
  for (const Pending& pending : pending_) fds.push_back(pending.fd.get());
  return fds;
}

void Acceptor::AcceptFrom(int listener, bool local) {
  while (pending_.size() < kMostPending) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    pending_.push_back({std::move(fd), local, {}});
  }
}

// A unix socket carries the handshake in one packet, TCP perhaps in parts.
Acceptor::ReadResult Acceptor::ReadHandshake(Pending* pending) {
  char part[sizeof(Handshake)];
  const ssize_t got = ReceiveWithDescriptor(
      pending->fd.get(), part, sizeof part - pending->received.size(), &pending->passed);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return ReadResult::kIncomplete;
  if (got <= 0) return ReadResult::kInvalid;
  pending->received.append(part, static_cast<size_t>(got));
  if (pending->received.size() == sizeof(Handshake)) return ReadResult::kComplete;
  return pending->local ? ReadResult::kInvalid : ReadResult::kIncomplete;
}

// Nothing if the handshake is wrong.
std::optional<Accepted> Acceptor::Finish(Pending* pending, SingleCopy single_copy) const {
  Handshake handshake;
  std::memcpy(&handshake, pending->received.data(), sizeof handshake);
  if (absl::string_view(handshake.token, kTokenSize) != address_.token || handshake.rank < 0) {
    return std::nullopt;
  }
  Accepted accepted{
      .rank = handshake.rank,
      .host = std::string(handshake.host, ::strnlen(handshake.host, sizeof handshake.host)),
      .local = pending->local,
      .connection = nullptr};
  if (!pending->local) {
    SetNoDelay(pending->fd.get());
    accepted.stream = handshake.stream;
    if (handshake.stream != 0) {
      accepted.fd = std::move(pending->fd);
    } else {
      accepted.connection = MakeTcpInConnection(std::move(pending->fd));
    }
    return accepted;
  }
  const std::optional<pid_t> pid = PeerPid(pending->fd.get());
  if (!pending->passed.valid() || !pid.has_value()) return std::nullopt;
  auto mapping = ShmMapping::Map(std::move(pending->passed));
  if (!mapping.ok()) return std::nullopt;
  accepted.connection = MakeShmInConnection(std::move(pending->fd), *std::move(mapping), *pid,
                                            handshake.proof, single_copy);
  return accepted;
}

std::vector<Accepted> Acceptor::Accept(SingleCopy single_copy) {
  AcceptFrom(local_.get(), true);
  AcceptFrom(tcp_.fd.get(), false);
  std::vector<Accepted> accepted;
  std::erase_if(pending_, [&](Pending& pending) {
    const ReadResult result = ReadHandshake(&pending);
    if (result == ReadResult::kComplete) {
      if (auto finished = Finish(&pending, single_copy)) accepted.push_back(*std::move(finished));
    }
    return result != ReadResult::kIncomplete;
  });
  return accepted;
}

}  // namespace hlaunch
