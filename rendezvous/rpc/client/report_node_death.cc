// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/report_node_death.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/address.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/socket/plain_trouble.h"
#include "rendezvous/rpc/client/attach_call.h"
#include "rendezvous/rpc/client/call_events.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/grpc_transport.h"

namespace hlaunch {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(50);  // Between two targets.
constexpr Duration kTargetTime = std::chrono::seconds(1);   // Of several, each gets this long.

// One address where a rendezvous may be.
struct Target {
  std::string address;
  uint16_t port = 0;
  std::string host;
};

// Returns all targets. A place without an address is left out as long as another place has one.
//
// Errors: as ReportNodeDeath.
absl::StatusOr<std::vector<Target>> TargetsOf(const RendezvousEndpoint& endpoint,
                                              Instant deadline) {
  std::vector<std::pair<std::string, uint16_t>> places = endpoint.others;
  places.insert(places.begin(), {endpoint.host, endpoint.port});
  std::vector<Target> targets;
  absl::Status trouble;
  for (const auto& [host, port] : places) {
    const auto found = Lookup::Start(host)->Await(
        places.size() == 1 ? deadline : std::min(deadline, MonotonicClock().Now() + kTargetTime));
    if (!found.has_value()) {
      trouble = absl::DeadlineExceededError(absl::StrCat("cannot resolve '", host, "' in time"));
    } else if (!found->ok()) {
      trouble = found->status();
    } else {
      for (const std::string& address : **found) targets.push_back({address, port, host});
    }
  }
  if (targets.empty()) return trouble;
  return targets;
}

}  // namespace

absl::Status ReportNodeDeath(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                             absl::string_view node_id, Incarnation incarnation,
                             absl::string_view reason, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<Target> targets, TargetsOf(endpoint, deadline));
  v1::ReportNodeDeathRequest request;
  request.set_job_id(ToUtf8(job_id, kMaxTextBytes));
  request.set_node_id(ToUtf8(node_id, kMaxTextBytes));
  request.set_incarnation(incarnation);
  request.set_reason(ToUtf8(reason, kMaxTextBytes));
  CallTrouble trouble;
  for (size_t i = 0; MonotonicClock().Now() < deadline; i = (i + 1) % targets.size()) {
    const Duration left = deadline - MonotonicClock().Now();
    const Line line(targets[i].address, targets[i].port, endpoint.trust, targets[i].host);
    grpc::ClientContext context;
    context.set_deadline(FromNow(targets.size() == 1 ? left : std::min(left, kTargetTime)));
    v1::ReportNodeDeathResponse response;
    const grpc::Status status =
        v1::Rendezvous::NewStub(line.channel())->ReportNodeDeath(&context, request, &response);
    const absl::Status told = line.StatusOfCall(status);
    if (told.ok() || IsRefusal(told.code())) return told;
    trouble.Learn(line.TroubleOf(status), absl::IsDeadlineExceeded(told));
    std::this_thread::sleep_for(std::min(kPause, left));
  }
  return absl::UnavailableError(absl::StrCat(
      "rendezvous at ", HostPort(endpoint.host, endpoint.port), " not reached: ", trouble.Words()));
}

}  // namespace hlaunch
