// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/query/status_client.h"

#include <algorithm>
#include <utility>

#include "proto/base/status_macros.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/query/call_rendezvous.h"

namespace hlaunch {

absl::StatusOr<JobList> FetchStatus(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                                    Instant deadline) {
  v1::GetStatusRequest request;
  request.set_job_id(ToUtf8(job_id, kMaxNameBytes));
  v1::GetStatusResponse response;
  HLAUNCH_RETURN_IF_ERROR(
      CallRendezvous(endpoint, deadline, Duration::zero(), "status",
                     [&](v1::Rendezvous::Stub& stub, grpc::ClientContext* context) {
                       return stub.GetStatus(context, request, &response);
                     }));
  JobList list;
  list.leader = response.leader();
  list.total = std::max(response.total_jobs(), response.jobs_size());
  for (const v1::JobStatus& job : response.jobs()) {
    HLAUNCH_ASSIGN_OR_RETURN(JobStatus one, FromProto(job));
    list.jobs.push_back(std::move(one));
  }
  return list;
}

}  // namespace hlaunch
