// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/silence_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

// "node1 has", "node1 and node2 have".
std::string Subject(const std::vector<std::string>& hosts, const char* one, const char* many) {
  return absl::StrCat(NameSome(hosts), hosts.size() == 1 ? one : many);
}

}  // namespace

std::vector<std::string> SilenceWatch::Look(const Membership& membership, const JobPolicy& policy,
                                            Instant t) {
  std::vector<std::string> back, silent;
  Instant since = t;
  std::erase_if(silent_, [&](const auto& entry) {
    const Silent& known = entry.second;
    const Seat* seat = membership.Find(entry.first);
    if (seat == nullptr || seat->info.incarnation != known.incarnation || seat->left) return true;
    if (seat->heard == known.since) return false;
    back.push_back(known.host);
    since = std::min(since, known.since);
    return true;
  });
  std::vector<std::string> lines;
  if (!back.empty()) {
    lines.push_back(absl::StrCat(Subject(back, " is", " are"), " heard of again after ",
                                 WholeSeconds(t - since), " s"));
  }
  for (const Seat* seat : membership.SilentFor(policy.lease.lease, t)) {
    if (seat->left || seat->finished) continue;
    const Silent now_silent = {seat->info.host, seat->info.incarnation, seat->heard};
    if (silent_.emplace(seat->info.node_id, now_silent).second) silent.push_back(seat->info.host);
  }
  if (!silent.empty()) {
    lines.push_back(absl::StrCat(
        Subject(silent, " has", " have"), " not been heard of for ",
        WholeSeconds(policy.lease.lease), " s; ", silent.size() == 1 ? "it is" : "they are",
        " given up after ", WholeSeconds(policy.lease.loss_limit + policy.lease.margin), " s"));
  }
  return lines;
}

}  // namespace hlaunch
