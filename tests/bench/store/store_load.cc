// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Load for a c10d store on loopback, as clients of PyTorch 2.13 would make it, from one thread.
//
//   store_load PORT requests OP CONNECTIONS MILLISECONDS BYTES KEYS PID
//       Each connection has one request under way. Prints requests per second, p50 and p99 in us,
//       and the CPU time in us that the process PID took for each request.
//   store_load PORT release CONNECTIONS    From SET of a key to the last of its waiters, in us.
//   store_load PORT storm CONNECTIONS      From the first connect to the last answer, in us.
//   store_load PORT hold CONNECTIONS       Says "held" and keeps them until stdin ends.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/store/c10d/c10d_protocol.h"

namespace hlaunch {
namespace {

constexpr size_t kPingReply = 4;
constexpr size_t kNumberReply = 8;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "store_load: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

// The CPU time of all threads of a process.
double CpuMicroseconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) Die("clock");
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

Instant Now() { return MonotonicClock().Now(); }

double Microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// The request that a client repeats, and the length of the reply.
struct Exchange {
  std::string request;
  size_t reply = 0;
};

struct Client {
  UniqueFd fd;
  Exchange exchange;
  size_t sent = 0;
  size_t received = 0;
  bool wants_room = false;
  Instant began;
};

std::string Request(C10dOp op, std::vector<std::string> keys = {},
                    std::vector<std::string> values = {}, int64_t number = 0) {
  return SerializeC10dRequest({op, std::move(keys), std::move(values), number});
}

Exchange Ping() { return {Request(C10dOp::kPing, {}, {}, 1), kPingReply}; }

// Adds a PING to a request without a reply: its answer shows that the store has the request.
Exchange Acknowledged(std::string request) { return {request + Ping().request, kPingReply}; }

class Load {
 public:
  explicit Load(uint16_t port) : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  // Opens `count` connections at once; real answers show that each is served.
  void Connect(size_t count) {
    clients_.resize(count);
    for (size_t i = 0; i < count; ++i) ConnectOne(i);
    waited_for_ = count;
    while (waited_for_ > 0) Turn([](Client&) { return false; });
  }

  // Runs `exchange_of(index)` once on every client and waits for all replies.
  void Once(const std::function<Exchange(size_t)>& exchange_of) {
    for (size_t i = 0; i < clients_.size(); ++i) clients_[i].exchange = exchange_of(i);
    Repeat(Duration::zero());
  }

  // All clients repeat their exchanges for `time`. Returns the latencies.
  std::vector<Duration> Repeat(Duration time) {
    std::vector<Duration> latencies;
    const Instant end = Now() + time;
    waited_for_ = clients_.size();
    for (Client& client : clients_) Begin(client);
    while (waited_for_ > 0) {
      Turn([&](Client& client) {
        const Instant now = Now();
        latencies.push_back(now - client.began);
        return now < end;
      });
    }
    return latencies;
  }

  // Sends `request`, which has no reply until another client acts.
  void Send(size_t index, Exchange exchange) {
    clients_[index].exchange = std::move(exchange);
    Begin(clients_[index]);
  }

  void Await(size_t replies) {
    waited_for_ = replies;
    while (waited_for_ > 0) Turn([](Client&) { return false; });
  }

 private:
  void ConnectOne(size_t index) {
    Client& client = clients_[index];
    client.fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!client.fd.valid()) Die("socket");
    const int on = 1;
    ::setsockopt(client.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    if (::connect(client.fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 &&
        errno != EINPROGRESS) {
      Die("connect");
    }
    std::string hello(1, '\0');
    PutUint32(&hello, kC10dMagic);
    client.exchange = {hello + Ping().request, kPingReply};
    client.wants_room = true;  // The socket is connected when it becomes writable.
    Watch(EPOLL_CTL_ADD, index);
  }

  void Watch(int operation, size_t index) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (clients_[index].wants_room) event.events |= EPOLLOUT;
    event.data.u64 = index;
    if (::epoll_ctl(epoll_.get(), operation, clients_[index].fd.get(), &event) != 0) Die("epoll");
  }

  void Begin(Client& client) {
    client.sent = client.received = 0;
    client.began = Now();
    Put(client);
  }

  void Put(Client& client) {
    const std::string& request = client.exchange.request;
    while (client.sent < request.size()) {
      const ssize_t put = ::send(client.fd.get(), request.data() + client.sent,
                                 request.size() - client.sent, MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN) Die("send");
      if (put < 0) break;
      client.sent += static_cast<size_t>(put);
    }
    const bool wants_room = client.sent < request.size();
    if (wants_room == client.wants_room) return;
    client.wants_room = wants_room;
    Watch(EPOLL_CTL_MOD, static_cast<size_t>(&client - clients_.data()));
  }

  // Reads what has come. `completed` says whether a client that has its reply goes on.
  template <typename Completed>
  void Turn(Completed completed) {
    epoll_event events[256];
    const int ready = ::epoll_wait(epoll_.get(), events, 256, 20'000);
    if (ready <= 0) Die("no answer from the store");
    for (int i = 0; i < ready; ++i) {
      Client& client = clients_[events[i].data.u64];
      if ((events[i].events & EPOLLOUT) != 0) Put(client);
      if ((events[i].events & ~EPOLLOUT) == 0) continue;
      const ssize_t got = ::recv(client.fd.get(), buffer_.data(), buffer_.size(), 0);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) Die("recv");
      client.received += static_cast<size_t>(got);
      if (client.received < client.exchange.reply) continue;
      if (completed(client)) {
        Begin(client);
      } else {
        --waited_for_;
      }
    }
  }

  const uint16_t port_;
  UniqueFd epoll_;
  std::vector<Client> clients_;
  size_t waited_for_ = 0;
  std::string buffer_ = std::string(1 << 20, '\0');
};

Exchange ExchangeOf(const std::string& op, const std::vector<std::string>& keys,
                    const std::string& value) {
  const std::vector<std::string> one = {keys[0]};
  const std::vector<std::string> values(keys.size(), value);
  const size_t text = sizeof(uint64_t) + value.size();
  if (op == "set") return Acknowledged(Request(C10dOp::kSet, one, {value}));
  if (op == "get") return {Request(C10dOp::kGet, one), text};
  if (op == "add") return {Request(C10dOp::kAdd, {keys[0] + "n"}, {}, 1), kNumberReply};
  if (op == "check") return {Request(C10dOp::kCheck, keys), 1};
  if (op == "wait") return {Request(C10dOp::kWait, keys), 1};
  if (op == "compare_set") return {Request(C10dOp::kCompareSet, one, {value, value}), text};
  if (op == "multi_set") return Acknowledged(Request(C10dOp::kMultiSet, keys, values));
  if (op == "multi_get") return {Request(C10dOp::kMultiGet, keys), keys.size() * text};
  if (op == "queue") {
    return {Request(C10dOp::kQueuePush, {keys[0] + "q"}, {value}) +
                Request(C10dOp::kQueuePop, {keys[0] + "q"}),
            kNumberReply + text};
  }
  errno = EINVAL;
  Die(op);
}

void Requests(Load& load, const std::string& op, size_t connections, Duration time,
              const std::string& value, size_t keys_each, pid_t server) {
  const auto keys_of = [&](size_t client) {
    std::vector<std::string> keys;
    for (size_t k = 0; k < keys_each; ++k) keys.push_back(absl::StrCat("/bench/", client, "/", k));
    return keys;
  };
  load.Connect(connections);
  load.Once([&](size_t i) { return ExchangeOf("multi_set", keys_of(i), value); });
  load.Once([&](size_t i) { return ExchangeOf(op, keys_of(i), value); });
  const double cpu = CpuMicroseconds(server);
  const Instant began = Now();
  std::vector<Duration> latencies = load.Repeat(time);
  const double seconds = Microseconds(Now() - began) / 1e6;
  std::sort(latencies.begin(), latencies.end());
  std::printf("%.1f %.1f %.1f %.2f\n", static_cast<double>(latencies.size()) / seconds,
              Microseconds(latencies[latencies.size() / 2]),
              Microseconds(latencies[latencies.size() * 99 / 100]),
              (CpuMicroseconds(server) - cpu) / static_cast<double>(latencies.size()));
}

void Release(Load& load, size_t waiters) {
  load.Connect(waiters + 1);
  for (size_t i = 0; i < waiters; ++i) {
    load.Send(i, {Request(C10dOp::kWait, {"/bench/release"}), 1});
  }
  // There is no way to ask waiting clients whether the store has their requests.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const Instant began = Now();
  load.Send(waiters, Acknowledged(Request(C10dOp::kSet, {"/bench/release"}, {"v"})));
  load.Await(waiters + 1);
  std::printf("%.1f\n", Microseconds(Now() - began));
  load.Send(waiters, {Request(C10dOp::kDeleteKey, {"/bench/release"}), kNumberReply});
  load.Await(1);
}

int Main(const std::vector<std::string>& args) {
  const auto number = [&args](size_t at) {
    size_t value = 0;
    if (at >= args.size() || !absl::SimpleAtoi(args[at], &value)) {
      std::fprintf(stderr, "store_load: argument %zu must be a number; see the source\n", at);
      std::exit(2);
    }
    return value;
  };
  const std::string mode = args.size() > 1 ? args[1] : "";
  Load load(static_cast<uint16_t>(number(0)));
  if (mode == "requests") {
    Requests(load, args[2], number(3), std::chrono::milliseconds(number(4)),
             std::string(number(5), 'x'), number(6), static_cast<pid_t>(number(7)));
  } else if (mode == "release") {
    Release(load, number(2));
  } else if (mode == "storm") {
    const Instant began = Now();
    load.Connect(number(2));
    std::printf("%.1f\n", Microseconds(Now() - began));
  } else if (mode == "hold") {
    load.Connect(number(2));
    std::printf("held\n");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  } else {
    std::fprintf(stderr, "store_load PORT requests|release|storm|hold …; see the source\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) { return hlaunch::Main({argv + 1, argv + argc}); }
