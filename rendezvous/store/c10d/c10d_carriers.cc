// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_carriers.h"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/store/c10d/carrier_socket.h"
#include "rendezvous/store/c10d/store_streams.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxStreams = 16384;  // The limit for one proxy.
// A proxy is closed at this number, which counts streams that were ended here and not there.
constexpr size_t kMostUnended = 2 * kMaxStreams;
// What the kernel holds of a proxy's bytes. It is little, because a request comes behind all that
// another worker of the node has sent before.
constexpr int kReceived = 128 << 10;

}  // namespace

class C10dCarriers::Carrier final : public CarrierSocket {
 public:
  Carrier(C10dCarriers& all, Id id, UniqueFd fd, const std::string& sealing_key, bool only_sealed)
      : CarrierSocket(std::move(fd), all.connections_.unread()),
        all_(all),
        id_(id),
        sealing_key_(sealing_key),
        only_sealed_(only_sealed) {}

  Id id() const { return id_; }
  size_t max_unread_bytes() const { return all_.options_.max_unread_bytes; }

  void OnBytes(absl::string_view bytes) override;
  void OnRoom() override { AwaitFrames(); }
  void OnEnd(int) override { all_.Close(*this); }
  void OnReset() override { all_.Close(*this); }

  // Stops reading from a proxy that does not read what it is sent, or brings requests faster than
  // their turns come.
  void AwaitFrames() {
    AwaitBytes(unsent() <= max_unread_bytes() && queued_ <= max_unread_bytes());
  }

  // Called when a stream holds `now` bytes that wait for their turn, and held `before`.
  void CountQueued(size_t before, size_t now);

  // Appends a frame, which is sent at the end of the turn; an empty frame ends the stream.
  void Put(uint32_t stream, absl::string_view bytes);

  // Called when the server has closed the connection in `stream`, and tells the proxy, which has
  // ended the stream before if `both` is true.
  void EndStream(uint32_t stream, bool both);

  void CloseStreams();

 private:
  absl::Status TakeBytes(absl::string_view bytes);
  absl::Status TakeOpening(absl::string_view* bytes);
  void TakePiece(uint32_t stream, absl::string_view piece);
  void TakeVouches(absl::string_view piece);
  void CloseStream(uint32_t stream);
  C10dConnections::Id Open(uint32_t stream);

  C10dCarriers& all_;
  const Id id_;
  const std::string sealing_key_;
  const bool only_sealed_;
  absl::Status vouches_;  // Why what it says about connections is not taken; OK if it is.
  bool begun_ = false;    // The greeting's first byte has come.
  bool opened_ = false;   // The greeting's second byte has come.
  StreamFrameReader reader_{/*greeted=*/true};
  size_t queued_ = 0;  // Bytes of the streams that wait for their turn.
  // 0 if the stream was ended here; what still comes of it is dropped.
  absl::flat_hash_map<uint32_t, C10dConnections::Id> streams_;
};

// A client whose bytes come in a stream of its node's proxy.
class C10dCarriers::Stream final : public C10dConnection {
 public:
  Stream(Id its_id, const C10dServerOptions& options, size_t* unread, Carrier& carrier,
         uint32_t stream)
      : C10dConnection(its_id, options), replies_(unread), carrier_(carrier), stream_(stream) {}

  SendBuffer& replies() override { return replies_; }

  bool SendReplies() override {
    if (replies_.size() > 0 && !gone) carrier_.Put(stream_, replies_.text());
    replies_.Clear();
    return true;
  }

  // Other clients' bytes come on the same socket: only what waits for nobody may hold it up.
  void AwaitRequests(bool) override {
    Count(blocked(carrier_.max_unread_bytes()) ? 0 : unparsed.size());
  }
  void TellEnd() override {
    Count(0);
    carrier_.EndStream(stream_, gone);
  }
  std::string Source() const override {
    return absl::StrCat(carrier_.PeerName(), ", a proxy's for a worker");
  }

 private:
  void Count(size_t queued) {
    if (queued != queued_) carrier_.CountQueued(std::exchange(queued_, queued), queued);
  }

  SendBuffer replies_;  // Always sent as a whole.
  size_t queued_ = 0;   // As the carrier counts it.
  Carrier& carrier_;
  const uint32_t stream_;
};

void C10dCarriers::Carrier::OnBytes(absl::string_view bytes) {
  const absl::Status taken = TakeBytes(bytes);
  if (out().size() > 0) all_.to_send_.insert(id_);  // A handshake has something to send.
  if (taken.ok()) return;
  const std::string line =
      absl::StrCat("store: closed the connection from ", PeerName(), ": ", taken.message());
  SocketLoop& loop = all_.loop_;
  Send();  // Sends the alert of TLS, if there is one.
  all_.Close(*this);
  loop.Warn(line);
}

absl::Status C10dCarriers::Carrier::TakeBytes(absl::string_view bytes) {
  HLAUNCH_RETURN_IF_ERROR(TakeOpening(&bytes));
  if (bytes.empty()) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(Unseal(bytes, [this](absl::string_view plain) {
    return reader_.Take(
        plain, [this](uint32_t stream, absl::string_view piece) { TakePiece(stream, piece); });
  }));
  HLAUNCH_RETURN_IF_ERROR(vouches_);
  if (streams_.size() < kMostUnended) return absl::OkStatus();
  return absl::ResourceExhaustedError("it opens streams and does not end those that were refused");
}

// Takes the greeting's first byte off `bytes`. The second byte says what follows.
absl::Status C10dCarriers::Carrier::TakeOpening(absl::string_view* bytes) {
  if (!std::exchange(begun_, true)) bytes->remove_prefix(1);
  if (opened_ || bytes->empty()) return absl::OkStatus();
  opened_ = true;
  if (bytes->front() != kSealedSecond) {
    if (only_sealed_) {
      return absl::PermissionDeniedError("it carries connections and does not encrypt them");
    }
    return reader_.Take(kStreamsGreeting.substr(0, 1), [](uint32_t, absl::string_view) {});
  }
  if (sealing_key_.empty()) {
    return absl::FailedPreconditionError(
        "its job has a token or certificates, and there are none here");
  }
  reader_ = StreamFrameReader(/*greeted=*/false);
  return Seal(SealedStream::Side::kServer, sealing_key_);
}

// The carrier stays open, whatever becomes of the stream.
void C10dCarriers::Carrier::TakePiece(uint32_t stream, absl::string_view piece) {
  if (stream == kVouchStream) return TakeVouches(piece);
  if (piece.empty()) return CloseStream(stream);
  const auto it = streams_.find(stream);
  const C10dConnections::Id id = it != streams_.end() ? it->second : Open(stream);
  if (id != 0) all_.connections_.Take(*all_.connections_.Find(id), piece);
}

// Only who is sealed has proven to be of the round.
void C10dCarriers::Carrier::TakeVouches(absl::string_view piece) {
  if (!sealed()) {
    vouches_ = absl::PermissionDeniedError("it vouches for connections and does not encrypt");
  } else if (vouches_.ok()) {
    const SocketEnd seen = RemoteEndOf(fd());
    vouches_ = all_.vouching_.Take(id_, seen.address, seen.port, piece);
  }
}

C10dConnections::Id C10dCarriers::Carrier::Open(uint32_t stream) {
  if (streams_.size() >= kMaxStreams) {
    streams_.emplace(stream, 0);
    Put(stream, "");
    return 0;
  }
  C10dConnections& connections = all_.connections_;
  const C10dConnections::Id id = connections.NextId();
  streams_.emplace(stream, id);
  connections.Add(std::make_unique<Stream>(id, all_.options_, connections.unread(), *this, stream));
  return id;
}

// Called when the proxy says that the client has gone. What it has sent is executed in its turns.
void C10dCarriers::Carrier::CloseStream(uint32_t stream) {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  if (it->second != 0) return all_.connections_.CloseAfterTurns(it->second);
  streams_.erase(it);
}

void C10dCarriers::Carrier::EndStream(uint32_t stream, bool both) {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  it->second = 0;
  if (both) streams_.erase(it);
  Put(stream, "");
}

void C10dCarriers::Carrier::Put(uint32_t stream, absl::string_view bytes) {
  PutFrame(&frames().text(), stream, bytes);
  frames().Recount();
  all_.to_send_.insert(id_);
}

void C10dCarriers::Carrier::CountQueued(size_t before, size_t now) {
  queued_ += now - before;
  all_.to_send_.insert(id_);  // At the end of the turn it decides whether it reads.
}

void C10dCarriers::Carrier::CloseStreams() {
  for (const auto& [stream, id] : std::exchange(streams_, {})) all_.connections_.CloseAfterAll(id);
}

C10dCarriers::C10dCarriers(SocketLoop& loop, C10dConnections& connections, Vouching& vouching,
                           const C10dServerOptions& options)
    : loop_(loop), connections_(connections), vouching_(vouching), options_(options) {}

C10dCarriers::~C10dCarriers() = default;

void C10dCarriers::Add(UniqueFd fd, absl::string_view bytes, const std::string& sealing_key,
                       bool only_sealed) {
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceived, sizeof(kReceived));
  const Id id = ++last_id_;
  auto carrier = std::make_unique<Carrier>(*this, id, std::move(fd), sealing_key, only_sealed);
  if (const absl::Status joined = carrier->Join(loop_, /*reads=*/true); !joined.ok()) {
    return loop_.Warn(absl::StrCat("store: cannot serve a connection: ", joined.message()));
  }
  Carrier& added = *carriers_.emplace(id, std::move(carrier)).first->second;
  added.OnBytes(bytes);
}

void C10dCarriers::SendQuestions() {
  for (const auto& [agent, bytes] : vouching_.TakeQuestions()) {
    const auto it = carriers_.find(agent);
    if (it != carriers_.end()) it->second->Put(kVouchStream, bytes);
  }
}

// Closing a carrier may make a client of another carrier ready, so this loops until none is left.
void C10dCarriers::SendAll() {
  SendQuestions();
  while (!to_send_.empty()) {
    for (const Id id : std::exchange(to_send_, {})) {
      const auto it = carriers_.find(id);
      if (it == carriers_.end()) continue;
      Carrier& carrier = *it->second;
      if (carrier.SendFrames()) {
        carrier.AwaitFrames();
      } else {
        Close(carrier);
      }
    }
  }
}

void C10dCarriers::Close(Carrier& carrier) {
  auto node = carriers_.extract(carrier.id());
  vouching_.Left(carrier.id());
  carrier.CloseStreams();  // `node` keeps the carrier alive until the end of this function.
}

void C10dCarriers::Clear() {
  to_send_.clear();
  carriers_.clear();
}

}  // namespace hlaunch
