// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/grpc/status_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/grpc/convert.h"
#include "rendezvous/grpc/grpc_transport.h"
#include "rendezvous/listening/route.h"

namespace hlaunch {
namespace {

bool IsAnswer(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
}

absl::Status Ask(const RendezvousEndpoint& endpoint, const std::string& address,
                 const v1::GetStatusRequest& request, Instant deadline,
                 v1::GetStatusResponse* response) {
  grpc::ClientContext context;
  // gRPC takes deadlines on the wall clock.
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(
                           deadline - MonotonicClock().Now()));
  const auto channel = MakeChannel(address, endpoint.port, endpoint.trust, endpoint.host);
  return StatusOfCall(v1::Rendezvous::NewStub(channel)->GetStatus(&context, request, response),
                      endpoint.trust);
}

}  // namespace

absl::StatusOr<JobList> FetchStatus(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                                    Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, ResolveHost(endpoint.host));
  const std::string where = HostPort(endpoint.host, endpoint.port);
  v1::GetStatusRequest request;
  request.set_job_id(ToUtf8(job_id, kMaxNameBytes));
  v1::GetStatusResponse response;
  absl::Status status;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Instant now = MonotonicClock().Now();
    const Duration share = (deadline - now) / static_cast<int>(addresses.size() - i);
    status = Ask(endpoint, addresses[i], request, now + share, &response);
    if (IsAnswer(status)) break;
  }
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat("what answers at ", where, " knows no status; is it hlaunch's rendezvous?"));
  }
  if (!IsAnswer(status)) {
    return absl::UnavailableError(
        absl::StrCat("no rendezvous answers at ", where, ": ", status.message()));
  }
  HLAUNCH_RETURN_IF_ERROR(status);
  JobList list;
  list.total = std::max(response.total_jobs(), response.jobs_size());
  for (const v1::JobStatus& job : response.jobs()) {
    HLAUNCH_ASSIGN_OR_RETURN(JobStatus one, FromProto(job));
    list.jobs.push_back(std::move(one));
  }
  return list;
}

}  // namespace hlaunch
