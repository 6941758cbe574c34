// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/hosting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {
namespace {

bool IsLinkLocal(const std::string& address) {
  return absl::StartsWithIgnoreCase(address, "fe80:") || absl::StartsWith(address, "169.254.");
}

// Returns the address on which this host must listen for the endpoint. For a name it is all
// addresses, even if /etc/hosts maps this host's own name to 127.0.1.1, because other hosts never
// reach loopback.
std::string BindAddress(const Endpoint& endpoint, const std::vector<std::string>& resolved) {
  if (IsLoopbackLiteral(endpoint.host)) return endpoint.host;
  if (endpoint.host != "localhost") return "";
  const auto v4 = std::find_if(resolved.begin(), resolved.end(), [](const std::string& address) {
    return absl::StartsWith(address, "127.");
  });
  return v4 != resolved.end() ? *v4 : "";
}

// Returns in words which interface of this host has `address`; empty if none has it.
std::string PlaceHere(absl::string_view address, const std::vector<LocalAddress>& local) {
  if (absl::StrContains(address, '.')) absl::ConsumePrefix(&address, "::ffff:");
  for (const LocalAddress& own : local) {
    if (own.address == address) return absl::StrCat(own.interface, " of this host");
  }
  return IsLoopbackLiteral(address) ? "this host's loopback" : "";
}

HostingVerdict DecideByRank(const JobSpec& spec, const std::vector<std::string>& resolved) {
  if (*spec.node.rank == 0) {
    return {HostingRole::kHosts, BindAddress(spec.endpoint, resolved), "this is node rank 0"};
  }
  return {HostingRole::kJoins, "",
          absl::StrCat("this is node rank ", *spec.node.rank, " and rank 0 hosts at ",
                       HostPort(spec.endpoint))};
}

// Returns "a resolves to 10.0.0.1, which", or only the literal.
std::string Subject(const std::string& host, const std::vector<std::string>& addresses) {
  if (addresses.size() == 1 && addresses.front() == host) return host;
  return absl::StrCat(host, " resolves to ", absl::StrJoin(addresses, ", "), ", which");
}

bool IsOwnName(const std::string& host, const std::string& own_name) {
  return !own_name.empty() && (absl::EqualsIgnoreCase(host, own_name) ||
                               absl::StartsWithIgnoreCase(host, absl::StrCat(own_name, ".")));
}

// Returns why the endpoint belongs to this host; empty if it does not.
std::string Ownership(const JobSpec& spec, const Resolved& resolved,
                      const std::vector<LocalAddress>& local, const std::string& own_name) {
  const std::string& host = spec.endpoint.host;
  if (!resolved.ok()) {
    // The DNS record of a pod may appear later than the pod.
    if (!IsOwnName(host, own_name)) return "";
    return absl::StrCat(host, " does not resolve yet and is this host's name");
  }
  for (const std::string& address : *resolved) {
    const std::string place = PlaceHere(address, local);
    if (!place.empty()) return absl::StrCat(Subject(host, {address}), " is ", place);
  }
  return "";
}

// Returns the addresses that a person knows this host by: "eth0 10.0.0.1, eth1 10.1.0.1".
std::string Interfaces(const std::vector<LocalAddress>& local) {
  constexpr size_t kMost = 6;
  std::vector<std::string> named;
  for (const LocalAddress& own : local) {
    if (IsLoopbackLiteral(own.address) || IsLinkLocal(own.address)) continue;
    named.push_back(absl::StrCat(own.interface, " ", own.address));
  }
  if (named.empty()) return "it has none but loopback";
  const size_t more = named.size() > kMost ? named.size() - kMost : 0;
  named.resize(named.size() - more);
  return absl::StrCat(absl::StrJoin(named, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string Waited(Duration waited) {
  return absl::StrCat(std::chrono::duration<double>(waited).count(), " s");
}

// Explains what is known about the endpoint without connecting to it.
std::string ExplainEndpoint(const JobSpec& spec, const HostingVerdict& verdict,
                            const Silence& silence) {
  std::string text = verdict.reason;
  const bool elsewhere = silence.resolved.ok() && verdict.role != HostingRole::kHosts;
  if (elsewhere) absl::StrAppend(&text, " (this host: ", Interfaces(silence.local), ")");
  if (silence.listens) {
    absl::StrAppend(&text, "; this node listens on port ", spec.endpoint.port,
                    " and nobody was led here");
  }
  return text;
}

// Explains the result of an attempt to connect.
std::string ExplainConnecting(int error) {
  switch (error) {
    case 0:
      return "a connection is taken there, but no rendezvous of hlaunch answers on it: a proxy "
             "without a host behind it, or another program";
    case ECONNREFUSED:
      return "that port is refused: its host is up, and no hlaunch hosts there yet, or a firewall "
             "rejects the port";
    case EHOSTUNREACH:
    case EACCES:
    case EPERM:
      return absl::StrCat("there is no way there: ", std::strerror(error),
                          "; a firewall rejects the port, or its host is down");
    case ETIMEDOUT:
      return "nothing comes back from there: its host is down, or a firewall drops the port";
    default:
      return absl::StrCat("there is no way there: ", std::strerror(error));
  }
}

std::string Advise(const JobSpec& spec, const HostingVerdict& verdict, const Silence& silence) {
  if (!silence.resolved.ok()) return "correct the name, or give the address in digits";
  if (verdict.role == HostingRole::kOffers) {
    return absl::StrCat("check that ", spec.endpoint.host, " leads to this host's port ",
                        spec.endpoint.port);
  }
  const char* start = "start hlaunch on the host that owns the address";
  if (spec.mode == JobMode::kStatic) {
    return spec.node.rank.has_value() ? "start node rank 0 there" : start;
  }
  return absl::StrCat(start,
                      "; if it is a virtual address or a service, give one node --node-rank 0 "
                      "or --rdzv-conf is_host=1");
}

}  // namespace

HostingVerdict DecideHosting(const JobSpec& spec, const Resolved& resolved,
                             const std::vector<LocalAddress>& local, const std::string& own_name) {
  using Role = HostingRole;
  if (spec.mode == JobMode::kSingleNode) return {Role::kJoins, "", "a single node meets nobody"};
  if (spec.mode == JobMode::kListenAndPrint) return {Role::kHosts, "", "no other place was named"};
  if (!spec.other_endpoints.empty()) {
    return {Role::kJoins, "", "several services are named, of which one leads"};
  }
  const std::vector<std::string> addresses = resolved.ok() ? *resolved : std::vector<std::string>();
  const bool ranked = spec.mode == JobMode::kStatic;  // Only node rank 0 hosts.
  if (ranked && spec.node.rank.has_value()) return DecideByRank(spec, addresses);
  const std::string own = Ownership(spec, resolved, local, own_name);
  const bool forbidden = spec.node.is_host == false;
  if (!own.empty() && !forbidden) return {Role::kHosts, BindAddress(spec.endpoint, addresses), own};
  std::string reason = !own.empty()    ? own
                       : resolved.ok() ? absl::StrCat(Subject(spec.endpoint.host, addresses),
                                                      " is no address of this host")
                                       : std::string(resolved.status().message());
  if (forbidden) return {Role::kJoins, "", absl::StrCat(reason, ", and is_host=0 forbids to host")};
  const char* offer = spec.node.is_host == true ? "is_host=1"
                      : spec.node.rank == 0     ? "this is node rank 0"
                                                : nullptr;
  if (offer != nullptr) {
    return {ranked ? Role::kHosts : Role::kOffers, "", absl::StrCat(reason, ", and ", offer)};
  }
  if (resolved.ok()) absl::StrAppend(&reason, ", and this node is not node rank 0");
  return {Role::kJoins, "", reason};
}

EndpointDuty DecideEndpointDuty(const JobSpec& spec, const EndpointSight& sight) {
  if (spec.mode != JobMode::kEndpoint || sight.role == HostingRole::kJoins) {
    return EndpointDuty::kNothing;
  }
  if (!sight.contacted) return EndpointDuty::kFound;
  return sight.voters_known ? EndpointDuty::kStandBy : EndpointDuty::kNothing;
}

std::string ExplainSilence(const JobSpec& spec, const HostingVerdict& verdict,
                           const Silence& silence) {
  std::string text =
      absl::StrCat("nobody answers at ", HostPort(spec.endpoint), " for ", Waited(silence.waited),
                   ": ", ExplainEndpoint(spec, verdict, silence));
  if (silence.connect_error) {
    absl::StrAppend(&text, "; ", ExplainConnecting(*silence.connect_error));
  }
  return absl::StrCat(text, "; ", Advise(spec, verdict, silence));
}

std::string ExplainLoneliness(const JobSpec& spec, const HostingVerdict& verdict, Duration waited) {
  return absl::StrCat("this node hosts the rendezvous at ", HostPort(spec.endpoint), ", since ",
                      verdict.reason, "; no other node has come for ", Waited(waited),
                      ": start hlaunch there, and check that this port is open and that the "
                      "endpoint leads here from there");
}

std::optional<std::string> PickReachableAddress(const std::optional<std::string>& default_route,
                                                const std::vector<LocalAddress>& local) {
  if (default_route.has_value()) return default_route;
  std::optional<std::string> v6;
  for (const LocalAddress& own : local) {
    if (IsLoopbackLiteral(own.address) || IsLinkLocal(own.address)) continue;
    if (!absl::StrContains(own.address, ":")) return own.address;
    if (!v6.has_value()) v6 = own.address;
  }
  return v6;
}

}  // namespace hlaunch
