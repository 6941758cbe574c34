// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/find_lost_node.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

// Returns how long the node's connection has been gone, if that is too long for it to come back.
std::optional<Duration> GoneFor(const SignOfLife& node) {
  return node.broken && *node.broken >= kComesBack ? node.broken : std::nullopt;
}

bool IsLost(const SignOfLife& node, const Lease& lease) {
  if (GoneFor(node)) return true;
  return !node.answered && node.silence >= lease.lease;
}

// Returns how much longer the node may take; zero if it has answered.
Duration Wait(const SignOfLife& node, const Lease& lease) {
  if (node.broken) return kComesBack - *node.broken;
  return node.answered ? Duration::zero() : lease.lease - node.silence;
}

std::string WhyLost(const SignOfLife& node) {
  if (GoneFor(node)) {
    return absl::StrFormat("its connection broke %.1f s ago, and it did not come back",
                           InSeconds(*node.broken));
  }
  return absl::StrFormat("it was not heard of for %.0f s", InSeconds(node.silence));
}

// Returns the other lost nodes: "; so are: node2, node3".
std::string OthersLost(const std::vector<SignOfLife>& nodes, const Lease& lease, size_t but) {
  std::vector<std::string> hosts;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i != but && IsLost(nodes[i], lease)) hosts.push_back(nodes[i].host);
  }
  if (hosts.empty()) return "";
  return absl::StrCat("; so are: ", NameSome(hosts));
}

}  // namespace

LostNodeVerdict FindLostNode(const std::vector<SignOfLife>& nodes, const Lease& lease) {
  LostNodeVerdict verdict;
  const auto worse = [](const SignOfLife& a, const SignOfLife& b) {
    if (GoneFor(a) != GoneFor(b)) return GoneFor(a) > GoneFor(b);
    return a.silence > b.silence;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!IsLost(nodes[i], lease)) {
      verdict.wait = std::max(verdict.wait, Wait(nodes[i], lease));
    } else if (!verdict.lost || worse(nodes[i], nodes[*verdict.lost])) {
      verdict.lost = i;
    }
  }
  if (!verdict.lost) return verdict;
  verdict.wait = Duration::zero();
  verdict.reason =
      absl::StrCat(WhyLost(nodes[*verdict.lost]), OthersLost(nodes, lease, *verdict.lost));
  return verdict;
}

}  // namespace hlaunch
