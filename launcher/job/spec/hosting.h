// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/text/endpoint.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {

// A resolver's answer for the endpoint's name: addresses, the best one first, or why there are
// none.
using Resolved = absl::StatusOr<std::vector<std::string>>;

// This node's role in hosting the rendezvous.
enum class HostingRole {
  kJoins,   // Another node hosts.
  kHosts,   // This node hosts.
  kOffers,  // The address belongs to no host (a virtual address, a service, a NAT), or is not known
            // yet. This node listens in case the address leads here, and joins where it leads.
};

struct HostingVerdict {
  HostingRole role = HostingRole::kJoins;
  std::string bind_address;  // Where to listen. Empty: on all addresses.
  std::string reason;        // Always set; one line for the log.
};

// Decides by the form of the job, the addresses of the endpoint's name and the addresses of this
// host. Pure. In the static form, node rank 0 hosts, whatever the name is. Else the node that owns
// the address hosts. If the address is not one of this host's, node rank 0 or a node with is_host=1
// offers to host. Several agents of one host may all be told to host: the first one that binds the
// port hosts, and the others join it. A name that does not resolve yet is this host's if it is
// `own_name`, alone or followed by a domain.
HostingVerdict DecideHosting(const JobSpec& spec, const Resolved& resolved,
                             const std::vector<LocalAddress>& local, const std::string& own_name);

// What a node knows whose endpoint may lead to it though nothing in this process listens there.
struct EndpointSight {
  HostingRole role = HostingRole::kJoins;
  bool contacted = false;     // A rendezvous has let this node in.
  bool voters_known = false;  // It is led from one of the job's own nodes, whose places are known.
};

// What such a node is to do once it gets the endpoint's port.
enum class EndpointDuty {
  kNothing,
  kFound,    // Host the rendezvous, as if the port had been free at once.
  kStandBy,  // Tell nodes that come where the rendezvous is.
};

// Decides it. Only the form in which the address decides who hosts has such a port: in the static
// form it is also that of the workers' store. A rendezvous that has let this node in and is gone
// without voters ends the job; it is not begun anew beside its workers. Pure.
EndpointDuty DecideEndpointDuty(const JobSpec& spec, const EndpointSight& sight);

// What a node found out after it has met no other node at the endpoint.
struct Silence {
  Duration waited;
  Resolved resolved = absl::UnavailableError("");
  std::vector<LocalAddress> local;
  bool listens = false;  // A rendezvous in this process waits for nodes.
  // The result of TryToConnect to the first address. Unset if there is no address.
  std::optional<int> connect_error;
};

// Explains in one line why no rendezvous may answer at the endpoint, and what to do. Pure.
std::string ExplainSilence(const JobSpec& spec, const HostingVerdict& verdict,
                           const Silence& silence);

// Explains in one line, for a node that hosts, why no other node may have come. Pure.
std::string ExplainLoneliness(const JobSpec& spec, const HostingVerdict& verdict, Duration waited);

// Returns the address at which other hosts most likely reach this one: that of the default route,
// else the first that is neither loopback nor link-local, IPv4 before IPv6. Unset if there is none.
// Pure.
std::optional<std::string> PickReachableAddress(const std::optional<std::string>& default_route,
                                                const std::vector<LocalAddress>& local);

}  // namespace hlaunch
