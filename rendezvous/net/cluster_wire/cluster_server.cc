// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/cluster_wire/cluster_server.h"

#include <ctime>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/now.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/cluster_wire/count_by_address.h"
#include "rendezvous/net/cluster_wire/tls_context.h"
#include "rendezvous/net/cluster_wire/wire_connection.h"
#include "rendezvous/net/cluster_wire/wire_limits.h"
#include "rendezvous/net/socket/accept.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/net/trust/certificate.h"

namespace hlaunch {
namespace {

constexpr int kAcceptedAtOnce = 64;
constexpr std::time_t kRenewPatience = 300;  // Seconds for a peer whose certificate has expired.
constexpr Duration kSweep = std::chrono::milliseconds(500);

absl::Status CheckHead(const HostIdentity& identity) {
  const Certificate certificate = CertificateIn(identity.certificate);
  if (certificate != nullptr && IsHeadCertificate(certificate.get())) return absl::OkStatus();
  return absl::InvalidArgumentError("the certificate is not the head's");
}

absl::StatusOr<TlsContext> TlsOfHead(const HostIdentity& identity, const Forgives& is_own) {
  HLAUNCH_RETURN_IF_ERROR(CheckHead(identity));
  return TlsOfServer(identity, is_own);
}

// Returns a warning if a host connects from another address than before: it may have two addresses,
// or its key was copied to another host.
std::string Suspicion(const std::string& host, const std::string& former, const std::string& now) {
  if (former == now) return "";
  return absl::StrCat(". It came from ", former, " and now from ", now,
                      "; if these are two hosts, its key was copied: run `hlaunch cluster "
                      "throw-out ",
                      host, "` here, and join it again");
}

//            handshake, a certificate
//   kShaking ------------------------> kPeer
//       |    handshake, none              its question
//       +----------------> kStranger ----------------> kAsked
//   any --its time is over, it breaks the rules, or it goes--> none
enum class Phase { kShaking, kStranger, kAsked, kPeer };

struct Guest {
  std::shared_ptr<WireConnection> wire;
  std::string address;
  Phase phase = Phase::kShaking;
  Instant deadline;         // Unused for a peer.
  std::string host;         // Set for a peer.
  std::time_t expires = 0;  // Set for a peer.
};

}  // namespace

// All connections. Belongs to the loop's thread.
class ClusterServer::Connections : public std::enable_shared_from_this<Connections> {
 public:
  Connections(asio::io_context& loop, TlsContext tls, Events events)
      : loop_(loop),
        listener_(loop),
        timer_(loop),
        tls_(std::move(tls)),
        events_(std::move(events)) {}

  absl::Status Open(UniqueFd listener) {
    asio::error_code error;
    listener_.assign(listener.get(), error);
    if (error) return absl::ResourceExhaustedError(error.message());
    listener.Release();
    AwaitConnections();
    next_sweep_ = Now() + kSweep;
    AwaitSweep();
    return absl::OkStatus();
  }

  void Close() {
    closed_ = true;
    asio::error_code ignored;
    listener_.close(ignored);
    timer_.cancel();
    for (auto& [id, guest] : guests_) guest.wire->Drop();
    guests_.clear();
  }

  void Send(uint64_t id, const Envelope& envelope) {
    Guest* guest = Find(id);
    if (guest == nullptr || (guest->phase != Phase::kPeer && guest->phase != Phase::kAsked)) return;
    if (guest->phase == Phase::kAsked) guest->deadline = Now() + kStrangerPatience;
    guest->wire->Send(envelope);
  }
  void Cut(uint64_t peer) {
    if (Guest* guest = FindPeer(peer)) guest->wire->End(absl::CancelledError("it was cut"));
  }
  absl::Status Renew(const HostIdentity& identity) {
    HLAUNCH_ASSIGN_OR_RETURN(tls_, TlsOfHead(identity, events_.is_own));
    return absl::OkStatus();
  }
  size_t peers() const { return by_host_.size(); }

 private:
  void AwaitConnections();
  void Accept();
  void PauseAccepting(int error);
  void Take(UniqueFd fd);
  void DropOldest();
  void EndShaking(uint64_t id, const Guest& guest);
  void Greet(const std::shared_ptr<WireConnection>& wire, const std::string& address);
  void Shaken(uint64_t id);
  void BecomeStranger(uint64_t id, Guest& guest);
  void BecomePeer(uint64_t id, Guest& guest);
  void Replace(const std::string& host, uint64_t by);
  void Pinged(uint64_t id);
  void Said(uint64_t id, Envelope envelope);
  void Pass(uint64_t id, Guest& guest, const Envelope& question);
  void Ended(uint64_t id, const absl::Status& why);
  void WarnOf(const Guest& guest, const absl::Status& why);
  void Forget(uint64_t id, const Guest& guest);
  void AwaitSweep();
  void Sweep();
  void Refuse(Guest& guest, absl::string_view why);
  void Warn(const std::string& line);

  Guest* Find(uint64_t id) {
    const auto found = guests_.find(id);
    return found == guests_.end() ? nullptr : &found->second;
  }
  Guest* FindPeer(uint64_t id) {
    Guest* guest = Find(id);
    return guest != nullptr && guest->phase == Phase::kPeer ? guest : nullptr;
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer timer_;
  TlsContext tls_;
  const Events events_;
  bool closed_ = false;
  uint64_t last_id_ = 0;
  std::unordered_map<uint64_t, Guest> guests_;
  absl::flat_hash_map<std::string, uint64_t> by_host_;
  CountByAddress shaking_{kMostHandshakes, kMostHandshakesOfOne};
  std::set<uint64_t> shaking_ids_;  // The lowest is the oldest.
  CountByAddress strangers_{kMostStrangers, kMostStrangersOfOne};
  Instant next_sweep_;
  RareLog warnings_;
  RareLog replacements_;  // Separate, so that no stranger's noise hides a copied key.
};

void ClusterServer::Connections::AwaitConnections() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this()](const asio::error_code& error) {
                         if (!error && !self->closed_) self->Accept();
                       });
}

void ClusterServer::Connections::Accept() {
  const int error = AcceptConnections(listener_.native_handle(), kAcceptedAtOnce,
                                      [this](UniqueFd fd) { Take(std::move(fd)); });
  if (OutOfDescriptors(error)) return PauseAccepting(error);
  AwaitConnections();
}

void ClusterServer::Connections::PauseAccepting(int error) {
  Warn(absl::StrCat("no connection can be accepted: ",
                    asio::error_code(error, asio::system_category()).message()));
  auto pause = std::make_shared<asio::steady_timer>(loop_, kAcceptPause);
  pause->async_wait([self = shared_from_this(), pause](const asio::error_code&) {
    if (!self->closed_) self->AwaitConnections();
  });
}

void ClusterServer::Connections::Take(UniqueFd fd) {
  const std::string address = PeerLiteral(fd.get());
  const std::string name = PeerName(fd.get());
  if (shaking_.full()) DropOldest();
  if (!shaking_.Admit(address)) {
    return Warn(absl::StrCat("a connection from ", name,
                             " is refused: too many are in their handshake at the same time"));
  }
  const auto wire = WireConnection::Of(loop_, std::move(fd), tls_);
  if (wire.ok()) return Greet(*wire, address);
  shaking_.Leave(address);
  Warn(absl::StrCat("a connection from ", name, " is refused: ", wire.status().message()));
}

// A host needs milliseconds for its handshake, so the oldest connections are those that block
// others.
void ClusterServer::Connections::DropOldest() {
  const auto oldest = guests_.find(*shaking_ids_.begin());
  Warn(absl::StrCat("a connection from ", oldest->second.wire->name(),
                    " is refused: it is slow in its handshake, and others wait"));
  const Guest guest = std::move(oldest->second);
  guests_.erase(oldest);
  Forget(*shaking_ids_.begin(), guest);
  guest.wire->Drop();
}

void ClusterServer::Connections::EndShaking(uint64_t id, const Guest& guest) {
  shaking_.Leave(guest.address);
  shaking_ids_.erase(id);
}

void ClusterServer::Connections::Greet(const std::shared_ptr<WireConnection>& wire,
                                       const std::string& address) {
  const uint64_t id = ++last_id_;
  Guest& guest = guests_[id];
  guest.wire = wire;
  guest.address = address;
  guest.deadline = Now() + kHandshakePatience;
  shaking_ids_.insert(id);
  WireConnection::Events events;  // Not called after Close, which drops each connection.
  events.shaken = [this, id] { Shaken(id); };
  events.said = [this, id](Envelope envelope) { Said(id, std::move(envelope)); };
  events.pinged = [this, id] { Pinged(id); };
  events.ended = [this, id](const absl::Status& why) { Ended(id, why); };
  wire->Begin(/*is_server=*/true, kMaxStrangerFrame, std::move(events));
}

void ClusterServer::Connections::Shaken(uint64_t id) {
  Guest* guest = Find(id);
  if (guest == nullptr) return;
  const X509* shown = guest->wire->shown();
  if (shown == nullptr) return BecomeStranger(id, *guest);
  const absl::StatusOr<CertifiedHost> certified = ReadHostCertificate(shown);
  if (!certified.ok()) return Refuse(*guest, certified.status().message());
  const std::time_t wall = std::time(nullptr);
  const bool has_expired = certified->expires <= wall;
  if (has_expired && !IsOwnAddress(guest->address)) {  // TLS has accepted it from is_own only.
    return Refuse(*guest, "its certificate has expired");
  }
  if (!events_.admits(*certified)) {
    return Refuse(*guest,
                  absl::StrCat("the certificate of ", certified->host, " is not taken any more"));
  }
  guest->host = certified->host;
  guest->expires = has_expired ? wall + kRenewPatience : certified->expires;
  BecomePeer(id, *guest);
}

void ClusterServer::Connections::BecomeStranger(uint64_t id, Guest& guest) {
  if (!strangers_.Admit(guest.address)) {
    return Refuse(guest, "too many unauthenticated peers are connected");
  }
  EndShaking(id, guest);
  guest.phase = Phase::kStranger;
  guest.deadline = Now() + kStrangerPatience;
}

void ClusterServer::Connections::BecomePeer(uint64_t id, Guest& guest) {
  EndShaking(id, guest);
  guest.phase = Phase::kPeer;
  guest.wire->set_max_frame(kMaxClusterFrame);
  // This tells the host that it was admitted: TLS 1.3 does not.
  guest.wire->Send(NewsOf(kPing, nlohmann::json::object()));
  const std::string host = guest.host;
  Replace(host, id);
  events_.came(id, host);
}

void ClusterServer::Connections::Replace(const std::string& host, uint64_t by) {
  const auto found = by_host_.find(host);
  const uint64_t former = found == by_host_.end() ? 0 : found->second;
  by_host_[host] = by;
  const auto guest = guests_.find(former);
  if (guest == guests_.end()) return;
  const std::string line = replacements_.Admit(
      absl::StrCat(host, " has connected anew; its former connection, ", guest->second.wire->name(),
                   ", is closed", Suspicion(host, guest->second.address, guests_.at(by).address)),
      Now());
  if (!line.empty()) LogWarning(line);
  guest->second.wire->Drop();
  guests_.erase(guest);
  events_.left(former);
}

// No ping of a stranger prolongs its time.
void ClusterServer::Connections::Pinged(uint64_t id) {
  if (Guest* guest = FindPeer(id)) guest->wire->Send(NewsOf(kPing, nlohmann::json::object()));
}

void ClusterServer::Connections::Said(uint64_t id, Envelope envelope) {
  Guest* guest = Find(id);
  if (guest == nullptr) return;
  switch (guest->phase) {
    case Phase::kPeer:
      return events_.said(id, std::move(envelope));
    case Phase::kStranger:
      return Pass(id, *guest, envelope);
    case Phase::kAsked:
      return Refuse(*guest, "an unauthenticated peer may send one request");
    case Phase::kShaking:
      break;  // Nothing is read yet.
  }
}

void ClusterServer::Connections::Pass(uint64_t id, Guest& guest, const Envelope& question) {
  if (question.ask.empty())
    return Refuse(guest, "an unauthenticated peer may send a request and nothing else");
  guest.phase = Phase::kAsked;
  guest.deadline = Now() + kStrangerPatience;
  const std::string address = guest.address;
  events_.stranger(id, question, address);
}

void ClusterServer::Connections::Ended(uint64_t id, const absl::Status& why) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  const Guest guest = std::move(found->second);
  guests_.erase(found);
  Forget(id, guest);
  if (guest.phase != Phase::kPeer) return WarnOf(guest, why);
  LogInfo(absl::StrCat("the connection to ", guest.host, " (", guest.wire->name(),
                       ") has ended: ", why.message()));
  events_.left(id);
}

// A stranger that leaves by itself was not refused.
void ClusterServer::Connections::WarnOf(const Guest& guest, const absl::Status& why) {
  if (guest.phase != Phase::kShaking && absl::IsUnavailable(why)) return;
  Warn(absl::StrCat("a connection from ", guest.wire->name(), " is refused: ", why.message()));
}

void ClusterServer::Connections::Forget(uint64_t id, const Guest& guest) {
  if (guest.phase == Phase::kShaking) return EndShaking(id, guest);
  if (guest.phase != Phase::kPeer) return strangers_.Leave(guest.address);
  const auto found = by_host_.find(guest.host);
  if (found != by_host_.end() && found->second == id) by_host_.erase(found);
}

void ClusterServer::Connections::AwaitSweep() {
  timer_.expires_at(next_sweep_);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->closed_) return;
    self->Sweep();
    self->AwaitSweep();
  });
}

// If this process stood still, it has not yet read what came meanwhile, so no silence counts.
void ClusterServer::Connections::Sweep() {
  const Instant now = Now();
  const bool stood_still = now - next_sweep_ > kOwnPause;
  next_sweep_ = now + kSweep;
  if (stood_still) return;
  const std::time_t wall = std::time(nullptr);
  for (auto& [id, guest] : guests_) {
    if (guest.phase != Phase::kPeer) {
      if (now > guest.deadline) Refuse(guest, "its time is over");
    } else if (now - guest.wire->heard() > kSilence) {
      guest.wire->End(absl::DeadlineExceededError("it is silent"));
    } else if (guest.expires <= wall) {
      guest.wire->End(absl::UnauthenticatedError("its certificate has expired"));
    }
  }
}

void ClusterServer::Connections::Refuse(Guest& guest, absl::string_view why) {
  guest.wire->End(absl::PermissionDeniedError(why));
}

void ClusterServer::Connections::Warn(const std::string& line) {
  const std::string admitted = warnings_.Admit(line, Now());
  if (!admitted.empty()) LogWarning(admitted);
}

ClusterServer::ClusterServer(std::shared_ptr<Connections> connections)
    : connections_(std::move(connections)) {}

ClusterServer::~ClusterServer() { connections_->Close(); }

absl::StatusOr<std::unique_ptr<ClusterServer>> ClusterServer::Start(asio::io_context& loop,
                                                                    UniqueFd listener,
                                                                    HostIdentity identity,
                                                                    Events events) {
  HLAUNCH_ASSIGN_OR_RETURN(TlsContext tls, TlsOfHead(identity, events.is_own));
  auto connections = std::make_shared<Connections>(loop, std::move(tls), std::move(events));
  HLAUNCH_RETURN_IF_ERROR(connections->Open(std::move(listener)));
  return std::unique_ptr<ClusterServer>(new ClusterServer(std::move(connections)));
}

void ClusterServer::Send(uint64_t id, const Envelope& envelope) {
  connections_->Send(id, envelope);
}

void ClusterServer::Cut(uint64_t peer) { connections_->Cut(peer); }

absl::Status ClusterServer::Renew(const HostIdentity& identity) {
  return connections_->Renew(identity);
}

size_t ClusterServer::peers() const { return connections_->peers(); }

}  // namespace hlaunch
