// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/endpoint.h"
#include "launcher/job_spec.h"

namespace hlaunch {

// One address of an interface of this host. A value.
struct LocalAddress {
  std::string interface;
  std::string address;  // In digits, IPv6 without brackets and with its scope if it has one.
};

// This host's own name, as the kernel has it; "localhost" if it has none.
std::string HostName();

// The addresses of all interfaces that are up.
//
// Errors:
//   Internal - the kernel did not say.
absl::StatusOr<std::vector<LocalAddress>> ListLocalAddresses();

// The source address of this host's default route; sends nothing. Unset where there is none.
std::optional<std::string> DefaultRouteAddress();

// Whether this node hosts the rendezvous.
struct HostingVerdict {
  bool hosts = false;
  std::string bind_address;  // If it hosts: where to listen; empty: on all addresses.
  std::string reason;        // Always set; one line for the log.
};

// Decides from the form of the job, what the endpoint's name resolves to and the addresses of
// this host. Pure. With the static form node rank 0 hosts, whatever the name is; else, and where
// no rank was given, the node whose address it is. Several agents of that host may all be told to
// host: the first to bind does, the others join it. A name that does not resolve yet is this
// host's if it is `own_name`, or that with a domain behind it.
HostingVerdict DecideHosting(const JobSpec& spec,
                             const absl::StatusOr<std::vector<std::string>>& resolved,
                             const std::vector<LocalAddress>& local, const std::string& own_name);

// The address under which other hosts most likely reach this one: that of the default route,
// else the first that is neither loopback nor link-local, IPv4 before IPv6. Pure. Unset where
// there is none.
std::optional<std::string> PickReachableAddress(const std::optional<std::string>& default_route,
                                                const std::vector<LocalAddress>& local);

}  // namespace hlaunch
