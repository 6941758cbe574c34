// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/acceptor.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/connection/peer_socket.h"
#include "comm/connection/shm_connection.h"
#include "comm/connection/tcp_connection.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr uint64_t kLocalListener = 0, kTcpListener = 1;

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

size_t DescriptorLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<size_t>(limit.rlim_cur) : 1024;
}

}  // namespace

GreetingKey KeyFor(const GroupPlace& self, const RankAddress& acceptor) {
  return DeriveGreetingKey(self.secret.empty() ? acceptor.token : self.secret, self.group);
}

Hello HelloFrom(const GroupPlace& self, Rank to) {
  return MakeHello(self.rank, to, self.size, self.round, !self.secret.empty(), self.host);
}

size_t MostGreetings(size_t descriptors) { return std::clamp<size_t>(descriptors / 4, 16, 4096); }

absl::StatusOr<Acceptor> Acceptor::Open(const std::string& address, GroupPlace place) {
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
  acceptor.place_ = std::move(place);
  acceptor.place_.host = host;
  acceptor.most_pending_ = MostGreetings(DescriptorLimit());
  acceptor.epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!acceptor.epoll_.valid()) return SystemError("epoll");
  acceptor.Watch(acceptor.local_.get(), kLocalListener);
  acceptor.Watch(acceptor.tcp_.fd.get(), kTcpListener);
  return acceptor;
}

void Acceptor::Watch(int fd, uint64_t id) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

// If there is no room, closes the oldest socket without a Hello, or else the oldest socket.
void Acceptor::MakeRoom() {
  if (pending_.size() < most_pending_) return;
  const auto silent = std::find_if(pending_.begin(), pending_.end(), [](const auto& each) {
    return !each.second.greeting.has_hello();
  });
  pending_.erase(silent == pending_.end() ? pending_.begin() : silent);
}

void Acceptor::Expire(Instant now) {
  std::erase_if(pending_, [now](const auto& each) {
    const Pending& pending = each.second;
    return now - pending.since > (pending.greeting.has_hello() ? kGreetingLimit : kSilenceLimit);
  });
}

void Acceptor::AcceptFrom(const UniqueFd& listener, bool local, Instant now) {
  // Accepts no more at once than there is room for, so that no socket is closed before it was read.
  for (size_t i = 0; i < most_pending_ / 2; ++i) {
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (const std::optional<uid_t> user = local ? OtherUser(fd.get()) : std::nullopt) {
      Say(absl::StrCat("comm: rank ", place_.rank, " refused a connection of the user ", *user,
                       ", who is not this rank's"));
      continue;
    }
    MakeRoom();
    const int number = fd.get();
    Hello own = HelloFrom(place_, 0);
    pending_.emplace(next_id_, Pending{std::move(fd), local, CallerName(number), now,
                                       AcceptingGreeting(KeyFor(place_, address_), own)});
    Watch(number, next_id_++);
  }
}

void Acceptor::Warn(const Pending& pending) {
  Say(absl::StrCat("comm: rank ", place_.rank, " closed a connection from ", pending.from, ": ",
                   Describe(pending.greeting.reason())));
}

void Acceptor::Say(const std::string& warning) {
  const std::string line = warnings_.Admit(warning, MonotonicClock().Now());
  if (!line.empty()) LogWarning(line);
}

std::optional<Accepted> Acceptor::Finish(Pending* pending, SingleCopy single_copy) const {
  const Hello& hello = pending->greeting.hello();
  Accepted accepted{.rank = hello.from,
                    .host = HostOf(hello),
                    .from = pending->from,
                    .local = pending->local,
                    .connection = nullptr};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pending->fd.get(), nullptr);
  if (!pending->local) {
    SetNoDelay(pending->fd.get());
    accepted.stream = hello.stream;
    if (hello.stream != 0) {
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
                                            pending->greeting.pull_proof(), single_copy);
  return accepted;
}

bool Acceptor::Continue(Pending* pending, SingleCopy single_copy, std::vector<Accepted>* accepted) {
  char part[sizeof(Hello)];
  static_assert(sizeof part >= AcceptingGreeting::kProofSize);
  while (true) {
    const size_t wanted = pending->greeting.wanted();
    const ssize_t got = ReceiveWithDescriptor(pending->fd.get(), part, wanted, &pending->passed);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) return true;  // The rank that dialed has gone.
    std::string reply;
    const absl::string_view bytes(part, static_cast<size_t>(got));
    const GreetingState state = pending->greeting.Receive(bytes, &reply);
    // The reply fits into the empty send buffer. An empty packet would look like the end of a unix
    // socket.
    const bool sent =
        reply.empty() || ::send(pending->fd.get(), reply.data(), reply.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(reply.size());
    if (state == GreetingState::kRefused) Warn(*pending);
    if (state == GreetingState::kProven) {
      if (auto finished = Finish(pending, single_copy)) accepted->push_back(*std::move(finished));
    }
    if (state != GreetingState::kOpen || !sent) return true;
    if (static_cast<size_t>(got) < wanted) return pending->local;  // A packet always comes whole.
  }
}

std::vector<Accepted> Acceptor::Accept(SingleCopy single_copy) {
  std::vector<Accepted> accepted;
  if (!epoll_.valid()) return accepted;
  const Instant now = MonotonicClock().Now();
  AcceptFrom(local_, true, now);
  AcceptFrom(tcp_.fd, false, now);
  epoll_event events[64];
  for (int count = 64; count == 64;) {
    count = ::epoll_wait(epoll_.get(), events, 64, 0);
    bool read = false;
    for (int i = 0; i < count; ++i) {
      // The struct is packed: no reference may bind to the field.
      const uint64_t id = events[i].data.u64;
      const auto it = pending_.find(id);
      if (it == pending_.end()) continue;  // A listener.
      read = true;
      if (Continue(&it->second, single_copy, &accepted)) pending_.erase(it);
    }
    if (!read) break;
  }
  Expire(now);
  return accepted;
}

void Acceptor::TellLeft() {
  const NoticePacket packet = Pack({Notice::kLeft});
  for (const auto& [id, pending] : pending_) {
    if (!pending.greeting.has_hello()) continue;
    ::send(pending.fd.get(), &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

void Acceptor::Close() {
  pending_.clear();
  epoll_.Close();
  local_.Close();
  tcp_.fd.Close();
}

}  // namespace hlaunch
