// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"

// The one place where gRPC channels and servers are made, so that all of them have the same
// credentials, limits and keepalive. gRPC's own log goes to hlaunch's, as debug lines.

namespace hlaunch {

// A channel to one address: no name lookup, no proxy, no connection shared with another
// channel. Connects with the first call.
std::shared_ptr<grpc::Channel> MakeChannel(absl::string_view literal, uint16_t port);

// What the servers' connections are protected with.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials();

// Sets limits and keepalive.
void PrepareServer(grpc::ServerBuilder* builder);

// Whether `token` can travel as metadata; empty means none and is fine.
//
// Errors:
//   InvalidArgument - too long, or not printable ASCII.
absl::Status CheckToken(absl::string_view token);

// Sends the job's token along with a call. Plain metadata: gRPC does not send call credentials
// over a channel without TLS.
void AddToken(absl::string_view token, grpc::ClientContext* context);

// Compares a call's token with the job's, in a time that does not tell how much of it is right.
//
// Errors:
//   PermissionDenied - they differ; the message says which side has one and how to give it.
absl::Status CheckCallToken(absl::string_view token, const grpc::ServerContextBase& context);

// The literal in ServerContext::peer(), such as "ipv6:%5B::1%5D:52082"; empty if it has none.
std::string PeerAddress(absl::string_view peer);

}  // namespace hlaunch
