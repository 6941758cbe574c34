// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/clock.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"

namespace hlaunch {

using RendezvousCall = std::function<grpc::Status(v1::Rendezvous::Stub&, grpc::ClientContext*)>;

// Makes one call of the rendezvous at `endpoint`. Tries its addresses one after the other until one
// answers. They share the time until `deadline`. But each that takes a connection has at least
// `least` to answer, and for the connection each has at least 3 s, or `least` if that is less; the
// resolver may take longer. `knows` is what a rendezvous of this version knows: "status".
//
// Errors:
//   InvalidArgument - the endpoint's name or the token cannot be right.
//   PermissionDenied - the token was refused.
//   FailedPrecondition - the server there does not know the call.
//   Unavailable - no server answers there, or the name does not resolve.
//   any other - as of the call.
absl::Status CallRendezvous(const RendezvousEndpoint& endpoint, Instant deadline, Duration least,
                            absl::string_view knows, const RendezvousCall& call);

}  // namespace hlaunch
