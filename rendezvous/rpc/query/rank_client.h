// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/job/question.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"

namespace hlaunch {

// Asks the rendezvous at `endpoint` what the ranks of a job do. Addresses that cannot be reached
// share 10 s, or take 3 s each if they are many; each that is reached has the question's patience
// and 10 s to answer. Blocks as long as the resolver does, too. The answer is not trusted.
//
// Errors:
//   InvalidArgument - the endpoint's name or the token cannot be right.
//   NotFound - there is no such job.
//   PermissionDenied - the token was refused, or stacks are not for this caller.
//   ResourceExhausted - too many callers ask about this job.
//   FailedPrecondition - the server there is no rendezvous of this version of hlaunch.
//   Unavailable - no server answers there, or the name does not resolve.
absl::StatusOr<JobAnswer> AskRanks(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                                   const RankQuestion& question);

}  // namespace hlaunch
