// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/rpc/rendezvous_endpoint.h"

namespace hlaunch {

// Reports to the rendezvous that this incarnation's agent is dead and that none of its workers
// lives.
//
// Errors:
//   InvalidArgument - the endpoint's name cannot be a valid name.
//   PermissionDenied - the rendezvous has another token.
//   Aborted - that incarnation is not a member any more.
//   Unavailable, DeadlineExceeded - the rendezvous was not reached before `deadline`.
absl::Status ReportNodeDeath(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                             absl::string_view node_id, Incarnation incarnation,
                             absl::string_view reason, Instant deadline);

}  // namespace hlaunch
