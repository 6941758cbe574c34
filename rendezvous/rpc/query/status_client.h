// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"

namespace hlaunch {

// Asks the rendezvous at `endpoint` where its jobs stand: one job with its nodes, or, if `job_id`
// is empty, all jobs without their nodes. Blocks until `deadline`, and as long as the resolver
// does.
//
// Errors:
//   InvalidArgument - the endpoint's name or the token cannot be right.
//   NotFound - there is no such job.
//   PermissionDenied - the token was refused.
//   FailedPrecondition - the server there is no rendezvous of this version of hlaunch.
//   Unavailable - no server answers there, or the name does not resolve.
absl::StatusOr<JobList> FetchStatus(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                                    Instant deadline);

}  // namespace hlaunch
