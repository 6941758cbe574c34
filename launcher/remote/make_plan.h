// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/hosts/host_list.h"
#include "launcher/options/options.h"
#include "rendezvous/listening/local_addresses.h"

namespace hlaunch {

// Sets in `options` how many nodes there are, from the hosts, --nnodes and -n, and drops the hosts
// that are too many. Pure.
//
// Errors:
//   InvalidArgument - there are fewer hosts than nodes, or fewer places than ranks; -n where nodes
//       may be missing.
absl::Status FitNodesToHosts(Options& options, std::vector<TargetHost>& hosts);

// Where a rendezvous that listens on all addresses at `port` may be reached from another host, most
// promising first: what --local-addr says, the default route's address, the others but loopback
// and link-local ones, IPv4 before IPv6. Pure.
std::vector<std::string> CandidatesOf(const std::string& named, const std::string& default_route,
                                      const std::vector<LocalAddress>& local, uint16_t port);

// For each of `hosts`, whether its name leads to this very host. Asks the resolver for a few
// seconds at most.
std::vector<bool> FindOwnHosts(const std::vector<TargetHost>& hosts);

// The soft limits of this process, as StartMessage::limits has them. Call before they are raised.
std::vector<std::string> LimitsOfThisProcess();

// This process's umask.
int UmaskOfThisProcess();

}  // namespace hlaunch
