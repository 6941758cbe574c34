// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/greeting_relay.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <list>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/socket_loop.h"
#include "rendezvous/net/trust/token_greeting.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);  // From connecting to the proof.
constexpr size_t kMaxUnsent = 256 << 10;  // Bytes waiting for one end; beyond it none are read.
constexpr int kBacklog = 16;

absl::Status SystemError() { return absl::ResourceExhaustedError(std::strerror(errno)); }

// Returns an abstract socket that listens under `name`.
absl::StatusOr<UniqueFd> ListenAs(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);  // A null byte comes first.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return SystemError();
  }
  return fd;
}

// Abstract sockets have no permissions: all processes of the network namespace reach them.
bool IsOfThisProcess(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == ::getpid() &&
         peer.uid == ::geteuid();
}

absl::Status NoConnection(int error) {
  return absl::UnavailableError(error == 0 ? "the connection was closed" : std::strerror(error));
}

}  // namespace

// Belongs to the loop's thread, except for the trouble.
class GreetingRelay::Carrying final : public SocketLoop::Owner {
 public:
  Carrying(const Trust& trust, std::string address, uint16_t port, std::string name,
           UniqueFd listener)
      : name_(std::move(name)),
        trust_(trust),
        address_(std::move(address)),
        port_(port),
        loop_(*this, ListeningSocket{std::move(listener), 0, ""},
              {.name = "greeting", .thread_name = "hl-greeting", .reads_per_turn = 4}) {}
  ~Carrying() override { loop_.Stop(); }

  absl::Status Start() { return loop_.Start(); }
  const std::string& name() const { return name_; }

  absl::Status trouble() const {
    MutexLock lock(&mu_);
    return trouble_;
  }

  void OnAccepted(UniqueFd fd) override;
  Instant OnTurnEnd() override;

 private:
  class Passage;

  void Tell(const absl::Status& trouble) {
    MutexLock lock(&mu_);
    trouble_ = trouble;
  }

  const std::string name_;
  const Trust trust_;
  const std::string address_;
  const uint16_t port_;
  mutable Mutex mu_;
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
  SocketLoop loop_;
  std::list<std::unique_ptr<Passage>> passages_;  // Some have ended in this turn.
};

// A connection of gRPC, and the connection to the rendezvous that carries it.
//
//   connecting ---> greeting ---> open ---> ended, once what is on its way is out
class GreetingRelay::Carrying::Passage {
 public:
  Passage(Carrying& relay, UniqueFd near, UniqueFd far)
      : relay_(relay),
        greeting_(relay.trust_, NewNonce()),
        deadline_(MonotonicClock().Now() + kPatience),
        near_(*this, std::move(near)),
        far_(*this, std::move(far)) {}

  absl::Status Begin() {
    const absl::Status near = near_.Join(relay_.loop_, /*reads=*/false);
    return near.ok() ? far_.JoinConnecting(relay_.loop_) : near;
  }

  bool ended() const { return stage_ == Stage::kEnded; }
  // Returns when the greeting must be over.
  Instant deadline() const { return stage_ == Stage::kOpen ? Instant::max() : deadline_; }

  void Fail(const absl::Status& trouble) {
    if (stage_ < Stage::kOpen) relay_.Tell(trouble);
    stage_ = Stage::kEnded;
  }

 private:
  enum class Stage { kConnecting, kGreeting, kOpen, kClosing, kEnded };

  // One of the two sockets.
  class End final : public LoopSocket {
   public:
    End(Passage& passage, UniqueFd fd) : LoopSocket(std::move(fd)), passage_(passage) {}
    void OnBytes(absl::string_view bytes) override { passage_.Take(*this, bytes); }
    void OnRoom() override { passage_.GoOn(*this); }
    void OnEnd(int error) override { passage_.Lose(*this, error); }
    void OnReset() override { passage_.Lose(*this, ECONNRESET); }

   private:
    Passage& passage_;
  };

  End& Other(const End& end) { return &end == &near_ ? far_ : near_; }

  void Take(const End& from, absl::string_view bytes) {
    if (stage_ == Stage::kOpen) return Send(Other(from), bytes);
    if (stage_ == Stage::kGreeting) Hear(bytes);
  }

  // The kernel reports room in the socket when connecting has ended.
  void GoOn(const End& end) {
    if (stage_ == Stage::kConnecting && &end == &far_) return Connected();
    AwaitBytes();
  }

  void Connected() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(far_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Fail(NoConnection(error));
    stage_ = Stage::kGreeting;
    Send(far_, greeting_.hello());
  }

  void Hear(absl::string_view bytes) {
    heard_.append(bytes.data(), bytes.size());
    const absl::StatusOr<std::string> proof = greeting_.Prove(heard_);
    if (!proof.ok()) return Fail(proof.status());
    if (proof->empty()) return;
    relay_.Tell(absl::OkStatus());
    stage_ = Stage::kOpen;
    Send(far_, *proof);
  }

  void Send(End& to, absl::string_view bytes) {
    to.out().text().append(bytes.data(), bytes.size());
    if (!to.Send()) return Lose(to, errno);
    AwaitBytes();
  }

  // If one end is slow, no more is read from the other.
  void AwaitBytes() {
    const bool open = stage_ == Stage::kOpen;
    far_.AwaitBytes(stage_ == Stage::kGreeting || (open && near_.out().size() <= kMaxUnsent));
    near_.AwaitBytes(open && far_.out().size() <= kMaxUnsent);
    if (stage_ == Stage::kClosing && near_.out().size() + far_.out().size() == 0) {
      stage_ = Stage::kEnded;
    }
  }

  // What the lost end has sent still reaches the other end.
  void Lose(End& lost, int error) {
    const bool given_up = &lost == &near_ && stage_ < Stage::kOpen;
    if (given_up) stage_ = Stage::kEnded;
    if (stage_ == Stage::kOpen && Other(lost).out().size() > 0) {
      lost.out().Clear();
      stage_ = Stage::kClosing;
      return AwaitBytes();
    }
    if (stage_ == Stage::kClosing && Other(lost).out().size() > 0) return;
    Fail(stage_ == Stage::kGreeting && error == 0 ? ClientGreeting::HungUp() : NoConnection(error));
  }

  Carrying& relay_;
  const ClientGreeting greeting_;
  const Instant deadline_;
  Stage stage_ = Stage::kConnecting;
  std::string heard_;  // Bytes of the greeting, before the passage is open.
  End near_;           // To gRPC.
  End far_;            // To the rendezvous.
};

void GreetingRelay::Carrying::OnAccepted(UniqueFd fd) {
  if (!IsOfThisProcess(fd.get())) {
    return loop_.Warn("greeting: refused a connection that this process does not have (any more)");
  }
  int error = 0;
  UniqueFd far = BeginToConnect(address_, port_, &error);
  if (!far.valid()) return Tell(NoConnection(error));
  auto passage = std::make_unique<Passage>(*this, std::move(fd), std::move(far));
  if (const absl::Status begun = passage->Begin(); !begun.ok()) {
    return Tell(absl::UnavailableError(begun.message()));
  }
  passages_.push_back(std::move(passage));
}

Instant GreetingRelay::Carrying::OnTurnEnd() {
  const Instant now = MonotonicClock().Now();
  Instant next = Instant::max();
  for (const auto& passage : passages_) {
    if (passage->deadline() <= now) passage->Fail(NoConnection(ETIMEDOUT));
    if (!passage->ended()) next = std::min(next, passage->deadline());
  }
  passages_.remove_if([](const auto& passage) { return passage->ended(); });
  return next;
}

absl::StatusOr<std::unique_ptr<GreetingRelay>> GreetingRelay::Start(const Trust& trust,
                                                                    std::string address,
                                                                    uint16_t port) {
  const std::string name = absl::StrCat("hlaunch-greeting-", absl::BytesToHexString(NewNonce()));
  absl::StatusOr<UniqueFd> listener = ListenAs(name);
  if (!listener.ok()) return listener.status();
  auto carrying = std::make_unique<Carrying>(trust, std::move(address), port, name,
                                             std::move(listener).value());
  const absl::Status started = carrying->Start();
  if (!started.ok()) return started;
  return std::unique_ptr<GreetingRelay>(new GreetingRelay(std::move(carrying)));
}

GreetingRelay::GreetingRelay(std::unique_ptr<Carrying> carrying) : carrying_(std::move(carrying)) {}
GreetingRelay::~GreetingRelay() = default;
const std::string& GreetingRelay::name() const { return carrying_->name(); }
absl::Status GreetingRelay::trouble() const { return carrying_->trouble(); }

}  // namespace hlaunch
