// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/round/values/drained_node.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"

namespace hlaunch {

// Asks the rendezvous at `endpoint` to use a node of a job no longer, or again. Returns an
// explanation of what follows; the text is not trusted. Addresses that cannot be reached share
// 10 s, or take 3 s each if they are many; each that is reached has 10 s to answer. Blocks as long
// as the resolver does, too.
//
// Errors:
//   InvalidArgument - the endpoint's name, the token or the request cannot be right.
//   NotFound - there is no such job, or no such node in it.
//   PermissionDenied - the token was refused, or this caller may not do so.
//   FailedPrecondition - the job is over, or cannot do without the node; or the server is no
//     rendezvous of this version of hlaunch.
//   Unavailable - no server answers there, or the name does not resolve.
absl::StatusOr<std::string> AskToDrain(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                                       const DrainRequest& request);

}  // namespace hlaunch
