// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/heartbeat_server.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/watch/stall/late_loop.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// The most datagrams read from one socket at once. A queue holds about ten by default
// (net.unix.max_dgram_qlen).
constexpr int kMaxAtOnce = 16;
// The pause before the socket is read again.
constexpr Duration kRest = std::chrono::milliseconds(10);
constexpr int kMaxParents = 64;

struct Datagram {
  std::array<char, kMaxHeartbeatBytes + 1> bytes;
  size_t length = 0;
  pid_t sender = 0;  // 0 if it is not in this pid namespace.
};

// Returns the next datagram; unset if there is none.
std::optional<Datagram> Receive(int fd) {
  Datagram datagram;
  iovec part = {datagram.bytes.data(), datagram.bytes.size()};
  // Room only for the sender's credentials: descriptors that come along are closed.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return std::nullopt;
  datagram.length = static_cast<size_t>(n);
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender = {};
    std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
    datagram.sender = sender.pid;
  }
  return datagram;
}

// True if process `pid` is `worker`, belongs to its session, or descends from it. `worker` is a
// child of ours that was not reaped, so no other process has its pid.
bool CameFrom(pid_t worker, pid_t pid) {
  for (int steps = 0; pid > 1 && steps < kMaxParents; ++steps) {
    if (pid == worker) return true;
    const std::optional<ProcessEntry> process = ReadProcess(pid);
    if (!process) return false;
    if (process->session == worker) return true;
    pid = process->parent;
  }
  return false;
}

// Makes a socket with an unused abstract address, which the kernel chooses.
absl::StatusOr<std::pair<UniqueFd, std::string>> MakeSocket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof address.sun_family;
  const int on = 1;
  const auto as_any = [&address] { return reinterpret_cast<sockaddr*>(&address); };
  bool made = fd.valid() && ::setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
              ::bind(fd.get(), as_any(), length) == 0;
  length = sizeof address;
  made = made && ::getsockname(fd.get(), as_any(), &length) == 0;
  if (!made) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot make a socket for heartbeats: ", std::strerror(errno)));
  }
  const size_t name = length - offsetof(sockaddr_un, sun_path) - 1;
  return std::make_pair(std::move(fd),
                        absl::StrCat("@", absl::string_view(address.sun_path + 1, name)));
}

}  // namespace

struct HeartbeatServer::State {
  struct WorkerSocket {  // Where one worker sends its heartbeats.
    explicit WorkerSocket(asio::io_context& loop) : listener(loop), rest(loop) {}
    ~WorkerSocket() { StopListening(); }

    // Stops the loop from watching the socket until it is assigned again.
    void StopListening() {
      if (listener.is_open()) listener.release();
    }

    UniqueFd socket;
    asio::posix::stream_descriptor listener;  // Holds `socket` while the loop watches it.
    asio::steady_timer rest;
    std::string address;
    pid_t pid = 0;     // 0 if the worker does not live.
    pid_t sender = 0;  // The sender of its last heartbeat.
  };

  State(asio::io_context& the_loop, int workers, Duration limit, Events the_events)
      : loop(the_loop), events(std::move(the_events)), beats(workers, limit), timer(the_loop) {}

  asio::io_context& loop;
  const Events events;
  Heartbeats beats;
  asio::steady_timer timer;
  std::optional<Instant> due;  // When the timer ends; unset if it does not run.
  std::deque<WorkerSocket> sockets;
  bool said_stranger = false;
  bool said_nonsense = false;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.

  std::weak_ptr<bool> Alive() const { return life; }

  void Await(int worker) {
    WorkerSocket& one = sockets[static_cast<size_t>(worker)];
    one.listener.assign(one.socket.get());
    one.listener.async_wait(asio::posix::descriptor_base::wait_read,
                            [this, worker, &one, alive = Alive()](const asio::error_code& error) {
                              if (error || alive.expired()) return;
                              one.StopListening();
                              Read(worker);
                              Arm();
                              ListenAfterRest(worker);
                            });
  }

  // Waits before it listens again, so a flood costs little. Meanwhile the queue may fill and refuse
  // further datagrams. That is harmless: a full queue holds enough news.
  void ListenAfterRest(int worker) {
    WorkerSocket& one = sockets[static_cast<size_t>(worker)];
    one.rest.expires_after(kRest);
    one.rest.async_wait([this, worker, alive = Alive()](const asio::error_code& error) {
      if (!error && !alive.expired()) Await(worker);
    });
  }

  void Read(int worker) {
    WorkerSocket& one = sockets[static_cast<size_t>(worker)];
    bool recovered = false;
    for (int count = 0; count < kMaxAtOnce; ++count) {
      const std::optional<Datagram> datagram = Receive(one.socket.get());
      if (!datagram) break;
      if (one.pid == 0) continue;
      recovered |= Take(worker, one.pid, *datagram);
    }
    if (recovered) events.on_recovery(worker);
  }

  // Returns true if the worker had stalled and now continues.
  bool Take(int worker, pid_t pid, const Datagram& datagram) {
    if (!CameFrom(pid, datagram.sender)) {
      SayOnce(&said_stranger, "did not come from that worker");
      return false;
    }
    const absl::string_view text(datagram.bytes.data(), datagram.length);
    if (text == kBoundaryWord) {
      if (events.on_boundary) events.on_boundary(worker);
      return false;
    }
    const auto heartbeat = ParseHeartbeat(text);
    if (!heartbeat) {
      SayOnce(&said_nonsense, "is none that this hlaunch knows; is the worker's hlaunch another?");
      return false;
    }
    sockets[static_cast<size_t>(worker)].sender = datagram.sender;
    if (heartbeat->step) events.on_step(*heartbeat->step);
    return beats.Take(worker, *heartbeat, MonotonicClock().Now());
  }

  static void SayOnce(bool* said, const char* why) {
    if (!std::exchange(*said, true)) LogWarning(absl::StrCat("a heartbeat was dropped: it ", why));
  }

  // Sets the timer to end no later than the next worker stalls. Later heartbeats do not change it:
  // it checks again when it ends.
  void Arm() {
    const std::optional<Instant> next = beats.Next();
    if (!next || (due && *due <= *next)) return;
    due = next;
    timer.expires_at(*next);
    timer.async_wait([this, alive = Alive()](const asio::error_code& error) {
      if (error || alive.expired()) return;
      Judge();
    });
  }

  void Judge() {
    const Duration late = MonotonicClock().Now() - *std::exchange(due, std::nullopt);
    for (size_t worker = 0; worker < sockets.size(); ++worker) Read(static_cast<int>(worker));
    const Instant now = MonotonicClock().Now();
    if (late > kLateLoop) beats.Forgive(late, now);
    const std::vector<Stall> stalls = beats.TakeStalled(now);
    Arm();
    if (!stalls.empty()) events.on_stall(stalls);
  }
};

absl::StatusOr<std::unique_ptr<HeartbeatServer>> HeartbeatServer::Open(asio::io_context& loop,
                                                                       int workers, Duration limit,
                                                                       Events events) {
  std::unique_ptr<HeartbeatServer> server(
      new HeartbeatServer(std::make_unique<State>(loop, workers, limit, std::move(events))));
  for (int worker = 0; worker < workers; ++worker) {
    HLAUNCH_ASSIGN_OR_RETURN(auto made, MakeSocket());
    State::WorkerSocket& one = server->state_->sockets.emplace_back(loop);
    one.socket = std::move(made.first);
    one.address = std::move(made.second);
    server->state_->Await(worker);
  }
  return server;
}

HeartbeatServer::HeartbeatServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HeartbeatServer::~HeartbeatServer() = default;

const std::string& HeartbeatServer::address(int worker) const {
  return state_->sockets[static_cast<size_t>(worker)].address;
}

void HeartbeatServer::Listen(int worker, pid_t pid) {
  state_->sockets[static_cast<size_t>(worker)].pid = pid;
}

void HeartbeatServer::Forget(int worker) {
  state_->sockets[static_cast<size_t>(worker)].pid = 0;
  state_->beats.Forget(worker);
}

pid_t HeartbeatServer::sender(int worker) const {
  return state_->sockets[static_cast<size_t>(worker)].sender;
}

const Heartbeats& HeartbeatServer::heartbeats() const { return state_->beats; }

}  // namespace hlaunch
