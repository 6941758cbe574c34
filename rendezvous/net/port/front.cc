// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/front.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <future>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "proto/base/thread.h"
#include "rendezvous/net/port/connection_guard.h"
#include "rendezvous/net/port/first_words.h"
#include "rendezvous/net/port/handshake_queue.h"
#include "rendezvous/net/port/judge_connection.h"
#include "rendezvous/net/port/traffic_watch.h"
#include "rendezvous/net/socket/accept.h"
#include "rendezvous/net/trust/token_greeting.h"

namespace hlaunch {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kLookInterval = std::chrono::milliseconds(250);
constexpr Duration kTurnInterval = std::chrono::milliseconds(10);  // While handshakes wait.
// The receive buffer of one connection, in bytes: gRPC reads what the kernel has received even
// after a connection is closed.
constexpr int kGrpcRoom = 64 << 10;
constexpr int kBusyPart = 8;  // A process that uses this part of a processor (1/8) is busy.

// Returns the processor time that all threads of this process have used.
Duration ProcessorTime() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// Thousands of nodes may connect in the same second and speak a little later.
size_t HalfOfTheDescriptors() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur / 2;
}

// Looks at what has come without taking it; returns nothing if the peer is gone.
std::optional<FirstWords> Peek(int fd) {
  std::array<char, kMaxFirstWords> bytes;
  const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return FirstWords();
  if (n <= 0) return std::nullopt;
  return ReadFirstWords({bytes.data(), static_cast<size_t>(n)});
}

// Takes and returns the next `size` bytes; fewer if they have not come.
std::string Take(int fd, size_t size) {
  std::string bytes(size, '\0');
  const ssize_t n = ::recv(fd, bytes.data(), size, MSG_DONTWAIT);
  bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return bytes;
}

bool SendAtOnce(int fd, const std::string& bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

PortRule RuleOf(const Trust& trust, bool takes_c10d) {
  if (trust.none()) return {"", false, takes_c10d};
  if (!trust.files().none()) return {kAnyServerName, false, takes_c10d};
  return {trust.server_name(), trust.in_clear(), takes_c10d};
}

// Makes the kernel report the socket as readable only once `count` bytes are there.
void AwaitBytes(int fd, size_t count) {
  const int low = static_cast<int>(count);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
}

// Sends as much of `answer` as the socket takes. Reads what has come first, because otherwise the
// kernel would end the connection with a reset, and the answer might be lost.
void Answer(int fd, const std::string& answer) {
  std::array<char, kMaxFirstWords> bytes;
  while (::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) == bytes.size()) {
  }
  SendAtOnce(fd, answer);
}

}  // namespace

// All members belong to the thread once it runs.
struct Front::State {
  // A connection whose first words have not come, or which owes the proof of its greeting.
  struct Undecided {
    explicit Undecided(asio::io_context& loop) : socket(loop) {}
    asio::posix::stream_descriptor socket;
    Instant deadline;
    uint64_t epoch = 0;                              // The epoch in which it came.
    size_t needed = 0;                               // This many bytes are awaited.
    std::unique_ptr<const ServerGreeting> greeting;  // Null if its first words have not come.
  };
  using Place = std::list<Undecided>::iterator;

  State(UniqueFd fd, Options given)
      : options(std::move(given)),
        rule(RuleOf(options.trust, options.c10d != nullptr)),
        listener(loop, fd.Release()),
        pause(loop),
        patience(loop),
        handshakes(options.max_undecided == 0 ? HalfOfTheDescriptors() : options.max_undecided),
        turn(loop),
        look(loop) {
    if (options.max_undecided == 0) options.max_undecided = HalfOfTheDescriptors();
    listener.native_non_blocking(true);
    AwaitConnections();
    AwaitTraffic();
  }

  void AwaitConnections() {
    listener.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code error) {
      if (!error) Accept();
    });
  }

  void Accept() {
    const int end = AcceptConnections(listener.native_handle(), kAcceptsPerTurn,
                                      [this](UniqueFd fd) { Admit(fd.Release()); });
    if (OutOfDescriptors(end)) return PauseAccepting(end);
    AwaitConnections();
  }

  // Connections stay in the kernel's queue and are served once descriptors are free again.
  void PauseAccepting(int error) {
    Warn(absl::StrCat("cannot accept connections: ", std::strerror(error),
                      "; trying again (raise the limit with ulimit -n)"));
    pause.expires_after(kAcceptPause);
    pause.async_wait([this](asio::error_code stopped) {
      if (!stopped) Accept();
    });
  }

  void Admit(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // Under load the first words arrive before the connection is looked at.
    const auto words = Peek(fd);
    const Instant deadline = MonotonicClock().Now() + options.patience;
    if (!words || IsDecided(*words)) return HandOn(UniqueFd(fd), words, deadline);
    Hold(UniqueFd(fd), deadline, words->needed, nullptr);
  }

  // Holds the connection until `needed` bytes have come.
  void Hold(UniqueFd held, Instant deadline, size_t needed,
            std::unique_ptr<const ServerGreeting> greeting) {
    const int fd = held.Release();
    // A connection that greets may have waited for a while, so its deadline may be an earlier one.
    Place after = undecided.end();
    while (after != undecided.begin() && std::prev(after)->deadline > deadline) --after;
    const Place place = undecided.emplace(after, loop);
    asio::error_code refused;
    if (place->socket.assign(fd, refused); refused) {
      Warn(absl::StrCat("closed a connection: ", refused.message()));
      ::close(fd);
      undecided.erase(place);
      return;
    }
    place->deadline = deadline;
    place->epoch = epoch;
    place->greeting = std::move(greeting);
    AwaitWords(place, needed);
    if (undecided.size() > options.max_undecided) Decide(undecided.begin());
    if (undecided.size() == 1) AwaitSilent();
  }

  void AwaitWords(Place place, size_t needed) {
    place->needed = needed;
    AwaitBytes(place->socket.native_handle(), needed);
    place->socket.async_wait(asio::posix::descriptor_base::wait_read,
                             [this, place](asio::error_code error) {
                               if (!error) Hear(place);
                             });
  }

  static bool IsDecided(const FirstWords& words) {
    return words.kind != FirstWords::Kind::kNone && words.kind != FirstWords::Kind::kMore;
  }

  // Enough bytes have come, or the other side will send no more.
  void Hear(Place place) {
    if (place->greeting != nullptr) return Decide(place);
    const auto words = Peek(place->socket.native_handle());
    const bool more = words && words->kind == FirstWords::Kind::kMore;
    if (!more || words->needed == place->needed) return Decide(place);
    AwaitWords(place, words->needed);
  }

  void Decide(Place place) {
    // release() also ends the wait, whose handler then sees an error and leaves `place` alone.
    UniqueFd fd(place->socket.release());
    const bool ended = place->epoch != epoch;
    const Instant deadline = place->deadline;
    const auto greeting = std::move(place->greeting);
    undecided.erase(place);
    AwaitBytes(fd.get(), 1);
    if (greeting != nullptr) return EndGreeting(std::move(fd), *greeting);
    const auto words = Peek(fd.get());
    HandOn(std::move(fd), words, deadline, ended);
  }

  // The client's first message is there, and it names this server.
  void Greet(UniqueFd fd, size_t hello_bytes, Instant deadline) {
    auto greeting = std::make_unique<const ServerGreeting>(options.trust,
                                                           Take(fd.get(), hello_bytes), NewNonce());
    if (greeting->answer().empty()) return Warn("cannot answer a greeting: OpenSSL refuses");
    if (!SendAtOnce(fd.get(), greeting->answer())) return;  // The peer is gone.
    Hold(std::move(fd), deadline, kProofBytes, std::move(greeting));
  }

  void EndGreeting(UniqueFd fd, const ServerGreeting& greeting) {
    const std::string proof = Take(fd.get(), kProofBytes);
    if (proof.size() < kProofBytes) {  // It, or this process, may have stood still.
      return Warn(
          absl::StrCat(PeerName(fd.get()), " broke off before it proved that it holds the token"));
    }
    if (!greeting.IsProof(proof)) {
      return Warn(absl::StrCat("refused ", PeerName(fd.get()),
                               ": it did not prove that it holds the token"));
    }
    if (options.peers != nullptr && !options.peers->Add(fd.get(), greeting.job_id())) {
      return Warn(absl::StrCat("refused ", PeerName(fd.get()),
                               ": from there another job has come, to another address"));
    }
    GiveToGrpc(std::move(fd));
  }

  // `ended`: the connection came before the store was reset.
  void HandOn(UniqueFd fd, const std::optional<FirstWords>& words, Instant deadline,
              bool ended = false) {
    if (!words) return;
    const ConnectionVerdict verdict = JudgeConnection(*words, rule);
    switch (verdict.to) {
      case ConnectionVerdict::To::kGrpc:
        if (rule.server_name == kAnyServerName) return AwaitTurn(std::move(fd), deadline);
        return GiveToGrpc(std::move(fd));
      case ConnectionVerdict::To::kGreeted:
        return Greet(std::move(fd), words->needed, deadline);
      case ConnectionVerdict::To::kC10d:
        if (!ended) options.c10d(std::move(fd));
        return;
      case ConnectionVerdict::To::kNobody:
        Warn(absl::StrCat("refused ", PeerName(fd.get()), ": ", verdict.reason));
        Answer(fd.get(), verdict.answer);
    }
  }

  // The connection has sent its ClientHello, and anybody can do that.
  void AwaitTurn(UniqueFd fd, Instant deadline) {
    const bool waited = handshakes.waits();
    const std::string closed = handshakes.Add(std::move(fd), deadline);
    if (!closed.empty()) WarnOfHandshakes(closed);
    BeginHandshakes();
    if (!waited && handshakes.waits()) AwaitTurns();
  }

  void BeginHandshakes() {
    while (true) {
      UniqueFd fd = handshakes.Next();
      if (!fd.valid()) return;
      const int number = fd.get();
      auto guard = std::make_shared<ConnectionGuard>(ConnectionGuard::Kind::kTls, floods);
      handshakes.Begun(number, guard, MonotonicClock().Now());
      GiveToGrpc(std::move(fd), std::move(guard));
    }
  }

  void AwaitTurns() {
    turn.expires_after(kTurnInterval);
    turn.async_wait([this](asio::error_code stopped) {
      if (stopped) return;
      LookAtHandshakes();
      if (handshakes.waits()) AwaitTurns();
    });
  }

  void LookAtHandshakes() {
    if (handshakes.Look(MonotonicClock().Now()) > 0) WarnOfHandshakes("others");
    BeginHandshakes();
  }

  void WarnOfHandshakes(const std::string& whose) {
    Warn(absl::StrCat("closed connections of ", whose,
                      " that did not end their TLS handshake, or waited for one for too long"));
  }

  void GiveToGrpc(UniqueFd fd) {
    const bool in_clear = options.trust.none() || options.trust.in_clear();
    GiveToGrpc(std::move(fd),
               in_clear ? std::make_shared<ConnectionGuard>(ConnectionGuard::Kind::kClear, floods)
                        : nullptr);
  }

  void GiveToGrpc(UniqueFd fd, std::shared_ptr<ConnectionGuard> guard) {
    const Instant now = MonotonicClock().Now();
    if (*floods != known_floods) LookAtTraffic();
    if (traffic.IsBarred(PeerHost(fd.get()), now)) {
      return Warn(absl::StrCat("refused ", PeerName(fd.get()), ": it sent too much just before"));
    }
    const int room = kGrpcRoom;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    traffic.Add(fd.get(), guard, now);
    options.grpc(std::move(fd), std::move(guard));
  }

  void LookAtTraffic() {
    known_floods = *floods;
    for (const std::string& address : traffic.Look(MonotonicClock().Now())) {
      Warn(absl::StrCat("closed a connection of ", address,
                        ", which sent too much for an agent; it may come again in 30 s"));
    }
  }

  // A peer that sends too much costs processor time, so a process that uses little need not look.
  void AwaitTraffic() {
    look.expires_after(kLookInterval);
    look.async_wait([this](asio::error_code stopped) {
      if (stopped) return;
      const Duration used = ProcessorTime();
      const bool busy = used - processor_time > kLookInterval / kBusyPart;
      if (busy || *floods != known_floods) LookAtTraffic();
      processor_time = used;
      if (handshakes.under_way() > 0) LookAtHandshakes();
      AwaitTraffic();
    });
  }

  void EndC10d() {
    // The connections in the kernel's queue are made already, too.
    AcceptConnections(listener.native_handle(), kMostUnaccepted,
                      [this](UniqueFd fd) { Admit(fd.Release()); });
    ++epoch;
  }

  void Warn(const std::string& line) {
    const std::string admitted = rare_log.Admit(line, MonotonicClock().Now());
    if (!admitted.empty()) LogWarning(admitted);
  }

  // The list is in the order of deadlines, so one timer for the first deadline is enough.
  void AwaitSilent() {
    if (undecided.empty()) return;
    patience.expires_at(undecided.front().deadline);
    patience.async_wait([this](asio::error_code stopped) {
      if (stopped) return;
      const Instant now = MonotonicClock().Now();
      while (!undecided.empty() && undecided.front().deadline <= now) Decide(undecided.begin());
      AwaitSilent();
    });
  }

  asio::io_context loop{1};
  Options options;
  const PortRule rule;
  asio::posix::stream_descriptor listener;
  asio::steady_timer pause;
  asio::steady_timer patience;
  std::list<Undecided> undecided;
  uint64_t epoch = 0;  // Counts the resets of the store behind `options.c10d`.
  // How many connections their guards have found to be floods; as of the last look.
  const std::shared_ptr<std::atomic<uint64_t>> floods = std::make_shared<std::atomic<uint64_t>>(0);
  uint64_t known_floods = 0;
  TrafficWatch traffic;       // Watches the connections that gRPC has.
  HandshakeQueue handshakes;  // Used with certificates.
  asio::steady_timer turn;
  asio::steady_timer look;
  Duration processor_time = ProcessorTime();  // As of the last look.
  RareLog rare_log;
  Thread thread;
};

Front::Front(UniqueFd listener, Options options)
    : state_(std::make_unique<State>(std::move(listener), std::move(options))) {
  HLAUNCH_CHECK(state_->options.grpc != nullptr);
  state_->thread = Thread("hl-front", [state = state_.get()] { state->loop.run(); });
}

void Front::EndC10d() {
  std::promise<void> done;
  asio::post(state_->loop, [this, &done] {
    state_->EndC10d();
    done.set_value();
  });
  done.get_future().wait();
}

Front::~Front() {
  state_->loop.stop();
  state_->thread.Join();
}

}  // namespace hlaunch
