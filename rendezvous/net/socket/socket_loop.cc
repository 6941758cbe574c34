// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/socket_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/accept.h"

namespace hlaunch {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr int kEventsPerTurn = 256;
constexpr int kAcceptsPerTurn = 64;

// Ids of sockets are larger.
constexpr uint64_t kListener = 0;
constexpr uint64_t kCalled = 1;

// The kernel tells of a change once, so bytes are handled in the order in which they come.
constexpr uint32_t kNothing = EPOLLET;
constexpr uint32_t kReads = EPOLLET | EPOLLIN | EPOLLRDHUP;

absl::Status SystemError(int error) { return absl::ResourceExhaustedError(std::strerror(error)); }

}  // namespace

// --- LoopSocket ---

// The descriptor leaves the kernel's set when it is closed.
LoopSocket::~LoopSocket() {
  if (loop_ != nullptr) loop_->sockets_.erase(id_);
}

absl::Status LoopSocket::Join(SocketLoop& loop, bool reads) {
  return Watch(loop, reads ? kReads : kNothing);
}

absl::Status LoopSocket::JoinConnecting(SocketLoop& loop) { return Watch(loop, kReads | EPOLLOUT); }

absl::Status LoopSocket::Watch(SocketLoop& loop, uint32_t interest) {
  const uint64_t id = ++loop.last_id_;
  if (!loop.Ask(EPOLL_CTL_ADD, fd_.get(), id, interest)) return SystemError(errno);
  loop_ = &loop;
  id_ = id;
  interest_ = interest;
  loop.sockets_.emplace(id, this);
  return absl::OkStatus();
}

UniqueFd LoopSocket::Leave() {
  loop_->Ask(EPOLL_CTL_DEL, fd_.get(), id_, 0);
  loop_->sockets_.erase(id_);
  loop_ = nullptr;
  return std::move(fd_);
}

void LoopSocket::AwaitBytes(bool reads) {
  const uint32_t interest =
      (reads ? kReads : kNothing) | (out_.size() > 0 ? uint32_t{EPOLLOUT} : 0);
  if (interest == interest_) return;
  interest_ = interest;
  loop_->Ask(EPOLL_CTL_MOD, fd_.get(), id_, interest);
}

void LoopSocket::ReadRest() { loop_->Read(*this, /*hung_up=*/true, /*awaited=*/false); }

std::string LoopSocket::PeerName() const { return hlaunch::PeerName(fd_.get()); }

// --- SocketLoop ---

SocketLoop::SocketLoop(Owner& owner, std::optional<ListeningSocket> listener, Options options)
    : owner_(owner),
      options_(std::move(options)),
      port_(listener.has_value() ? listener->port : 0),
      last_id_(kCalled),
      buffer_(kReadBytes, '\0') {
  if (listener.has_value()) listener_ = std::move(listener->fd);
}

SocketLoop::~SocketLoop() { Stop(); }

absl::Status SocketLoop::Open() {
  events_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  called_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events_.valid() || !called_.valid() ||
      !Ask(EPOLL_CTL_ADD, called_.get(), kCalled, EPOLLIN)) {
    return SystemError(errno);
  }
  if (!listener_.valid()) return absl::OkStatus();
  const int on = 1;  // Accepted sockets inherit it.
  ::setsockopt(listener_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (!Ask(EPOLL_CTL_ADD, listener_.get(), kListener, EPOLLIN)) return SystemError(errno);
  return absl::OkStatus();
}

absl::Status SocketLoop::Start() {
  HLAUNCH_RETURN_IF_ERROR(Open());
  HLAUNCH_ASSIGN_OR_RETURN(thread_, Thread::Start(options_.thread_name, [this] {
                             while (!stopped_) Turn();
                           }));
  return absl::OkStatus();
}

void SocketLoop::Stop() {
  if (!thread_.joinable()) return;
  Post([this] { stopped_ = true; });
  thread_.Join();
}

void SocketLoop::Post(std::function<void()> call) {
  {
    MutexLock lock(&mu_);
    calls_.push_back(std::move(call));
  }
  const uint64_t one = 1;
  if (::write(called_.get(), &one, sizeof(one)) < 0) return;  // Full: the loop is told already.
}

void SocketLoop::Turn() {
  epoll_event events[kEventsPerTurn];
  const int ready = ::epoll_wait(events_.get(), events, kEventsPerTurn, Patience());
  for (int i = 0; i < ready; ++i) {
    const uint64_t id = events[i].data.u64;
    if (id == kListener) {
      Accept();
    } else if (id == kCalled) {
      RunCalls();
    } else {
      Dispatch(id, events[i].events);
    }
  }
  EndPause();
  next_ = owner_.OnTurnEnd();
}

// Returns how long there is nothing to do, in milliseconds; -1 for ever.
int SocketLoop::Patience() const {
  const Instant next = accept_again_.has_value() ? std::min(next_, *accept_again_) : next_;
  if (next == Instant()) return 0;
  if (next == Instant::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - MonotonicClock().Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

// Each of these calls may destroy the socket.
void SocketLoop::Dispatch(uint64_t id, uint32_t events) {
  LoopSocket* socket = Find(id);
  if (socket != nullptr && (events & EPOLLOUT) != 0) {
    if (socket->Send()) {
      socket->OnRoom();
    } else {
      socket->OnEnd(errno);
    }
    socket = Find(id);
  }
  if (socket == nullptr || (events & ~uint32_t{EPOLLOUT}) == 0) return;
  if ((socket->interest_ & EPOLLIN) != 0) {
    Read(*socket, (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0, /*awaited=*/true);
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    socket->OnReset();
  }
}

// A read of fewer bytes than there was room for is the last, since the kernel tells of new ones. If
// the other end has `hung_up`, the end comes after the bytes, and reading goes on. If `awaited` is
// set, this stops early once bytes are not awaited any more.
void SocketLoop::Read(LoopSocket& socket, bool hung_up, bool awaited) {
  const uint64_t id = socket.id_;
  for (int i = 0; i < options_.reads_per_turn; ++i) {
    const ssize_t got = ::recv(socket.fd_.get(), buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return socket.OnEnd(got < 0 ? errno : 0);
    socket.OnBytes(absl::string_view(buffer_.data(), static_cast<size_t>(got)));
    if (Find(id) == nullptr) return;
    if (awaited && (socket.interest_ & EPOLLIN) == 0) return;
    if (!hung_up && static_cast<size_t>(got) < buffer_.size()) return;
  }
  Ask(EPOLL_CTL_MOD, socket.fd_.get(), id, socket.interest_);  // The kernel tells again.
}

bool SocketLoop::Ask(int operation, int fd, uint64_t id, uint32_t interest) {
  epoll_event event{};
  event.events = interest;
  event.data.u64 = id;
  return ::epoll_ctl(events_.get(), operation, fd, &event) == 0;
}

LoopSocket* SocketLoop::Find(uint64_t id) const {
  const auto it = sockets_.find(id);
  return it == sockets_.end() ? nullptr : it->second;
}

void SocketLoop::RunCalls() {
  uint64_t count = 0;
  if (::read(called_.get(), &count, sizeof(count)) < 0) return;
  std::vector<std::function<void()>> calls;
  {
    MutexLock lock(&mu_);
    calls.swap(calls_);
  }
  for (const auto& call : calls) call();
}

void SocketLoop::Accept() {
  const int end = AcceptConnections(listener_.get(), kAcceptsPerTurn,
                                    [this](UniqueFd fd) { owner_.OnAccepted(std::move(fd)); });
  if (OutOfDescriptors(end)) PauseAccepting(end);
}

void SocketLoop::PauseAccepting(int error) {
  Warn(absl::StrCat(options_.name, ": cannot accept connections on port ", port_, ": ",
                    std::strerror(error), "; trying again until it works"));
  Ask(EPOLL_CTL_MOD, listener_.get(), kListener, 0);
  accept_again_ = MonotonicClock().Now() + kAcceptPause;
}

void SocketLoop::EndPause() {
  if (!accept_again_.has_value() || MonotonicClock().Now() < *accept_again_) return;
  accept_again_.reset();
  Ask(EPOLL_CTL_MOD, listener_.get(), kListener, EPOLLIN);
}

void SocketLoop::DropUnaccepted() {
  if (listener_.valid()) AcceptConnections(listener_.get(), kMostUnaccepted, [](UniqueFd) {});
}

void SocketLoop::Warn(const std::string& line) {
  const std::string admitted = warnings_.Admit(line, MonotonicClock().Now());
  if (!admitted.empty()) LogWarning(admitted);
}

}  // namespace hlaunch
