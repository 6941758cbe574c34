// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/cluster_wire/cluster_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/address.h"
#include "proto/base/now.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/cluster_wire/tls_context.h"
#include "rendezvous/net/cluster_wire/wire_connection.h"
#include "rendezvous/net/cluster_wire/wire_limits.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/lookup.h"

namespace hlaunch {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(50);

int ErrorOf(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

//            due              an address         connected           the head's first word
//   kWaiting ---> kLooking ---------> kConnecting -------> kProving ---------------------> kUp
//      ^                               |      ^ the next one  |                             |
//      +--- none is left, it broke, its time is over ---------+-----------------------------+
class ClusterLink::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::io_context& loop, std::string host, uint16_t port, HostIdentity identity,
        Events events)
      : loop_(loop),
        host_(std::move(host)),
        port_(port),
        identity_(std::move(identity)),
        events_(std::move(events)),
        timer_(loop),
        random_(std::random_device{}()) {}

  void Start() { Await(Now()); }
  void Close();
  void Send(const Envelope& envelope) {
    if (phase_ == Phase::kUp) wire_->Send(envelope);
  }
  void Ask(Envelope question, Done done);
  void Renew(HostIdentity identity) { identity_ = std::move(identity); }
  bool connected() const { return phase_ == Phase::kUp; }

 private:
  enum class Phase { kWaiting, kLooking, kConnecting, kProving, kUp };

  void Await(Instant due);
  void OnTimer();
  void Look();
  void OnLook();
  void ConnectNext(absl::Status why);
  void OnWritable(const std::shared_ptr<asio::posix::stream_descriptor>& socket,
                  const std::string& address);
  void Prove(UniqueFd fd);
  void Ended(const absl::Status& why);
  void Heard();
  void OnPing();
  void Said(Envelope envelope);
  void Fail(const absl::Status& why);
  void Later(Done done, absl::StatusOr<nlohmann::json> answer);
  absl::Status NotUp(absl::string_view why) const {
    return absl::UnavailableError(absl::StrCat("the head at ", HostPort(host_, port_), ": ", why));
  }

  asio::io_context& loop_;
  const std::string host_;
  const uint16_t port_;
  HostIdentity identity_;
  Events events_;
  asio::steady_timer timer_;
  std::minstd_rand random_;
  bool closed_ = false;
  Phase phase_ = Phase::kWaiting;
  Instant due_;   // When the timer should fire.
  Instant over_;  // When a lookup has lasted too long.
  Instant up_since_;
  Duration retry_ = kFirstRetry;        // The longest pause before the next attempt.
  std::shared_ptr<Lookup> lookup_;      // While looking.
  std::vector<std::string> addresses_;  // Still to be tried, from back to front.
  std::shared_ptr<asio::posix::stream_descriptor> socket_;  // While connecting.
  std::shared_ptr<WireConnection> wire_;                    // While proving and up.
  uint64_t last_id_ = 0;
  std::map<uint64_t, Done> asked_;
};

void ClusterLink::State::Close() {
  closed_ = true;
  timer_.cancel();
  if (socket_ != nullptr) socket_->cancel();
  if (wire_ != nullptr) wire_->Drop();
  // Destroys the callbacks later, since one of them may be the caller.
  asio::post(loop_, [events = std::exchange(events_, {}), asked = std::exchange(asked_, {})] {});
}

void ClusterLink::State::Await(Instant due) {
  due_ = due;
  timer_.expires_at(due);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && !self->closed_) self->OnTimer();
  });
}

void ClusterLink::State::OnTimer() {
  switch (phase_) {
    case Phase::kWaiting:
      return Look();
    case Phase::kLooking:
      return OnLook();
    case Phase::kConnecting:
      return ConnectNext(NotUp("it does not answer"));
    case Phase::kProving:
      return Fail(NotUp("it takes the connection and does not answer"));
    case Phase::kUp:
      return OnPing();
  }
}

void ClusterLink::State::Look() {
  phase_ = Phase::kLooking;
  over_ = Now() + kLookupPatience;
  lookup_ = Lookup::Start(host_);
  OnLook();
}

void ClusterLink::State::OnLook() {
  const std::optional<Lookup::Result> result = lookup_->result();
  if (!result.has_value()) {
    if (Now() < over_) return Await(Now() + kLookEvery);
    return Fail(NotUp("its name is still being looked up"));
  }
  if (!result->ok()) return Fail(NotUp(result->status().message()));
  addresses_ = **result;
  std::reverse(addresses_.begin(), addresses_.end());
  ConnectNext(NotUp("its name has no address"));
}

// Connects to the next address. `why` says why the one before failed.
void ClusterLink::State::ConnectNext(absl::Status why) {
  if (socket_ != nullptr) std::exchange(socket_, nullptr)->close();
  phase_ = Phase::kConnecting;
  while (!addresses_.empty()) {
    const std::string address = std::move(addresses_.back());
    addresses_.pop_back();
    int error = 0;
    UniqueFd fd = BeginToConnect(address, port_, &error);
    if (!fd.valid()) {
      why = NotUp(std::strerror(error));
      continue;
    }
    socket_ = std::make_shared<asio::posix::stream_descriptor>(loop_, fd.Release());
    socket_->async_wait(
        asio::posix::stream_descriptor::wait_write,
        [self = shared_from_this(), socket = socket_, address](const asio::error_code& waited) {
          if (!waited && !self->closed_) self->OnWritable(socket, address);
        });
    return Await(Now() + kConnectPatience);
  }
  Fail(why);
}

void ClusterLink::State::OnWritable(const std::shared_ptr<asio::posix::stream_descriptor>& socket,
                                    const std::string& address) {
  if (socket != socket_) return;  // This attempt has timed out already.
  const int error = ErrorOf(socket->native_handle());
  if (error != 0) return ConnectNext(NotUp(absl::StrCat(address, ": ", std::strerror(error))));
  UniqueFd fd(socket->release());
  socket_ = nullptr;
  Prove(std::move(fd));
}

void ClusterLink::State::Prove(UniqueFd fd) {
  phase_ = Phase::kProving;
  const absl::StatusOr<TlsContext> tls = TlsOfHost(identity_);
  if (!tls.ok()) return Fail(tls.status());
  const auto wire = WireConnection::Of(loop_, std::move(fd), *tls);
  if (!wire.ok()) return Fail(NotUp(wire.status().message()));
  wire_ = *wire;
  WireConnection::Events events;  // Not called after Close and Fail, which drop the connection.
  events.shaken = [] {};          // The head may still refuse us.
  events.pinged = [this] { Heard(); };
  events.said = [this](Envelope envelope) { Said(std::move(envelope)); };
  events.ended = [this](const absl::Status& why) { Ended(why); };
  wire_->Begin(/*is_server=*/false, kMaxClusterFrame, std::move(events));
  Await(Now() + kHandshakePatience);
}

void ClusterLink::State::Ended(const absl::Status& why) {
  const bool is_mute = phase_ == Phase::kProving && absl::IsUnavailable(why);
  const absl::string_view more = is_mute ? " without a word; its log says why" : "";
  Fail(absl::Status(why.code(), NotUp(absl::StrCat(why.message(), more)).message()));
}

void ClusterLink::State::Heard() {
  if (phase_ != Phase::kProving) return;
  phase_ = Phase::kUp;
  up_since_ = Now();
  Await(Now() + kPingEvery);
  events_.up();
}

// If this process stood still, it has not yet read what came meanwhile, so the head's silence does
// not count.
void ClusterLink::State::OnPing() {
  const Instant now = Now();
  const bool stood_still = now - due_ > kOwnPause;
  if (!stood_still && now - wire_->heard() > kSilence) return Fail(NotUp("it is silent"));
  wire_->Send(NewsOf(kPing, nlohmann::json::object()));
  Await(now + kPingEvery);
}

void ClusterLink::State::Said(Envelope envelope) {
  Heard();
  if (closed_ || phase_ != Phase::kUp) return;
  if (!envelope.is_answer()) return events_.said(std::move(envelope));
  const auto asked = asked_.extract(envelope.id);
  if (asked.empty()) return;
  if (!envelope.error.ok()) return asked.mapped()(envelope.error);
  asked.mapped()(std::move(envelope.body));
}

void ClusterLink::State::Ask(Envelope question, Done done) {
  if (phase_ != Phase::kUp) return Later(std::move(done), NotUp("there is no connection to it"));
  question.id = ++last_id_;
  if (!FrameFor(question).has_value()) {
    return Later(std::move(done), absl::ResourceExhaustedError("the question is too long"));
  }
  asked_[question.id] = std::move(done);
  wire_->Send(question);
}

void ClusterLink::State::Later(Done done, absl::StatusOr<nlohmann::json> answer) {
  asio::post(loop_, [self = shared_from_this(), done = std::move(done),
                     answer = std::move(answer)]() mutable {
    if (!self->closed_) done(std::move(answer));
  });
}

void ClusterLink::State::Fail(const absl::Status& why) {
  if (socket_ != nullptr) std::exchange(socket_, nullptr)->close();
  if (wire_ != nullptr) std::exchange(wire_, nullptr)->Drop();
  // Only a connection that lasted at least as long as the longest pause resets the pause.
  if (phase_ == Phase::kUp && Now() - up_since_ >= kLastRetry) retry_ = kFirstRetry;
  phase_ = Phase::kWaiting;
  std::uniform_real_distribution<double> part(0.5, 1);
  Await(Now() + std::chrono::duration_cast<Duration>(retry_ * part(random_)));
  retry_ = std::min(2 * retry_, kLastRetry);
  for (auto& [id, done] : std::exchange(asked_, {})) {
    Later(std::move(done), NotUp("the connection was lost before its answer came"));
  }
  events_.down(why);
}

ClusterLink::ClusterLink(asio::io_context& loop, std::string host, uint16_t port,
                         HostIdentity identity, Events events)
    : state_(std::make_shared<State>(loop, std::move(host), port, std::move(identity),
                                     std::move(events))) {
  state_->Start();
}

ClusterLink::~ClusterLink() { state_->Close(); }

void ClusterLink::Send(const Envelope& envelope) { state_->Send(envelope); }

void ClusterLink::Ask(std::string verb, nlohmann::json body, std::optional<ClusterUser> user,
                      Done done) {
  Envelope question = Question(0, verb, std::move(body));
  question.user = std::move(user);
  state_->Ask(std::move(question), std::move(done));
}

void ClusterLink::Renew(HostIdentity identity) { state_->Renew(std::move(identity)); }

bool ClusterLink::connected() const { return state_->connected(); }

}  // namespace hlaunch
