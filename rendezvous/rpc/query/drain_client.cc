// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/query/drain_client.h"

#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/query/call_rendezvous.h"

namespace hlaunch {
namespace {

constexpr Duration kLimit = std::chrono::seconds(10);

}  // namespace

absl::StatusOr<std::string> AskToDrain(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                                       const DrainRequest& request) {
  v1::DrainNodeRequest message = ToProto(request);
  message.set_job_id(ToUtf8(job_id, kMaxNameBytes));
  v1::DrainNodeResponse response;
  HLAUNCH_RETURN_IF_ERROR(
      CallRendezvous(endpoint, MonotonicClock().Now() + kLimit, kLimit, "draining",
                     [&](v1::Rendezvous::Stub& stub, grpc::ClientContext* context) {
                       return stub.DrainNode(context, message, &response);
                     }));
  return response.explanation();
}

}  // namespace hlaunch
