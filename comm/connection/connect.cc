// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/connect.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/connection/greeting.h"
#include "comm/connection/peer_socket.h"
#include "comm/connection/shm_connection.h"
#include "comm/connection/tcp_connection.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// Returns the remaining time for poll: at least one millisecond, so that one attempt is made even
// if the deadline has passed.
int MillisLeft(Instant deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 1, 1 << 30));
}
bool Passed(Instant deadline) { return MonotonicClock().Now() >= deadline; }

// The result is not valid if `to` is on another host, or if the rank does not listen any more.
absl::StatusOr<UniqueFd> ConnectLocally(const RankAddress& to, Instant deadline) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("unix socket");
  const auto [address, length] = AbstractAddress(to.local_name);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return UniqueFd();
    if (Passed(deadline)) {
      return absl::DeadlineExceededError("the rank's queue of new connections is full");
    }
    ::poll(nullptr, 0, 1);  // No descriptor signals that the queue has room.
  }
  return fd;
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

// The greeting on one socket, as the end that dialed.
class SocketGreeting {
 public:
  using State = Dialing::State;

  SocketGreeting(const GreetingKey& key, const Hello& own)
      : greeting_(key, own), unsent_(greeting_.First()) {}

  // Sends and reads as much as possible. After kConnected, unsent() is the proof, which the caller
  // must send.
  State Continue(int socket) {
    while (state_ == State::kGreeting) {
      if (!Send(socket)) return state_;
      char part[DialingGreeting::kAnswerSize];
      const ssize_t got = ::recv(socket, part, greeting_.wanted(), MSG_DONTWAIT);
      if (got < 0 && errno == ECONNRESET && !std::exchange(was_reset_, true)) continue;
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return state_;
      if (got <= 0) return state_ = State::kEnded;
      switch (greeting_.Receive({part, static_cast<size_t>(got)}, &unsent_)) {
        case GreetingState::kOpen:
          break;
        case GreetingState::kProven:
          return state_ = State::kConnected;
        case GreetingState::kRefused:
          if (greeting_.refused_by_me()) Send(socket);
          return state_ = State::kRefused;
      }
    }
    return state_;
  }

  // Sends as much as possible. Returns true once nothing is left, or if the socket is broken, which
  // the next read finds out.
  bool Send(int socket) {
    if (unsent_.empty()) return true;
    const ssize_t sent =
        ::send(socket, unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) unsent_.erase(0, static_cast<size_t>(sent));
    return unsent_.empty() || (sent < 0 && errno != EAGAIN && errno != EINTR);
  }

  std::string& unsent() { return unsent_; }
  const DialingGreeting& greeting() const { return greeting_; }

 private:
  DialingGreeting greeting_;
  std::string unsent_;
  State state_ = State::kGreeting;
  bool was_reset_ = false;  // Bytes that were sent before the reset can still be read.
};

// Returns a function that opens the further streams of a connection to `to`.
OpenStream OpenStreamsOf(const RankAddress& address, Rank to, const GroupPlace& self) {
  return [=](int stream) -> ExtraStream {
    auto fd = BeginTcp(address);
    if (!fd.ok()) return {};
    Hello own = HelloFrom(self, to);
    own.stream = stream;
    auto greeting = std::make_shared<SocketGreeting>(KeyFor(self, address), own);
    return {*std::move(fd), [greeting](int socket) {
              return greeting->Continue(socket) == Dialing::State::kConnected &&
                     greeting->Send(socket);
            }};
  };
}

class SocketDialing : public Dialing {
 public:
  SocketDialing(UniqueFd fd, const RankAddress& address, Rank to, const GroupPlace& self,
                int streams, std::optional<ShmMapping> memory)
      : fd_(std::move(fd)),
        local_(memory.has_value()),
        memory_(std::move(memory)),
        address_(address),
        to_(to),
        self_(self),
        streams_(streams),
        greeting_(KeyFor(self, address), HelloFrom(self, to)) {}

  int fd() const override { return fd_.get(); }

  State Continue() override {
    const State state = greeting_.Continue(fd_.get());
    return state == State::kConnected && !Finish() ? State::kGreeting : state;
  }

  std::unique_ptr<OutConnection> Take() override { return std::move(connection_); }

  std::string why() const override {
    const Refusal reason = greeting_.greeting().reason();
    const std::string them = local_ ? absl::StrCat("its socket on this host")
                                    : HostPort(address_.address, address_.port);
    if (greeting_.greeting().refused_by_me()) {
      return absl::StrCat("what listens at ", them, " does not prove that it is rank ", to_, ": ",
                          Describe(reason), SecretHint(reason));
    }
    return absl::StrCat("it refuses this rank at ", them,
                        " because of this one: ", Describe(reason), SecretHint(reason));
  }

 private:
  std::string SecretHint(Refusal reason) const {
    if (reason != Refusal::kOtherSecret) return "";
    return self_.secret.empty() ? "; this rank has none from its launcher" : "";
  }

  // Sends the proof; with shared memory, sends the region's descriptor together with it. If the
  // other rank has gone meanwhile, the connection tells why. Returns whether the connection is
  // made.
  bool Finish() {
    if (connection_ != nullptr) return true;
    if (!local_) {
      if (!greeting_.Send(fd_.get())) return false;
      connection_ =
          MakeTcpOutConnection(std::move(fd_), streams_, OpenStreamsOf(address_, to_, self_));
      return true;
    }
    SendWithDescriptor(fd_.get(), greeting_.unsent(), memory_->fd());
    connection_ = MakeShmOutConnection(std::move(fd_), *std::move(memory_));
    return true;
  }

  UniqueFd fd_;
  const bool local_;
  std::optional<ShmMapping> memory_;  // Set if `local_`.
  const RankAddress address_;
  const Rank to_;
  const GroupPlace self_;
  const int streams_;
  SocketGreeting greeting_;
  std::unique_ptr<OutConnection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dialing>> Dialing::Begin(const RankAddress& address, Rank to,
                                                        const GroupPlace& self, bool shared_memory,
                                                        int streams, Instant deadline) {
  UniqueFd fd;
  if (shared_memory) {
    HLAUNCH_ASSIGN_OR_RETURN(fd, ConnectLocally(address, deadline));
  }
  std::optional<ShmMapping> memory;
  if (fd.valid()) {
    HLAUNCH_ASSIGN_OR_RETURN(ShmMapping made, ShmMapping::Make());
    memory.emplace(std::move(made));
  } else {
    HLAUNCH_ASSIGN_OR_RETURN(fd, ConnectTcp(address, deadline));
  }
  auto dialing =
      std::make_unique<SocketDialing>(std::move(fd), address, to, self, streams, std::move(memory));
  return dialing;
}

}  // namespace hlaunch
