// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/options/options.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {

// Sets the number of nodes in `options` from the hosts, --nnodes and -n, and drops the hosts that
// are not needed. Pure.
//
// Errors:
//   InvalidArgument - there are fewer hosts than nodes, or fewer places than ranks; -n is given
//       where nodes may be missing.
absl::Status FitNodesToHosts(Options& options, std::vector<TargetHost>& hosts);

// The addresses at which other hosts may reach a rendezvous that listens on all addresses at
// `port`. The most promising comes first: the value of --local-addr, the address of the default
// route, then the other addresses except loopback and link-local ones, IPv4 before IPv6. Pure.
std::vector<std::string> CandidatesOf(const std::string& named, const std::string& default_route,
                                      const std::vector<LocalAddress>& local, uint16_t port);

// Returns for each of `hosts` whether its name leads to this host. Asks the resolver for at most a
// few seconds.
std::vector<bool> FindOwnHosts(const std::vector<TargetHost>& hosts);

// Says that two of `hosts` are this host, of which `own` tells which are; empty: they are not.
// Pure.
std::string OneHostTwice(const std::vector<TargetHost>& hosts, const std::vector<bool>& own);

// Says that two of `hosts` are one machine; empty: that is not known. `machines` has what
// OwnMachine says on each, or nothing as long as that is unknown. Pure.
std::string OneMachineTwice(const std::vector<TargetHost>& hosts,
                            const std::vector<std::string>& machines);

// The soft limits of this process in the form of StartMessage::limits. Call before they are raised.
std::vector<std::string> LimitsOfThisProcess();

// This process's umask.
int UmaskOfThisProcess();

}  // namespace hlaunch
