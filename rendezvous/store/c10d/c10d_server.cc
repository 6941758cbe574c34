// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/peer/loopback_peer.h"
#include "rendezvous/net/socket/socket_loop.h"
#include "rendezvous/store/access/vouching.h"
#include "rendezvous/store/c10d/c10d_carriers.h"
#include "rendezvous/store/c10d/c10d_connections.h"
#include "rendezvous/store/c10d/silent_clients.h"
#include "rendezvous/store/c10d/store_streams.h"

namespace hlaunch {
namespace {

constexpr size_t kManyDescriptors = 65'536;  // Assumed if there is no limit.
constexpr size_t kMaxWarnedOf = 1000;        // Sources; further warnings would tell nothing new.

// True if the other end has closed the connection, or it broke.
bool HasEnded(int fd) {
  char byte;
  const ssize_t got = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

// Silent clients may take half of the descriptors.
SilentClients::Limits SilenceLimits(const C10dServerOptions& options) {
  rlimit descriptors{};
  const bool limited =
      ::getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && descriptors.rlim_cur < kManyDescriptors;
  return {options.max_silent, options.silent_patience,
          (limited ? descriptors.rlim_cur : kManyDescriptors) / 2};
}

}  // namespace

// The part that belongs to the loop's thread.
class C10dServer::Serving final : public SocketLoop::Owner {
 public:
  Serving(std::optional<ListeningSocket> listener, C10dServerOptions options)
      : options_(std::move(options)),
        access_(options_.access),
        sealing_key_(options_.sealing_key),
        silent_(SilenceLimits(options_)),
        loop_(*this, std::move(listener),
              {.name = "store", .thread_name = "c10d-store", .reads_per_turn = 8}),
        connections_(options_, MonotonicClock(),
                     [this](const std::string& line) { loop_.Warn(line); }),
        carriers_(loop_, connections_, vouching_, options_) {}
  ~Serving() override { loop_.Stop(); }

  SocketLoop& loop() { return loop_; }

  void OnAccepted(UniqueFd fd) override;
  Instant OnTurnEnd() override;
  void Reset(std::optional<StoreAccess> access, std::optional<std::string> sealing_key);

 private:
  class Client;

  Admission Admit(int fd, std::string* denial);
  Admission AskKernel(int fd, std::string* denial);
  void TakeVerdicts();
  void WarnOf(const StoreAddress& source, absl::string_view reason);
  void CloseSilent();
  void Convert(Client& client, absl::string_view bytes);

  const C10dServerOptions options_;
  std::optional<StoreAccess> access_;
  std::string sealing_key_;
  std::set<StoreAddress> warned_of_;
  SilentClients silent_;
  Vouching vouching_;
  SocketLoop loop_;
  C10dConnections connections_;
  C10dCarriers carriers_;
};

// A client on a socket of its own, or a proxy that has not spoken yet.
class C10dServer::Serving::Client final : public C10dConnection, public LoopSocket {
 public:
  Client(Serving& server, UniqueFd fd, bool asked_about, std::string denial)
      : C10dConnection(server.connections_.NextId(), server.options_),
        LoopSocket(std::move(fd), server.connections_.unread()),
        server_(server),
        asked_about_(asked_about),
        denial_(std::move(denial)) {}
  ~Client() override {
    server_.silent_.Gone(id);
    server_.vouching_.Gone(id);
  }

  SendBuffer& replies() override { return out(); }
  bool SendReplies() override { return Send(); }
  void AwaitRequests(bool reads) override { AwaitBytes(reads); }
  void TellEnd() override {}
  void OnKnown() override { server_.silent_.Spoke(id); }
  std::string Source() const override { return PeerName(); }

  void OnBytes(absl::string_view bytes) override {
    if (!std::exchange(opened_, true) && bytes[0] == kStreamsGreeting[0]) {
      return server_.Convert(*this, bytes);
    }
    if (!asked_about_) return server_.connections_.Take(*this, bytes);
    // Nothing of it is heard, and no more of it is read, before it is known whose it is.
    const SocketEnd source = RemoteEndOf(fd());
    if (unheard_.empty()) {
      server_.vouching_.Came(id, source.address, source.port, MonotonicClock().Now(),
                             std::move(denial_));
    }
    unheard_.append(bytes.data(), bytes.size());
    AwaitBytes(false);
  }
  bool asked_about() const { return asked_about_; }
  // Its agent has vouched for it.
  void Hear() {
    asked_about_ = false;
    server_.connections_.Take(*this, std::exchange(unheard_, {}));
  }
  void OnRoom() override { server_.connections_.Continue(*this); }
  void OnEnd(int) override { server_.connections_.Close(id); }
  void OnReset() override { server_.connections_.CloseAfterTurns(id); }

 private:
  Serving& server_;
  bool opened_ = false;  // Its first bytes have come.
  bool asked_about_;     // It is not known yet whose it is.
  std::string denial_;   // Why this host's kernel says that it is not the job's, if it does.
  std::string unheard_;  // What came before that is known.
};

void C10dServer::Serving::OnAccepted(UniqueFd fd) {
  std::string denial;
  const Admission admission = Admit(fd.get(), &denial);
  if (admission == Admission::kRefuse) return;
  const StoreAddress source = RemoteEndOf(fd.get()).address;
  auto client = std::make_unique<Client>(*this, std::move(fd), admission == Admission::kAskAgent,
                                         std::move(denial));
  if (const absl::Status joined = client->Join(loop_, /*reads=*/true); !joined.ok()) {
    return loop_.Warn(absl::StrCat("store: cannot serve a connection: ", joined.message()));
  }
  silent_.Came(client->id, source, MonotonicClock().Now());
  connections_.Add(std::move(client));
}

// Clients that have connected and send nothing must not take the descriptors of the others.
void C10dServer::Serving::CloseSilent() {
  if (!silent_.crowded()) return;
  const std::vector<SilentClients::Id> superfluous =
      silent_.TakeSuperfluous(MonotonicClock().Now());
  for (const SilentClients::Id id : superfluous) connections_.Close(id);
  if (superfluous.empty()) return;
  loop_.Warn(absl::StrCat("store: closed ", superfluous.size(),
                          " connections that were made and said nothing"));
}

// Returns kServe, kRefuse or kAskAgent. Sets `denial` if the kernel says that it is not the job's
// and an agent may know better.
Admission C10dServer::Serving::Admit(int fd, std::string* denial) {
  if (!access_.has_value()) return Admission::kServe;
  const StoreAddress source = RemoteEndOf(fd).address;
  const AdmissionVerdict verdict = DecideAdmission(*access_, source, LocalEndOf(fd).address);
  if (!verdict.reason.empty()) WarnOf(source, verdict.reason);
  return verdict.admission == Admission::kAskKernel ? AskKernel(fd, denial) : verdict.admission;
}

// Another node of the job on this host may have another user, for whom its agent vouches.
Admission C10dServer::Serving::AskKernel(int fd, std::string* denial) {
  const absl::Status own = CheckPeerIsOwn(fd);
  if (own.ok()) return Admission::kServe;
  const StoreAddress source = RemoteEndOf(fd).address;
  *denial = absl::StrCat("refused a connection from ", ShowStoreAddress(source),
                         ", since the store is for this job's user: ", own.message(),
                         "; to serve all users there: ", AllowingOption(source));
  if (access_->vouched) return Admission::kAskAgent;
  if (!HasEnded(fd)) WarnOf(source, *denial);
  return Admission::kRefuse;
}

// Carries out what agents have said.
void C10dServer::Serving::TakeVerdicts() {
  for (const Vouching::Verdict& verdict : vouching_.TakeVerdicts(MonotonicClock().Now())) {
    auto* client = static_cast<Client*>(connections_.Find(verdict.client));  // Others do not wait.
    if (client == nullptr) continue;
    // After a reset the answer may be about another connection with the same two addresses.
    const SocketEnd source = RemoteEndOf(client->fd());
    const bool connected = source.port != 0;
    const bool gone = !connected || (verdict.perhaps_gone && HasEnded(client->fd()));
    if (!verdict.reason.empty() && !gone) WarnOf(source.address, verdict.reason);
    if (verdict.served && connected) {
      client->Hear();
    } else {
      connections_.Close(verdict.client);
    }
  }
}

// Warns once of each source.
void C10dServer::Serving::WarnOf(const StoreAddress& source, absl::string_view reason) {
  if (warned_of_.size() < kMaxWarnedOf && warned_of_.insert(source).second) {
    LogWarning(absl::StrCat("store: ", reason));
  }
}

// Called when the first byte is a proxy's. Destroys `client`.
void C10dServer::Serving::Convert(Client& client, absl::string_view bytes) {
  UniqueFd fd = client.Leave();
  const bool only_sealed = client.asked_about();
  connections_.Close(client.id);
  carriers_.Add(std::move(fd), bytes, sealing_key_, only_sealed);
}

Instant C10dServer::Serving::OnTurnEnd() {
  TakeVerdicts();
  connections_.TakeTurns();
  CloseSilent();
  carriers_.SendAll();
  return std::min({connections_.next_turn(), silent_.next(), vouching_.next()});
}

void C10dServer::Serving::Reset(std::optional<StoreAccess> access,
                                std::optional<std::string> sealing_key) {
  connections_.Clear();
  carriers_.Clear();
  vouching_.Clear();
  silent_.Clear();
  loop_.DropUnaccepted();  // They connected before the reset, so they belong to the old round.
  if (access.has_value()) access_ = std::move(access);
  if (sealing_key.has_value()) sealing_key_ = *std::move(sealing_key);
  warned_of_.clear();
}

absl::StatusOr<std::unique_ptr<C10dServer>> C10dServer::Start(
    std::optional<ListeningSocket> listener, C10dServerOptions options) {
  auto serving = std::make_unique<Serving>(std::move(listener), std::move(options));
  if (const absl::Status started = serving->loop().Start(); !started.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the store: ", started.message()));
  }
  return std::unique_ptr<C10dServer>(new C10dServer(std::move(serving)));
}

C10dServer::C10dServer(std::unique_ptr<Serving> serving) : serving_(std::move(serving)) {}
C10dServer::~C10dServer() = default;
uint16_t C10dServer::port() const { return serving_->loop().port(); }

void C10dServer::Adopt(UniqueFd connection) {
  // A std::function must be copyable, so the copies share the descriptor; only one of them runs.
  const auto shared = std::make_shared<UniqueFd>(std::move(connection));
  serving_->loop().Post([serving = serving_.get(), shared] {
    const int on = 1;
    ::setsockopt(shared->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::fcntl(shared->get(), F_SETFD, FD_CLOEXEC);
    ::fcntl(shared->get(), F_SETFL, ::fcntl(shared->get(), F_GETFL) | O_NONBLOCK);
    serving->OnAccepted(std::move(*shared));
  });
}

void C10dServer::Reset(std::optional<StoreAccess> access, std::optional<std::string> sealing_key) {
  Mutex mu;
  CondVar changed;
  bool done = false;
  serving_->loop().Post([&] {
    serving_->Reset(std::move(access), std::move(sealing_key));
    MutexLock lock(&mu);
    done = true;
    changed.Signal();
  });
  MutexLock lock(&mu);
  while (!done) changed.Wait(&mu);
}

}  // namespace hlaunch
