// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/etcd/etcd_client.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/socket/plain_trouble.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;

// For an attempt at one member. An election in etcd takes a second, and then the calls that wait
// for it are answered.
constexpr Duration kShortAttempt = milliseconds(500);
constexpr Duration kLongAttempt = std::chrono::seconds(2);
constexpr Duration kFirstPause = milliseconds(50);  // Between two attempts; doubles.
constexpr Duration kLastPause = milliseconds(500);
constexpr Duration kNamePatience = milliseconds(500);  // For the name lookup.

// gRPC takes deadlines on the wall clock.
std::chrono::system_clock::time_point OnTheWall(Instant deadline) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(
             std::max(Duration::zero(), deadline - MonotonicClock().Now()));
}

// Returns true if the token has expired, or if users or roles have changed since it was made.
bool WantsToken(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         absl::StrContains(status.error_message(), "revision of auth store is old") ||
         absl::StrContains(status.error_message(), "auth: revision in header is old");
}

// Returns true if another member, or the same one later, may succeed.
bool MayPass(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const EtcdCluster& cluster) {
  if (!cluster.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = cluster.authority;
  options.pem_private_key = cluster.key;
  options.pem_cert_chain = cluster.certificate;
  return grpc::SslCredentials(options);
}

// Connects to the `turn`th of the member's addresses, in a circle, since the member may listen at
// only one of them. Returns null while the member's name does not resolve.
std::shared_ptr<EtcdClient::Member> Connect(const EtcdCluster& cluster, const EtcdMember& member,
                                            size_t turn) {
  const auto found = Lookup::Start(member.host)->Await(MonotonicClock().Now() + kNamePatience);
  if (!found.has_value() || !found->ok() || (*found)->empty()) return nullptr;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetMaxReceiveMessageSize(-1);  // Many records come at once.
  if (cluster.tls) arguments.SetSslTargetNameOverride(member.host);
  const std::string& literal = (**found)[turn % (*found)->size()];
  const char* const scheme = literal.find(':') == literal.npos ? "ipv4:" : "ipv6:";
  const auto channel = grpc::CreateCustomChannel(
      absl::StrCat(scheme, HostPort(literal, member.port)), CredentialsFor(cluster), arguments);
  auto made = std::make_shared<EtcdClient::Member>();
  made->kv = etcdserverpb::KV::NewStub(channel);
  made->lease = etcdserverpb::Lease::NewStub(channel);
  made->auth = etcdserverpb::Auth::NewStub(channel);
  return made;
}

}  // namespace

std::string Words(const EtcdCluster& cluster) {
  return absl::StrCat("etcd at ", absl::StrJoin(cluster.members, ", ",
                                                [](std::string* out, const EtcdMember& member) {
                                                  *out += HostPort(member.host, member.port);
                                                }));
}

EtcdClient::EtcdClient(EtcdCluster cluster)
    : cluster_(std::move(cluster)),
      words_(Words(cluster_)),
      members_(cluster_.members.size()),
      turns_(members_.size()) {
  HLAUNCH_CHECK(!members_.empty());
}

absl::Status EtcdClient::Try(Instant deadline, const Call& call, int* unanswered) {
  CallTrouble trouble;
  bool again = true;  // One retry with a new token is left.
  Duration pause = kFirstPause;
  while (MonotonicClock().Now() < deadline) {
    size_t index = 0;
    const std::shared_ptr<Member> member = MemberNow(&index);
    if (member == nullptr) {
      trouble.Learn(absl::StrCat("cannot resolve '", cluster_.members[index].host, "'"),
                    /*late=*/false);
    } else {
      grpc::Status status = TryOnce(*member, EndOfAttempt(deadline), call);
      if (status.ok()) return absl::OkStatus();
      if (WantsToken(status) && std::exchange(again, false)) {
        status = Authenticate(*member, deadline);
        if (status.ok()) continue;
        if (!MayPass(status)) return absl::PermissionDeniedError(status.error_message());
        again = true;  // The next member may answer.
      }
      if (!MayPass(status)) return InWords(status);
      if (unanswered != nullptr) ++*unanswered;
      trouble.Learn(PlainTrouble(status.error_message()),
                    status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
    }
    PassOver(index);
    const Duration left = deadline - MonotonicClock().Now();
    std::this_thread::sleep_for(std::clamp(left, Duration::zero(), pause));
    pause = std::min(2 * pause, kLastPause);
  }
  return absl::UnavailableError(absl::StrCat(words_, ": ", trouble.Words()));
}

std::shared_ptr<EtcdClient::Member> EtcdClient::MemberNow(size_t* index) {
  size_t turn = 0;
  {
    MutexLock lock(&mu_);
    *index = current_;
    if (members_[current_] != nullptr) return members_[current_];
    turn = turns_[current_]++;
  }
  const std::shared_ptr<Member> made = Connect(cluster_, cluster_.members[*index], turn);
  MutexLock lock(&mu_);
  return members_[*index] = made;
}

// A member that hangs leaves time for the others.
Instant EtcdClient::EndOfAttempt(Instant deadline) const {
  const Instant now = MonotonicClock().Now();
  const Duration share = (deadline - now) / static_cast<int>(cluster_.members.size());
  return std::min(deadline, now + std::clamp(share, kShortAttempt, kLongAttempt));
}

// Goes on to the next member. The name of this one is looked up again the next time, since its host
// may have moved.
void EtcdClient::PassOver(size_t index) {
  MutexLock lock(&mu_);
  members_[index].reset();
  if (current_ == index) current_ = (index + 1) % members_.size();
}

grpc::Status EtcdClient::TryOnce(const Member& member, Instant deadline, const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(OnTheWall(deadline));
  context.AddMetadata("hasleader", "true");  // A member that has lost its cluster refuses it.
  if (!cluster_.user.empty()) {
    MutexLock lock(&mu_);
    if (token_.empty()) return {grpc::StatusCode::UNAUTHENTICATED, "no token yet"};
    context.AddMetadata("token", token_);
  }
  return call(member, &context);
}

grpc::Status EtcdClient::Authenticate(const Member& member, Instant deadline) {
  if (cluster_.user.empty()) {
    return {grpc::StatusCode::PERMISSION_DENIED,
            absl::StrCat(words_, " wants a user and a password (--state-user-file)")};
  }
  grpc::ClientContext context;
  context.set_deadline(OnTheWall(EndOfAttempt(deadline)));
  etcdserverpb::AuthenticateRequest request;
  request.set_name(cluster_.user);
  request.set_password(cluster_.password);
  etcdserverpb::AuthenticateResponse response;
  const grpc::Status status = member.auth->Authenticate(&context, request, &response);
  if (status.ok()) {
    MutexLock lock(&mu_);
    token_ = response.token();
    return status;
  }
  if (MayPass(status)) return status;
  return {
      grpc::StatusCode::PERMISSION_DENIED,
      absl::StrCat(words_, " does not let user ", cluster_.user, " in: ", status.error_message())};
}

absl::Status EtcdClient::InWords(const grpc::Status& status) const {
  const std::string text = absl::StrCat(words_, ": ", PlainTrouble(status.error_message()));
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return absl::ResourceExhaustedError(
        absl::StrCat(text,
                     "; is its alarm NOSPACE raised (etcdctl alarm list)? then compact, "
                     "defragment and disarm it"));
  }
  return {FromGrpcStatus(status).code(), text};
}

}  // namespace hlaunch
