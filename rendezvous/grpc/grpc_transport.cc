// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/grpc/grpc_transport.h"

#include <algorithm>
#include <climits>
#include <mutex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "grpc/support/log.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/base/address.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

constexpr char kTokenMetadata[] = "hlaunch-token";
constexpr size_t kMaxTokenBytes = 1024;
constexpr int kMaxRequestBytes = 256 << 10;     // The largest is 16 failures of 8 KiB.
constexpr int kMaxResponseBytes = 16 << 20;     // The status of a job with all its nodes.
constexpr size_t kMaxMemory = size_t{2} << 30;  // What all connections may take.
constexpr int kReconnectMillis = 1000;
constexpr int kHandshakeMillis = 10000;
constexpr int kIdleMillis = 10000;     // A connection without a call.
constexpr int kReadChunkBytes = 1024;  // A typical message is a tenth of it.

// What gRPC and its libraries do in all of this process.
void TameLibraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Distributions build Abseil with its search for deadlocks, which every lock that gRPC takes
    // pays for, and the more so the more connections there are.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    ::gpr_set_log_function(
        [](gpr_log_func_args* args) { LogDebug(absl::StrCat("gRPC: ", args->message)); });
  });
}

bool EqualInConstantTime(absl::string_view a, absl::string_view b) {
  volatile unsigned char difference = a.size() != b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    const unsigned char other = i < a.size() ? a[i] : 0;
    difference = difference | (other ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(absl::string_view literal, uint16_t port) {
  TameLibraries();
  grpc::ChannelArguments args;
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
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), args);
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials() {
  return grpc::InsecureServerCredentials();
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

absl::Status CheckToken(absl::string_view token) {
  const bool printable = std::all_of(token.begin(), token.end(), absl::ascii_isgraph);
  if (token.size() <= kMaxTokenBytes && printable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the job's token must be at most ", kMaxTokenBytes,
                   " printable ASCII characters without blanks (HLAUNCH_TOKEN, --token-file)"));
}

void AddToken(absl::string_view token, grpc::ClientContext* context) {
  if (!token.empty()) context->AddMetadata(kTokenMetadata, std::string(token));
}

absl::Status CheckCallToken(absl::string_view token, const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kTokenMetadata);
  const absl::string_view given =
      found == metadata.end() ? absl::string_view()
                              : absl::string_view(found->second.data(), found->second.size());
  if (EqualInConstantTime(given, token)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(given.empty()   ? "this node sent no token and the rendezvous demands one"
                   : token.empty() ? "this node sent a token and the rendezvous has none"
                                   : "this node's token is not the rendezvous' token",
                   "; give all nodes the same with HLAUNCH_TOKEN or --token-file"));
}

std::string PeerAddress(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:") && !absl::ConsumePrefix(&peer, "ipv6:")) return "";
  std::string address = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  if (const size_t colon = address.rfind(':'); colon != std::string::npos) address.resize(colon);
  if (address.size() > 1 && address.front() == '[') address = address.substr(1, address.size() - 2);
  return IsAddressLiteral(address) ? address : "";
}

}  // namespace hlaunch
