// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/make_plan.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/remote/ssh/job_words.h"
#include "launcher/text/endpoint.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {
namespace {

constexpr Duration kNamePatience = std::chrono::seconds(3);
constexpr int kLimits[] = {RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_MEMLOCK,
                           RLIMIT_DATA, RLIMIT_AS,     RLIMIT_NPROC};

bool IsIpv6(const std::string& address) { return absl::StrContains(address, ":"); }

bool IsLinkLocal(const std::string& address) {
  return absl::StartsWith(address, "169.254.") || absl::StartsWithIgnoreCase(address, "fe80:");
}

bool IsOwnName(const std::string& name, const std::string& own) {
  return name == "localhost" || name == own || absl::StartsWith(own, name + ".") ||
         absl::StartsWith(name, own + ".");
}

absl::Status FitNodes(Options& options, std::vector<TargetHost>& hosts) {
  JobPolicy& policy = options.policy;
  const int there = static_cast<int>(hosts.size());
  if (!SaysOption(options, "--nnodes")) {
    policy.min_nodes = policy.max_nodes = there - policy.spares;
    if (policy.max_nodes >= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--spares ", policy.spares, " of ", there,
                                                   there == 1 ? " host" : " hosts",
                                                   " leaves none for the job"));
  }
  if (there < policy.min_nodes) {
    return absl::InvalidArgumentError(absl::StrCat("--nnodes asks for ", policy.min_nodes,
                                                   " nodes, and the list has ", there,
                                                   there == 1 ? " host" : " hosts"));
  }
  policy.max_nodes = std::min(policy.max_nodes, there);
  hosts.resize(
      std::min<size_t>(hosts.size(), static_cast<size_t>(policy.max_nodes + policy.spares)));
  return absl::OkStatus();
}

absl::Status FitRanks(Options& options, std::vector<TargetHost>& hosts) {
  JobPolicy& policy = options.policy;
  if (policy.spares > 0 || policy.min_nodes != policy.max_nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.hosts.ranks_word,
                     " is the number of all ranks, which nobody knows with --spares and --nnodes "
                     "MIN:MAX: give --nproc-per-node, the workers of each host"));
  }
  HLAUNCH_RETURN_IF_ERROR(DivideRanks(options.hosts, hosts));
  const int used = static_cast<int>(hosts.size());
  if (used < policy.max_nodes && SaysOption(options, "--nnodes")) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.hosts.ranks_word, " ", options.hosts.ranks, " is on ", used,
                     used == 1 ? " host" : " hosts", " and --nnodes asks for ", policy.max_nodes,
                     ": leave one of them out"));
  }
  policy.min_nodes = policy.max_nodes = used;
  return absl::OkStatus();
}

}  // namespace

absl::Status FitNodesToHosts(Options& options, std::vector<TargetHost>& hosts) {
  HLAUNCH_RETURN_IF_ERROR(FitNodes(options, hosts));
  return options.hosts.ranks > 0 ? FitRanks(options, hosts) : absl::OkStatus();
}

std::vector<std::string> CandidatesOf(const std::string& named, const std::string& default_route,
                                      const std::vector<LocalAddress>& local, uint16_t port) {
  std::vector<std::string> addresses;
  const auto add = [&addresses](const std::string& address) {
    if (address.empty()) return;
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) return;
    addresses.push_back(address);
  };
  add(named);
  add(default_route);
  for (const bool ipv6 : {false, true}) {
    for (const LocalAddress& each : local) {
      const bool passes = !IsLoopbackLiteral(each.address) && !IsLinkLocal(each.address);
      if (passes && IsIpv6(each.address) == ipv6) add(each.address);
    }
  }
  std::vector<std::string> candidates;
  for (const std::string& address : addresses) candidates.push_back(HostPort(address, port));
  return candidates;
}

std::vector<bool> FindOwnHosts(const std::vector<TargetHost>& hosts) {
  const std::string own = HostName();
  const Instant deadline = MonotonicClock().Now() + kNamePatience;
  std::vector<std::shared_ptr<Lookup>> lookups;
  // The lookups run in parallel, because a name server may be slow. A host with a user's name is
  // not this host: it asks for another account.
  for (const TargetHost& host : hosts) {
    const bool decided = IsOwnName(host.name, own) || !host.user.empty();
    lookups.push_back(decided ? nullptr : Lookup::Start(host.name));
  }
  std::vector<bool> found;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (lookups[i] == nullptr) {
      found.push_back(hosts[i].user.empty());
      continue;
    }
    const auto answer = lookups[i]->Await(deadline);
    found.push_back(answer.has_value() && answer->ok() &&
                    std::any_of((*answer)->begin(), (*answer)->end(), [](const std::string& each) {
                      return IsLoopbackLiteral(each) || IsOwnAddress(each);
                    }));
  }
  return found;
}

std::string OneHostTwice(const std::vector<TargetHost>& hosts, const std::vector<bool>& own) {
  const TargetHost* first = nullptr;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (!own[i]) continue;
    if (first == nullptr) {
      first = &hosts[i];
      continue;
    }
    return absl::StrCat(first->name, " and ", hosts[i].name,
                        " are both this host, and each would use its first devices and CPUs: name "
                        "it once, with all of its workers, as in ",
                        first->name, ":2");
  }
  return "";
}

std::string OneMachineTwice(const std::vector<TargetHost>& hosts,
                            const std::vector<std::string>& machines) {
  std::map<std::string, const TargetHost*> seen;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (machines[i].empty()) continue;
    const auto [first, is_new] = seen.try_emplace(machines[i], &hosts[i]);
    if (is_new) continue;
    return absl::StrCat(first->second->Login(), " and ", hosts[i].Login(),
                        " are one machine, and each would use its first devices and CPUs: name it "
                        "once, with all of its workers, as in ",
                        first->second->Login(), ":2");
  }
  return "";
}

std::vector<std::string> LimitsOfThisProcess() {
  std::vector<std::string> limits;
  for (const int number : kLimits) {
    rlimit limit = {};
    if (::getrlimit(static_cast<__rlimit_resource_t>(number), &limit) != 0) continue;
    limits.push_back(absl::StrCat(number, ":", limit.rlim_cur));
  }
  return limits;
}

int UmaskOfThisProcess() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return static_cast<int>(mask);
}

}  // namespace hlaunch
