// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/grpc_transport.h"

#include <climits>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/log.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/rare_log.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/net/socket/plain_trouble.h"
#include "rendezvous/net/trust/job_token.h"
#include "rendezvous/round/values/limits.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/file_credentials.h"

namespace hlaunch {
namespace {

// The words of gRPC and OpenSSL for the answers of JudgeConnection: 401 by HTTP/1.1, and the alerts
// access_denied and unrecognized_name; and for a certificate of another authority.
constexpr char kHttp1[] = "http1.x server";
constexpr char kUnauthenticated[] = "UNAUTHENTICATED";
constexpr char kAccessDenied[] = "access denied";
constexpr char kUnrecognizedName[] = "unrecognized name";
constexpr char kVerifyFailed[] = "certificate verify failed";
// The words of gRPC if the server's certificate names another host.
constexpr char kOtherPeer[] = "is not in peer certificate";
// The words of gRPC if the other end has closed the connection.
constexpr char kClosed[] = "Socket closed";
constexpr char kNoCertificate[] = "peer did not return a certificate";
// The words of gRPC for a handshake that this end breaks off.
constexpr char kHandshakeFailed[] = "Handshake failed with fatal error";
// The job of a peer that is not known to have greeted: no job has this id.
constexpr char kNoJob[] = " ";
constexpr int kMaxRequestBytes = 256 << 10;     // The largest is 16 failures of 8 KiB.
constexpr int kMaxResponseBytes = 16 << 20;     // The status of a job with all its nodes.
constexpr size_t kMaxMemory = size_t{2} << 30;  // The most for all connections together.
constexpr int kReconnectMillis = 1000;
constexpr int kHandshakeMillis = 10000;
constexpr int kIdleMillis = 10000;     // A connection is closed after this time without a call.
constexpr int kReadChunkBytes = 1024;  // A typical message is a tenth of it.

// Logs few of these lines, since strangers can cause one with every message.
void SayRarely(const std::string& line, LogLevel level) {
  static Mutex mu;
  static RareLog lines;
  std::string admitted;
  {
    MutexLock lock(&mu);
    admitted = lines.Admit(line, MonotonicClock().Now());
  }
  if (!admitted.empty()) Log(level, admitted);
}

// gRPC says only in its log why it broke off a handshake.
void SayWhyRefused(absl::string_view message) {
  if (!absl::StrContains(message, kHandshakeFailed)) return;
  if (absl::StrContains(message, kNoCertificate)) {
    SayRarely("refused a TLS connection: it showed no certificate", LogLevel::kWarning);
  } else if (absl::StrContains(message, kVerifyFailed)) {
    SayRarely(
        "refused a TLS connection: its certificate is not from an authority that is believed "
        "here, or it is out of date",
        LogLevel::kWarning);
  }
}

// Sets how gRPC and its libraries behave in the whole process.
void TameLibraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Distributions build Abseil with its search for deadlocks. It makes every lock of gRPC slower,
    // the more so the more connections there are.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    ::gpr_set_log_function([](gpr_log_func_args* args) {
      SayWhyRefused(args->message);
      LogDebug(absl::StrCat("gRPC: ", args->message));
    });
    google::protobuf::SetLogHandler(
        [](google::protobuf::LogLevel, const char*, int, const std::string& message) {
          SayRarely(absl::StrCat("protobuf: ", message), LogLevel::kDebug);
        });
  });
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const Trust& trust) {
  if (trust.none() || trust.in_clear()) return grpc::InsecureChannelCredentials();
  const Trust now = trust.Renewed();
  return grpc::SslCredentials({now.authority(), now.key(), now.certificate()});
}

std::string DifferenceOfCertificates(const std::string& text, const CertificateFiles& files) {
  if (absl::StrContains(text, kAccessDenied)) {
    return "this node has certificates and the rendezvous has none; give all nodes --tls-cert, "
           "--tls-key and --tls-ca, or none of them";
  }
  if (absl::StrContains(text, kUnrecognizedName)) {
    return "this node has certificates and the rendezvous demands a token; give all nodes the same";
  }
  if (absl::StrContains(text, kVerifyFailed)) {
    return absl::StrCat("the rendezvous' certificate is not from an authority in --tls-ca ",
                        files.authority, ", or it is out of date");
  }
  if (absl::StrContains(text, kOtherPeer)) {
    return absl::StrCat(
        "the rendezvous' certificate does not name the host that this node asked "
        "for (",
        text, "); name it as its certificate does");
  }
  return "";
}

// Returns what it means for a call with `trust` that it got no answer.
absl::Status StatusOfLostCall(const grpc::Status& status, const Trust& trust) {
  const std::string text = status.error_message();
  if (!trust.none() && !trust.files().none()) {
    const std::string difference = DifferenceOfCertificates(text, trust.files());
    return difference.empty() ? FromGrpcStatus(status) : absl::PermissionDeniedError(difference);
  }
  if (!absl::StrContains(text, kHttp1) || !absl::StrContains(text, kUnauthenticated)) {
    return FromGrpcStatus(status);
  }
  return absl::PermissionDeniedError(
      "this node has no token and the rendezvous demands one, or certificates; give all nodes the "
      "same with HLAUNCH_TOKEN or --token-file, or --token-file none");
}

grpc::ChannelArguments ArgumentsOf(const Trust& trust, const std::string& host) {
  grpc::ChannelArguments args;
  if (!trust.none() && !trust.in_clear()) {
    args.SetSslTargetNameOverride(trust.files().none() ? trust.server_name() : host);
  }
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMillis);
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kReconnectMillis);
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  args.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  args.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunkBytes);
  args.SetMaxReceiveMessageSize(kMaxResponseBytes);
  args.SetMaxSendMessageSize(kMaxRequestBytes);
  return args;
}

std::string TargetOf(absl::string_view literal, uint16_t port) {
  return absl::StrCat(absl::StrContains(literal, ':') ? "ipv6:" : "ipv4:",
                      absl::StrReplaceAll(HostPort(literal, port), {{"%", "%25"}}));
}

// A channel, and what must live as long as it does.
struct Carried {
  std::shared_ptr<GreetingRelay> relay;
  std::shared_ptr<grpc::Channel> channel;
};

// Returns the only job of the peer; unset if it may use all jobs.
std::optional<std::string> JobOfPeer(const grpc::ServerContextBase& context,
                                     const PeerJobs* peers) {
  if (peers != nullptr) {
    const std::string peer = context.peer();
    const std::string job = peers->JobOf(PeerAddress(peer), PeerPortOf(peer)).value_or(kNoJob);
    return job.empty() ? std::nullopt : std::make_optional(job);
  }
  const auto facts = context.auth_context();
  if (facts == nullptr) return std::nullopt;
  for (const grpc::string_ref& uri : facts->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    if (auto job = JobOfUri({uri.data(), uri.size()})) return job;
  }
  return std::nullopt;
}

}  // namespace

Line::Line(absl::string_view literal, uint16_t port, const Trust& trust, const std::string& host)
    : trust_(trust) {
  TameLibraries();
  std::string target = TargetOf(literal, port);
  if (trust.greets()) {
    auto started = GreetingRelay::Start(trust, std::string(literal), port);
    unable_ = started.status();
    if (started.ok()) relay_ = std::move(started).value();
    target = absl::StrCat("unix-abstract:", relay_ == nullptr ? "" : relay_->name());
  }
  const std::string named = host.empty() ? std::string(literal) : host;
  auto carried = std::make_shared<Carried>(Carried{
      relay_,
      grpc::CreateCustomChannel(target, MakeChannelCredentials(trust), ArgumentsOf(trust, named))});
  channel_ = std::shared_ptr<grpc::Channel>(carried, carried->channel.get());
}

absl::Status Line::TroubleOfRelay() const {
  return relay_ == nullptr ? unable_ : relay_->trouble();
}

absl::Status Line::StatusOfCall(const grpc::Status& status) const {
  if (status.ok() || IsAnswer(status)) return FromGrpcStatus(status);
  const absl::Status trouble = TroubleOfRelay();
  return trouble.ok() ? StatusOfLostCall(status, trust_) : trouble;
}

std::string Line::TroubleOf(const grpc::Status& status) const {
  if (const absl::Status trouble = TroubleOfRelay(); !trouble.ok()) {
    return std::string(trouble.message());
  }
  const std::string raw = status.error_message();
  const std::string text =
      raw.empty() ? absl::StatusCodeToString(FromGrpcStatus(status).code()) : PlainTrouble(raw);
  if (trust_.none() || trust_.files().none() || !absl::StrContains(raw, kClosed)) return text;
  // In TLS 1.3 a server checks a client's certificate after the client's part is done.
  return absl::StrCat(text, "; it may not believe the certificate in --tls-cert ",
                      trust_.files().certificate);
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Trust& trust) {
  if (trust.none() || trust.in_clear()) return grpc::InsecureServerCredentials();
  if (!trust.files().none()) return std::make_shared<FileCredentials>(trust);
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = trust.authority();
  options.pem_key_cert_pairs.push_back({trust.key(), trust.certificate()});
  return grpc::SslServerCredentials(options);
}

void PrepareServer(grpc::ServerBuilder* builder) {
  TameLibraries();
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder->AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunkBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMillis);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 16);  // On one connection.
  builder->SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder->SetMaxSendMessageSize(kMaxResponseBytes);
  builder->SetResourceQuota(grpc::ResourceQuota("hlaunch").Resize(kMaxMemory));
}

std::string PeerAddress(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:") && !absl::ConsumePrefix(&peer, "ipv6:")) return "";
  std::string address = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  if (const size_t colon = address.rfind(':'); colon != std::string::npos) address.resize(colon);
  if (address.size() > 1 && address.front() == '[') address = address.substr(1, address.size() - 2);
  return IsAddressLiteral(address) ? address : "";
}

uint16_t PeerPortOf(absl::string_view peer) {
  int port = 0;
  const size_t colon = peer.rfind(':');
  const bool read = colon != peer.npos && absl::SimpleAtoi(peer.substr(colon + 1), &port) &&
                    port >= 0 && port <= UINT16_MAX;
  return read ? static_cast<uint16_t>(port) : 0;
}

bool PeerMayUseJob(const grpc::ServerContextBase& context, const PeerJobs* peers,
                   absl::string_view job_id) {
  const std::optional<std::string> own = JobOfPeer(context, peers);
  return !own || *own == job_id;
}

absl::Status CheckPeerMayUseJob(const grpc::ServerContextBase& context, const PeerJobs* peers,
                                absl::string_view job_id) {
  const std::optional<std::string> own = JobOfPeer(context, peers);
  if (!own || *own == job_id) return absl::OkStatus();
  const std::string asked = ToUtf8(job_id, kMaxNameBytes);
  const std::string may = ToUtf8(*own, kMaxNameBytes);
  SayRarely(absl::StrCat("refused ", PeerAddress(context.peer()), ": its token is for job '", may,
                         "' alone, and it asked for job '", asked, "'"),
            LogLevel::kWarning);
  return absl::PermissionDeniedError(
      absl::StrCat("this node's token is for job '", may, "' alone, not for job '", asked,
                   "'; its own is made by: hlaunch token --for-job ID"));
}

}  // namespace hlaunch
