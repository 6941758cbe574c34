// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/store_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "rendezvous/net/peer/loopback_peer.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/socket_loop.h"
#include "rendezvous/store/access/store_access.h"
#include "rendezvous/store/access/vouch_messages.h"
#include "rendezvous/store/c10d/carrier_socket.h"
#include "rendezvous/store/c10d/store_streams.h"

namespace hlaunch {
namespace {

// Bytes for the store; beyond it no client is read. They are few, here and in the kernel, because a
// request comes behind all that another client of the node has sent before.
constexpr size_t kMaxPending = 128 << 10;
constexpr int kMaxUnsent = 64 << 10;
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::seconds(1);

// What an agent whose connection to the store is `fd` says first.
VouchGreeting GreetingOf(int fd) {
  VouchGreeting greeting;
  const SocketEnd own = LocalEndOf(fd);
  greeting.address = own.address;
  greeting.port = own.port;
  const absl::StatusOr<std::vector<LocalAddress>> all = ListLocalAddresses();
  if (!all.ok()) return greeting;
  for (const LocalAddress& each : *all) {
    const std::optional<StoreAddress> address = ParseStoreAddress(each.address);
    if (address && greeting.others.size() < kMaxVouchAddresses) greeting.others.push_back(*address);
  }
  return greeting;
}

// Unset if there is no answer: something is lacking now.
std::optional<VouchAnswer> AnswerTo(const VouchQuestion& question, int fd) {
  const absl::StatusOr<uid_t> user = UserOfSibling(fd, question.address, question.port);
  VouchAnswer answer{question.number, Vouch::kNobody, 0};
  if (absl::IsResourceExhausted(user.status())) return std::nullopt;
  if (user.ok()) {
    answer.user = *user;
    answer.vouch = IsOwnUser(*user) ? Vouch::kOwn : Vouch::kOther;
  } else if (absl::IsUnavailable(user.status())) {
    answer.vouch = Vouch::kUntold;
  }
  return answer;
}

}  // namespace

// The part that belongs to the loop's thread.
//
//                 refused, or no answer: a pause
//        +-------------------------+---------------+
//        v                         |               |
//   kPausing ------> kConnecting --+--> kGreeting -+---> kConnected: clients are read
//        ^                             (if sealed)               |
//        +-------------------------------------------------------+
//              the connection broke: clients are closed
class StoreProxy::Carrying final : public SocketLoop::Owner {
 public:
  Carrying(std::optional<ListeningSocket> listener, StoreProxyOptions options)
      : options_(std::move(options)),
        loop_(*this, std::move(listener), {.name = "store proxy", .thread_name = "store-proxy"}) {}
  ~Carrying() override { loop_.Stop(); }

  SocketLoop& loop() { return loop_; }
  void WorkersAreDone() { workers_done_ = true; }

  void OnAccepted(UniqueFd fd) override;
  Instant OnTurnEnd() override;

 private:
  enum class State { kPausing, kConnecting, kGreeting, kConnected };
  class Master;
  class Client;

  void BeginAttempt();
  void EndAttempt(int error);
  void Greet();
  void Connected();
  bool greeted() const { return state_ == State::kGreeting || state_ == State::kConnected; }
  void LoseMaster(int error);
  void LoseMaster(const std::string& reason, bool worth_a_line = true);
  void TakeBytes(absl::string_view bytes);
  void TakePiece(uint32_t stream, absl::string_view piece);
  void TakeQuestions(absl::string_view piece);
  void SendToMaster(uint32_t stream, absl::string_view bytes);
  void Leave(uint32_t stream);
  void SendToClient(uint32_t stream);
  void AwaitBytesOfClients();
  bool reading() const;

  const StoreProxyOptions options_;
  SocketLoop loop_;
  std::atomic<bool> workers_done_ = false;
  State state_ = State::kPausing;
  Instant next_;  // kPausing: the next attempt begins then; before kConnected: this one fails.
  Duration pause_ = kFirstPause;
  std::minstd_rand random_{std::random_device{}()};
  std::unique_ptr<Master> master_;  // Null while it pauses.
  StreamFrameReader reader_{/*greeted=*/false};
  VouchReader questions_;
  uint32_t last_stream_ = kVouchStream;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Client>> clients_;
  std::set<uint32_t> touched_;  // Clients that are new, have room or may have something to send.
  bool read_before_ = false;    // True if clients were read at the end of the last turn.
};

// The connection to the master store.
class StoreProxy::Carrying::Master final : public CarrierSocket {
 public:
  Master(Carrying& proxy, UniqueFd fd) : CarrierSocket(std::move(fd)), proxy_(proxy) {}

  // While it connects, the kernel reports the outcome as room to send.
  void OnRoom() override {
    if (proxy_.state_ != State::kConnecting) return;
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    proxy_.EndAttempt(error);
  }
  void OnBytes(absl::string_view bytes) override { proxy_.TakeBytes(bytes); }
  void OnEnd(int error) override { proxy_.LoseMaster(error); }
  void OnReset() override { proxy_.LoseMaster(ECONNRESET); }

 private:
  Carrying& proxy_;
};

// The connection of one worker.
class StoreProxy::Carrying::Client final : public LoopSocket {
 public:
  Client(Carrying& proxy, uint32_t stream, UniqueFd fd)
      : LoopSocket(std::move(fd)), proxy_(proxy), stream_(stream) {}

  void OnBytes(absl::string_view bytes) override { proxy_.SendToMaster(stream_, bytes); }
  void OnRoom() override { proxy_.touched_.insert(stream_); }
  void OnEnd(int) override { proxy_.Leave(stream_); }
  void OnReset() override {
    if (proxy_.state_ == State::kConnected) return ReadRest();
    proxy_.Leave(stream_);  // The client did not wait for the store.
  }

 private:
  Carrying& proxy_;
  const uint32_t stream_;
};

// Sends all that a turn has brought, in one piece for each socket.
Instant StoreProxy::Carrying::OnTurnEnd() {
  if (state_ != State::kConnected && MonotonicClock().Now() >= next_) {
    if (state_ == State::kPausing) {
      BeginAttempt();
    } else {
      LoseMaster(ETIMEDOUT);
    }
  }
  for (const uint32_t stream : touched_) SendToClient(stream);
  if (greeted()) {
    if (master_->SendFrames()) {
      master_->AwaitBytes(true);
    } else {
      LoseMaster(errno);
    }
  }
  AwaitBytesOfClients();
  return state_ == State::kConnected ? Instant::max() : next_;
}

void StoreProxy::Carrying::BeginAttempt() {
  int error = 0;
  UniqueFd fd = BeginToConnect(options_.address, options_.port, &error);
  if (!fd.valid()) return LoseMaster(error);
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMaxUnsent, sizeof(kMaxUnsent));
  master_ = std::make_unique<Master>(*this, std::move(fd));
  if (!master_->JoinConnecting(loop_).ok()) return LoseMaster(ENOMEM);
  state_ = State::kConnecting;
  next_ = MonotonicClock().Now() + kConnectAttempt;
}

void StoreProxy::Carrying::EndAttempt(int error) {
  if (error != 0) return LoseMaster(error);
  reader_ = StreamFrameReader(/*greeted=*/false);
  questions_ = VouchReader();
  Greet();
}

void StoreProxy::Carrying::Greet() {
  state_ = State::kGreeting;
  std::string& text = master_->out().text();
  if (options_.sealing_key.empty()) {
    text.append(kStreamsGreeting.data(), kStreamsGreeting.size());
    return Connected();
  }
  text.push_back(kStreamsGreeting[0]);
  const absl::Status begun = master_->Seal(SealedStream::Side::kClient, options_.sealing_key);
  if (!begun.ok()) LoseMaster(std::string(begun.message()));
}

void StoreProxy::Carrying::Connected() {
  state_ = State::kConnected;
  pause_ = kFirstPause;
  if (!master_->sealed()) return;
  std::string greeting;
  PutVouchMessage(&greeting, GreetingOf(master_->fd()));
  SendToMaster(kVouchStream, greeting);
}

// Also ends an attempt. It is unknown what became of requests that were under way, and their
// clients must see that.
void StoreProxy::Carrying::LoseMaster(int error) {
  LoseMaster(error != 0 ? std::strerror(error)
             : state_ == State::kGreeting
                 ? "it hung up: it has not the secret of this round, or does not encrypt"
                 : "it hung up",
             // The port may be that of the next round's store already, which does not accept yet.
             error != ETIMEDOUT || loop_.port() != 0);
}

void StoreProxy::Carrying::LoseMaster(const std::string& reason, bool worth_a_line) {
  // At the end of a job the store may go before its proxies. No worker misses it then, though the
  // agent itself may have a connection.
  if (worth_a_line && !workers_done_ && (state_ == State::kGreeting || !clients_.empty())) {
    loop_.Warn(absl::StrCat("store proxy: lost the master store at ",
                            HostPort(options_.address, options_.port), ": ", reason));
  }
  if (state_ == State::kConnected) {
    clients_.clear();
    touched_.clear();
  }
  master_.reset();
  state_ = State::kPausing;
  next_ = MonotonicClock().Now() + Duration(std::uniform_int_distribution<Duration::rep>(
                                       pause_.count() / 2, pause_.count())(random_));
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void StoreProxy::Carrying::TakeBytes(absl::string_view bytes) {
  const absl::Status taken = master_->Unseal(bytes, [this](absl::string_view plain) {
    return reader_.Take(
        plain, [this](uint32_t stream, absl::string_view piece) { TakePiece(stream, piece); });
  });
  if (!taken.ok()) {
    master_->Send();  // Sends the alert of TLS, if there is one.
    LoseMaster(std::string(taken.message()));
  } else if (state_ == State::kGreeting && master_->ready()) {
    Connected();
  }
}

void StoreProxy::Carrying::TakePiece(uint32_t stream, absl::string_view piece) {
  if (stream == kVouchStream) return TakeQuestions(piece);
  const auto it = clients_.find(stream);
  if (it == clients_.end()) return;  // The client has gone, and the store was told.
  Client& client = *it->second;
  if (piece.empty()) {
    client.Send();
    Leave(stream);
  } else {
    client.out().text().append(piece.data(), piece.size());
    touched_.insert(stream);
  }
}

// Answers the store's questions. It has proven that it belongs to the round.
void StoreProxy::Carrying::TakeQuestions(absl::string_view piece) {
  const absl::StatusOr<std::vector<VouchMessage>> questions = questions_.Take(piece);
  std::string answers;
  if (questions.ok()) {
    for (const VouchMessage& message : *questions) {
      const auto* question = std::get_if<VouchQuestion>(&message);
      if (question == nullptr) continue;
      if (const auto answer = AnswerTo(*question, master_->fd()))
        PutVouchMessage(&answers, *answer);
    }
  }
  if (!answers.empty()) SendToMaster(kVouchStream, answers);
}

void StoreProxy::Carrying::SendToMaster(uint32_t stream, absl::string_view bytes) {
  PutFrame(&master_->frames().text(), stream, bytes);
}

void StoreProxy::Carrying::OnAccepted(UniqueFd fd) {
  const absl::Status own = options_.any_user ? absl::OkStatus() : CheckPeerIsOwn(fd.get());
  if (!own.ok()) {
    return loop_.Warn(absl::StrCat(
        "store proxy: refused a connection, since it is for this job's user: ", own.message(),
        "; --any-user serves all users"));
  }
  const uint32_t stream = ++last_stream_;
  auto client = std::make_unique<Client>(*this, stream, std::move(fd));
  if (const absl::Status joined = client->Join(loop_, reading()); !joined.ok()) {
    return loop_.Warn(absl::StrCat("store proxy: cannot serve a connection: ", joined.message()));
  }
  clients_.emplace(stream, std::move(client));
  touched_.insert(stream);
}

// Removes a client that is gone.
void StoreProxy::Carrying::Leave(uint32_t stream) {
  clients_.erase(stream);
  if (state_ == State::kConnected) SendToMaster(stream, "");
}

void StoreProxy::Carrying::SendToClient(uint32_t stream) {
  const auto it = clients_.find(stream);
  if (it == clients_.end()) return;
  Client& client = *it->second;
  if (!client.Send()) {
    Leave(stream);
  } else if (client.out().size() > options_.max_unread_bytes) {
    loop_.Warn(absl::StrCat("store proxy: closed a worker's connection that left ",
                            client.out().size(), " bytes of replies unread"));
    Leave(stream);
  }
}

bool StoreProxy::Carrying::reading() const {
  return state_ == State::kConnected && master_->unsent() <= kMaxPending;
}

// Called after all was sent, since that decides whether clients are read.
void StoreProxy::Carrying::AwaitBytesOfClients() {
  const bool reads = reading();
  const std::set<uint32_t> touched = std::exchange(touched_, {});
  if (std::exchange(read_before_, reads) != reads) {
    for (auto& [stream, client] : clients_) client->AwaitBytes(reads);
    return;
  }
  for (const uint32_t stream : touched) {
    if (const auto it = clients_.find(stream); it != clients_.end()) it->second->AwaitBytes(reads);
  }
}

absl::StatusOr<std::unique_ptr<StoreProxy>> StoreProxy::Start(
    std::optional<ListeningSocket> listener, StoreProxyOptions options) {
  if (!IsAddressLiteral(options.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the master store's address '", options.address, "' is not an IP address"));
  }
  auto carrying = std::make_unique<Carrying>(std::move(listener), std::move(options));
  if (const absl::Status started = carrying->loop().Start(); !started.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the store's proxy: ", started.message()));
  }
  return std::unique_ptr<StoreProxy>(new StoreProxy(std::move(carrying)));
}

StoreProxy::StoreProxy(std::unique_ptr<Carrying> carrying) : carrying_(std::move(carrying)) {}
StoreProxy::~StoreProxy() = default;
void StoreProxy::WorkersAreDone() { carrying_->WorkersAreDone(); }
uint16_t StoreProxy::port() const { return carrying_->loop().port(); }

}  // namespace hlaunch
