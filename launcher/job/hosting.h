// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/job/job_spec.h"
#include "launcher/words/endpoint.h"
#include "rendezvous/listening/local_addresses.h"

namespace hlaunch {

// What a resolver says of the endpoint's name: addresses, best first, or why there are none.
using Resolved = absl::StatusOr<std::vector<std::string>>;

// This node's part in hosting the rendezvous.
enum class HostingRole {
  kJoins,   // Others host.
  kHosts,   // It is up to this node.
  kOffers,  // The address is nobody's own (a virtual address, a service, a NAT), or not known yet.
            // This node listens, in case the address leads here, and joins where it leads.
};

struct HostingVerdict {
  HostingRole role = HostingRole::kJoins;
  std::string bind_address;  // Where to listen; empty: on all addresses.
  std::string reason;        // Always set; one line for the log.
};

// Decides from the form of the job, what the endpoint's name resolves to and the addresses of
// this host. Pure. With the static form node rank 0 hosts, whatever the name is; else the node
// whose address it is, or, if the address is none of this host's, node rank 0 or a node with
// is_host=1 offers to. Several agents of one host may all be told to host: the first to bind does,
// the others join it. A name that does not resolve yet is this host's if it is `own_name`, or that
// with a domain behind it.
HostingVerdict DecideHosting(const JobSpec& spec, const Resolved& resolved,
                             const std::vector<LocalAddress>& local, const std::string& own_name);

// What a node found that has met nobody at the endpoint.
struct Silence {
  Duration waited;
  Resolved resolved = absl::UnavailableError("");
  std::vector<LocalAddress> local;
  bool listens = false;  // A rendezvous in this process waits for nodes.
  // What a connection to the first address came to, as TryToConnect says; unset: there is no
  // address.
  std::optional<int> connect_error;
};

// What this node believes of an endpoint where nobody answers, and what to do, in one line. Pure.
std::string ExplainSilence(const JobSpec& spec, const HostingVerdict& verdict,
                           const Silence& silence);

// What a node believes that hosts and has not seen any other node, in one line. Pure.
std::string ExplainLoneliness(const JobSpec& spec, const HostingVerdict& verdict, Duration waited);

// The address under which other hosts most likely reach this one: that of the default route,
// else the first that is neither loopback nor link-local, IPv4 before IPv6. Pure. Unset where
// there is none.
std::optional<std::string> PickReachableAddress(const std::optional<std::string>& default_route,
                                                const std::vector<LocalAddress>& local);

}  // namespace hlaunch
