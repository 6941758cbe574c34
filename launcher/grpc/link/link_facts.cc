// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/link_facts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/address.h"
#include "rendezvous/failover/voters/job_voter.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {

std::string AllEndpoints(const JobSpec& spec) {
  if (spec.other_endpoints.empty()) return spec.endpoint.host;
  std::string all = HostPort(spec.endpoint);
  for (const Endpoint& other : spec.other_endpoints) absl::StrAppend(&all, ",", HostPort(other));
  return all;
}

bool KeepsRecordAmongAgents(const JobSpec& spec) {
  return HasVoters(spec.policy) && spec.other_endpoints.empty() &&
         (spec.mode != JobMode::kStatic || spec.worker_store);
}

std::optional<std::string> ReachableAt(const Resolved& found) {
  if (!found.ok()) return std::nullopt;
  for (const std::string& address : *found) {
    if (!IsLoopback(address)) return address;
  }
  return std::nullopt;
}

std::optional<std::string> OwnReachableAddress(const JobSpec& spec, const Resolved& found) {
  if (const auto address = ReachableAt(found)) return address;
  const bool only_here = IsLoopbackLiteral(spec.endpoint.host) || spec.endpoint.host == "localhost";
  if (only_here && found.ok() && !found->empty()) return found->front();
  return PickReachableAddress(DefaultRouteAddress(),
                              ListLocalAddresses().value_or(std::vector<LocalAddress>()));
}

std::vector<std::pair<std::string, uint16_t>> PlacesOf(const std::vector<Endpoint>& endpoints) {
  std::vector<std::pair<std::string, uint16_t>> places;
  for (const Endpoint& endpoint : endpoints) places.emplace_back(endpoint.host, endpoint.port);
  return places;
}

std::string PlacesOf(const VoterMembers& voters) {
  return absl::StrJoin(voters, ",", [](std::string* out, const VoterMember& one) {
    absl::StrAppend(out, one.address);
  });
}

std::optional<JobStatus> StatusOf(const std::shared_ptr<JobRendezvous>& job) {
  if (job == nullptr) return std::nullopt;
  return job->Status();
}

}  // namespace hlaunch
