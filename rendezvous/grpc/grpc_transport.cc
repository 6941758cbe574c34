// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/grpc/grpc_transport.h"

#include <climits>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/stubs/logging.h"
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

namespace hlaunch {
namespace {

// How gRPC and OpenSSL put the answers of JudgeConnection: 401 by HTTP/1.1, the alerts
// access_denied and unrecognized_name; and what OpenSSL says of a certificate of another authority.
constexpr char kHttp1[] = "http1.x server";
constexpr char kUnauthenticated[] = "UNAUTHENTICATED";
constexpr char kAccessDenied[] = "access denied";
constexpr char kUnrecognizedName[] = "unrecognized name";
constexpr char kVerifyFailed[] = "certificate verify failed";
constexpr int kMaxRequestBytes = 256 << 10;     // The largest is 16 failures of 8 KiB.
constexpr int kMaxResponseBytes = 16 << 20;     // The status of a job with all its nodes.
constexpr size_t kMaxMemory = size_t{2} << 30;  // What all connections may take.
constexpr int kReconnectMillis = 1000;
constexpr int kHandshakeMillis = 10000;
constexpr int kIdleMillis = 10000;     // A connection without a call.
constexpr int kReadChunkBytes = 1024;  // A typical message is a tenth of it.

// What a library says is a debug line, and not many: strangers can cause it with every message.
void SayRarely(const std::string& line) {
  static Mutex mu;
  static RareLog lines;
  std::string admitted;
  {
    MutexLock lock(&mu);
    admitted = lines.Admit(line, MonotonicClock().Now());
  }
  if (!admitted.empty()) LogDebug(admitted);
}

// What gRPC and its libraries do in all of this process.
void TameLibraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Distributions build Abseil with its search for deadlocks, which every lock that gRPC takes
    // pays for, and the more so the more connections there are.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    ::gpr_set_log_function(
        [](gpr_log_func_args* args) { LogDebug(absl::StrCat("gRPC: ", args->message)); });
    google::protobuf::SetLogHandler(
        [](google::protobuf::LogLevel, const char*, int, const std::string& message) {
          SayRarely(absl::StrCat("protobuf: ", message));
        });
  });
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const Trust& trust) {
  if (trust.none()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({trust.authority(), trust.key(), trust.certificate()});
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(absl::string_view literal, uint16_t port,
                                           const Trust& trust) {
  TameLibraries();
  grpc::ChannelArguments args;
  if (!trust.none()) args.SetSslTargetNameOverride(trust.server_name());
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
  const std::string target =
      absl::StrCat(absl::StrContains(literal, ':') ? "ipv6:" : "ipv4:",
                   absl::StrReplaceAll(HostPort(literal, port), {{"%", "%25"}}));
  return grpc::CreateCustomChannel(target, MakeChannelCredentials(trust), args);
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Trust& trust) {
  if (trust.none()) return grpc::InsecureServerCredentials();
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

absl::Status StatusOfCall(const grpc::Status& status, const Trust& trust) {
  const std::string text = status.error_message();
  const char* difference = nullptr;
  if (IsAnswer(status)) {
    return FromGrpcStatus(status);
  } else if (absl::StrContains(text, kHttp1) && absl::StrContains(text, kUnauthenticated)) {
    difference = "this node has no token and the rendezvous demands one";
  } else if (absl::StrContains(text, kAccessDenied)) {
    difference = "this node has a token and the rendezvous has none";
  } else if (absl::StrContains(text, kUnrecognizedName) || absl::StrContains(text, kVerifyFailed)) {
    difference = "this node's token is not the rendezvous' token";
  } else {
    return FromGrpcStatus(status);
  }
  const std::string own =
      trust.none() ? "" : absl::StrCat(" (its fingerprint here: ", trust.fingerprint(), ")");
  return absl::PermissionDeniedError(absl::StrCat(
      difference, own,
      "; give all nodes the same with HLAUNCH_TOKEN or --token-file, or --token-file none"));
}

std::string PeerAddress(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:") && !absl::ConsumePrefix(&peer, "ipv6:")) return "";
  std::string address = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  if (const size_t colon = address.rfind(':'); colon != std::string::npos) address.resize(colon);
  if (address.size() > 1 && address.front() == '[') address = address.substr(1, address.size() - 2);
  return IsAddressLiteral(address) ? address : "";
}

}  // namespace hlaunch
