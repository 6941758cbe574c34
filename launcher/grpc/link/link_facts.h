// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/spec/hosting.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/text/endpoint.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// As in "a" or, if there are several services, "a:29400,b:29400".
std::string AllEndpoints(const JobSpec& spec);

// Whether the job's own agents keep its record. They do not if the workers' store shares the port
// of the rendezvous, because the store would stay behind.
bool KeepsRecordAmongAgents(const JobSpec& spec);

// The first address of an endpoint that other hosts can reach; unset if none is known.
std::optional<std::string> ReachableAt(const Resolved& found);

// The address at which other nodes reach this host, which owns the endpoint; unset if unknown. On
// the host itself, its own name often resolves to a loopback address.
std::optional<std::string> OwnReachableAddress(const JobSpec& spec, const Resolved& found);

// The endpoints in the form of RendezvousEndpoint::others.
std::vector<std::pair<std::string, uint16_t>> PlacesOf(const std::vector<Endpoint>& endpoints);

// As in "10.0.0.2:40001,10.0.0.3:40005".
std::string PlacesOf(const VoterMembers& voters);

// `job` is null if the job is decided elsewhere.
std::optional<JobStatus> StatusOf(const std::shared_ptr<JobRendezvous>& job);

}  // namespace hlaunch
