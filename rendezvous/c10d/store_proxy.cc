// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/c10d/store_proxy.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/rare_log.h"
#include "rendezvous/c10d/store_streams.h"

namespace hlaunch {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kMaxPending = 8 << 20;  // Bytes for the store; beyond it no client is read.
constexpr int kEventsPerTurn = 256;
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr Duration kConnectAttempt = std::chrono::seconds(3);
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

// Bytes on their way out of a socket.
class Outbox {
 public:
  std::string& text() { return text_; }
  size_t size() const { return text_.size() - sent_; }
  void Clear() { *this = Outbox(); }

  // Sends what fits. False: the other end is gone.
  bool SendTo(int fd) {
    while (size() > 0) {
      const ssize_t put = ::send(fd, text_.data() + sent_, size(), MSG_NOSIGNAL);
      if (put >= 0) {
        sent_ += static_cast<size_t>(put);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno != EINTR) {
        return false;
      }
    }
    if (sent_ >= size()) {  // More is dropped than is moved.
      text_.erase(0, sent_);
      sent_ = 0;
      if (text_.empty()) text_.shrink_to_fit();
    }
    return true;
  }

 private:
  std::string text_;
  size_t sent_ = 0;
};

void SendAtOnce(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

// The thread and all it owns.
//
//                 refused, or no answer: a pause
//               +--------------------------------+
//               v                                |
//   kPausing ------> kConnecting ----------------+---> kConnected: clients are read
//        ^                                                 |
//        +-------------------------------------------------+
//              the connection broke: clients are closed
class StoreProxy::Loop {
 public:
  Loop(ListeningSocket listener, StoreProxyOptions options)
      : options_(std::move(options)),
        port_(listener.port),
        listener_(std::move(listener.fd)),
        events_(::epoll_create1(EPOLL_CLOEXEC)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!events_.valid() || !stop_.valid() ||
        !Ask(EPOLL_CTL_ADD, listener_.get(), kListener, EPOLLIN) ||
        !Ask(EPOLL_CTL_ADD, stop_.get(), kStop, EPOLLIN)) {
      throw std::system_error(errno, std::generic_category());
    }
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "store-proxy");
      while (!stopped_) Turn();
    });
  }

  ~Loop() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  uint16_t port() const { return port_; }

 private:
  enum class State { kPausing, kConnecting, kConnected };
  struct Client {
    UniqueFd fd;
    uint32_t interest = 0;
    Outbox out;
  };

  static constexpr uint64_t kListener = 1;
  static constexpr uint64_t kStop = 2;
  static constexpr uint64_t kMaster = 3;
  static constexpr uint64_t kFirstClient = 16;  // Less its stream's number.

  bool Ask(int operation, int fd, uint64_t id, uint32_t interest) {
    epoll_event event{};
    event.events = interest;
    event.data.u64 = id;
    return ::epoll_ctl(events_.get(), operation, fd, &event) == 0;
  }

  void Turn() {
    epoll_event events[kEventsPerTurn];
    const int ready = ::epoll_wait(events_.get(), events, kEventsPerTurn, Patience());
    for (int i = 0; i < ready && !stopped_; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kStop) {
        stopped_ = true;
      } else if (id == kListener) {
        Accept();
      } else if (id == kMaster) {
        if (state_ == State::kConnecting) Connected();
        if (state_ == State::kConnected) ReadMaster();
      } else {
        ReadClient(static_cast<uint32_t>(id - kFirstClient), events[i].events);
      }
    }
    if (state_ != State::kConnected && MonotonicClock().Now() >= next_) NextAttempt();
    if (accept_again_ && MonotonicClock().Now() >= *accept_again_) {
      accept_again_.reset();
      Ask(EPOLL_CTL_MOD, listener_.get(), kListener, EPOLLIN);
    }
    SendAll();
  }

  int Patience() const {
    Instant next = accept_again_.value_or(Instant::max());
    if (state_ != State::kConnected) next = std::min(next, next_);
    if (next == Instant::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - MonotonicClock().Now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }

  // --- The store -----------------------------------------------------------------------------

  // The pause is over, or the attempt has taken too long.
  void NextAttempt() {
    if (state_ == State::kConnecting) return Lost(ETIMEDOUT);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (::getaddrinfo(options_.address.c_str(), absl::StrCat(options_.port).c_str(), &hints,
                      &found) != 0) {
      return Lost(EINVAL);
    }
    master_ = UniqueFd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool begun =
        master_.valid() &&
        (::connect(master_.get(), found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
    const int error = errno;
    ::freeaddrinfo(found);
    if (!begun || !Ask(EPOLL_CTL_ADD, master_.get(), kMaster, EPOLLIN | EPOLLOUT)) {
      return Lost(error);
    }
    SendAtOnce(master_.get());
    state_ = State::kConnecting;
    next_ = MonotonicClock().Now() + kConnectAttempt;
  }

  void Connected() {
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(master_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Lost(error);
    state_ = State::kConnected;
    pause_ = kFirstPause;
    frames_ = FrameReader(/*greeted=*/false);
    to_master_.text().append(kStreamsGreeting.data(), kStreamsGreeting.size());
  }

  // It is not known what became of requests that were under way: their clients must see that.
  void Lost(int error) {
    if (state_ == State::kConnected) {
      LogRarely(absl::StrCat("store proxy: lost the master store at ",
                             HostPort(options_.address, options_.port), ": ",
                             error == 0 ? "it hung up" : std::strerror(error)));
      clients_.clear();
      touched_.clear();
    }
    master_ = UniqueFd();
    to_master_.Clear();
    state_ = State::kPausing;
    next_ = MonotonicClock().Now() + Duration(std::uniform_int_distribution<Duration::rep>(
                                         pause_.count() / 2, pause_.count())(random_));
    pause_ = std::min(pause_ * 2, kLongestPause);
  }

  void ReadMaster() {
    const ssize_t got = ::recv(master_.get(), buffer_.data(), buffer_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got <= 0) return Lost(got < 0 ? errno : 0);
    const absl::string_view bytes(buffer_.data(), static_cast<size_t>(got));
    const absl::Status taken =
        frames_.Take(bytes, [this](uint32_t stream, absl::string_view piece) {
          const auto it = clients_.find(stream);
          if (it == clients_.end()) return;  // It has gone, and the store was told.
          if (piece.empty()) {
            it->second.out.SendTo(it->second.fd.get());
            Leave(stream);
          } else {
            it->second.out.text().append(piece.data(), piece.size());
            touched_.insert(stream);
          }
        });
    if (!taken.ok()) Lost(EPROTO);
  }

  // --- Clients -------------------------------------------------------------------------------

  void Accept() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid()) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          PauseAccepting(errno);
        }
        return;
      }
      SendAtOnce(fd.get());
      const uint32_t stream = ++last_stream_;
      Client& client = clients_[stream];
      client.fd = std::move(fd);
      Ask(EPOLL_CTL_ADD, client.fd.get(), kFirstClient + stream, 0);
      SetInterest(stream, client);
    }
  }

  // The connection stays in the kernel's queue; asking again at once would spin.
  void PauseAccepting(int error) {
    LogRarely(absl::StrCat("store proxy: cannot accept a worker: ", std::strerror(error),
                           "; trying again until it works"));
    Ask(EPOLL_CTL_MOD, listener_.get(), kListener, 0);
    accept_again_ = MonotonicClock().Now() + kAcceptPause;
  }

  bool reading() const { return state_ == State::kConnected && to_master_.size() <= kMaxPending; }

  void SetInterest(uint32_t stream, Client& client) {
    const uint32_t interest =
        (reading() ? uint32_t{EPOLLIN} : 0) | (client.out.size() > 0 ? uint32_t{EPOLLOUT} : 0);
    if (interest == client.interest) return;
    client.interest = interest;
    Ask(EPOLL_CTL_MOD, client.fd.get(), kFirstClient + stream, interest);
  }

  void ReadClient(uint32_t stream, uint32_t events) {
    const auto it = clients_.find(stream);
    if (it == clients_.end()) return;
    if ((events & EPOLLOUT) != 0) touched_.insert(stream);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    if (state_ != State::kConnected) return Leave(stream);  // It did not wait for the store.
    const ssize_t got = ::recv(it->second.fd.get(), buffer_.data(), buffer_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got <= 0) return Leave(stream);
    PutFrame(&to_master_.text(), stream,
             absl::string_view(buffer_.data(), static_cast<size_t>(got)));
  }

  // The client is gone.
  void Leave(uint32_t stream) {
    clients_.erase(stream);
    if (state_ == State::kConnected) PutFrame(&to_master_.text(), stream, "");
  }

  // --- Both ----------------------------------------------------------------------------------

  // All that a turn has brought goes out in one piece for each socket.
  void SendAll() {
    for (const uint32_t stream : std::exchange(touched_, {})) {
      const auto it = clients_.find(stream);
      if (it == clients_.end()) continue;
      Client& client = it->second;
      if (!client.out.SendTo(client.fd.get())) {
        Leave(stream);
      } else if (client.out.size() > options_.max_unread_bytes) {
        LogRarely(absl::StrCat("store proxy: closed a worker's connection that left ",
                               client.out.size(), " bytes of replies unread"));
        Leave(stream);
      } else {
        SetInterest(stream, client);
      }
    }
    if (state_ == State::kConnected && !to_master_.SendTo(master_.get())) Lost(errno);
    if (state_ == State::kConnected) {
      Ask(EPOLL_CTL_MOD, master_.get(), kMaster,
          EPOLLIN | (to_master_.size() > 0 ? uint32_t{EPOLLOUT} : 0));
    }
    if (std::exchange(read_before_, reading()) != reading()) {
      for (auto& [stream, client] : clients_) SetInterest(stream, client);
    }
  }

  void LogRarely(const std::string& line) {
    const std::string admitted = log_.Admit(line, MonotonicClock().Now());
    if (!admitted.empty()) LogWarning(admitted);
  }

  const StoreProxyOptions options_;
  const uint16_t port_;
  UniqueFd listener_;
  UniqueFd events_;
  UniqueFd stop_;
  bool stopped_ = false;
  State state_ = State::kPausing;
  std::optional<Instant> accept_again_;  // Set where no more could be accepted.
  Instant next_;  // kPausing: the next attempt; kConnecting: this one has failed.
  Duration pause_ = kFirstPause;
  std::minstd_rand random_{std::random_device{}()};
  UniqueFd master_;
  Outbox to_master_;
  FrameReader frames_{/*greeted=*/false};
  uint32_t last_stream_ = 0;
  absl::flat_hash_map<uint32_t, Client> clients_;
  std::set<uint32_t> touched_;  // Clients that may have something to send.
  bool read_before_ = false;    // Whether clients were read when it was last looked at.
  RareLog log_;
  std::string buffer_ = std::string(kReadBytes, '\0');
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<StoreProxy>> StoreProxy::Start(ListeningSocket listener,
                                                              StoreProxyOptions options) {
  if (!IsAddressLiteral(options.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the master store's address '", options.address, "' is not an IP address"));
  }
  try {
    return std::unique_ptr<StoreProxy>(
        new StoreProxy(std::make_unique<Loop>(std::move(listener), std::move(options))));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the store's proxy: ", error.what()));
  }
}

StoreProxy::StoreProxy(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
StoreProxy::~StoreProxy() = default;
uint16_t StoreProxy::port() const { return loop_->port(); }

}  // namespace hlaunch
