// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/place_job.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

constexpr size_t kHostsInReason = 6;

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool HasLabels(const HostRoom& host, const std::vector<std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(),
                     [&](const std::string& label) { return Contains(host.labels, label); });
}

using Names = absl::flat_hash_set<absl::string_view>;

// Returns the hosts that the job allows, in their order.
std::vector<const HostRoom*> Allowed(const JobRequest& request,
                                     const std::vector<HostRoom>& hosts) {
  const Names names(request.hosts.begin(), request.hosts.end());
  std::vector<const HostRoom*> allowed;
  for (const HostRoom& host : hosts) {
    const bool named = names.empty() || names.contains(host.name);
    if (named && HasLabels(host, request.labels)) allowed.push_back(&host);
  }
  return allowed;
}

// Returns the kinds of devices to try, the most frequent first; an empty name stands for slots.
std::vector<std::string> KindsToTry(const JobRequest& request,
                                    const std::vector<const HostRoom*>& allowed) {
  if (request.devices == "none") return {""};
  if (request.devices != "auto") return absl::StrSplit(request.devices, ',');
  std::map<std::string, int> counts;
  for (const HostRoom* host : allowed) {
    for (const auto& [kind, room] : host->kinds) counts[kind] += room.all;
  }
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : counts) {
    if (count > 0) kinds.push_back(kind);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [&](const std::string& a, const std::string& b) {
    return counts[a] > counts[b];
  });
  return kinds.empty() ? std::vector<std::string>{""} : kinds;
}

struct Count {
  int all = 0, free = 0;
};

Count CountOf(const HostRoom& host, const std::string& kind) {
  if (kind.empty()) return {host.slots, host.slots_free};
  const auto found = host.kinds.find(kind);
  if (found == host.kinds.end()) return {};
  return {found->second.all, static_cast<int>(found->second.free.size())};
}

// Tries one kind of devices for one job on the hosts that the job allows.
class KindTrial {
 public:
  KindTrial(const JobRequest& request, std::string kind,
            const std::vector<const HostRoom*>& allowed)
      : request_(request), kind_(std::move(kind)), allowed_(allowed) {}

  Placement Run() const {
    Placement placement;
    placement.kind = kind_;
    const std::vector<const HostRoom*> ready = Ready();
    if (ready.size() >= static_cast<size_t>(request_.min_nodes)) {
      Choose(ready, placement);
      return placement;
    }
    placement.waits_for_jobs = CountAble() >= request_.min_nodes;
    placement.reason = Reason(ready.size(), placement.waits_for_jobs);
    return placement;
  }

 private:
  int needed() const { return std::max(request_.workers, 1); }

  bool Fits(const HostRoom& host) const {
    if (!host.closed.empty() || host.exclusive || (request_.exclusive && host.used)) return false;
    return CountOf(host, kind_).free >= needed();
  }

  // Returns what would be free afterwards. A job that takes all of a host prefers hosts with the
  // most free, hence the sign.
  int Left(const HostRoom& host) const {
    const int free = CountOf(host, kind_).free;
    return request_.workers == 0 ? -free : free - request_.workers;
  }

  std::vector<const HostRoom*> Ready() const {
    std::vector<const HostRoom*> ready;
    for (const HostRoom* host : allowed_) {
      if (Fits(*host)) ready.push_back(host);
    }
    std::stable_sort(ready.begin(), ready.end(),
                     [this](const HostRoom* a, const HostRoom* b) { return Left(*a) < Left(*b); });
    return ready;
  }

  bool Able(const HostRoom& host) const {
    return host.closed.empty() && CountOf(host, kind_).all >= needed();
  }
  int CountAble() const {
    return static_cast<int>(std::count_if(allowed_.begin(), allowed_.end(),
                                          [this](const HostRoom* host) { return Able(*host); }));
  }

  void Choose(std::vector<const HostRoom*> ready, Placement& placement) const {
    const size_t nodes = std::min<size_t>(ready.size(), request_.max_nodes);
    const size_t all = std::min(ready.size(), nodes + request_.spares);
    const auto by_name = [](const HostRoom* a, const HostRoom* b) {
      return NaturalLess(a->name, b->name);
    };
    std::sort(ready.begin(), ready.begin() + nodes, by_name);
    std::sort(ready.begin() + nodes, ready.begin() + all, by_name);
    for (size_t i = 0; i < all; ++i) placement.nodes.push_back(NodeOn(*ready[i]));
    placement.spares = static_cast<int>(all - nodes);
  }

  PlacedNode NodeOn(const HostRoom& host) const {
    PlacedNode node;
    node.host = host.name;
    node.workers = request_.workers == 0 ? CountOf(host, kind_).free : request_.workers;
    if (kind_.empty()) {
      node.slots = node.workers;
    } else {
      const std::vector<int>& free = host.kinds.at(kind_).free;
      node.devices.assign(free.begin(), free.begin() + node.workers);
    }
    return node;
  }

  // Returns why this host cannot run the job, such as "has 6 free".
  std::string Obstacle(const HostRoom& host, bool waits) const {
    if (!host.closed.empty()) return host.closed;
    const Count count = CountOf(host, kind_);
    if (count.all < needed()) return absl::StrCat("has ", count.all, waits ? " in all" : "");
    if (host.exclusive) return "is held by one job alone";
    if (request_.exclusive && host.used) return "is used by other jobs";
    return absl::StrCat("has ", count.free, " free");
  }

  std::string Reason(size_t ready, bool waits) const {
    const size_t have = waits ? ready : static_cast<size_t>(CountAble());
    std::string reason =
        absl::StrCat(Need(waits), "; ", have == 0 ? "none" : absl::StrCat(have),
                     waits ? (have == 1 ? " has" : " have") : " could have", " them");
    std::vector<std::string> obstacles;
    for (const HostRoom* host : allowed_) {
      const bool in_the_way = waits ? !Fits(*host) : !Able(*host);
      if (in_the_way) obstacles.push_back(absl::StrCat(host->name, " ", Obstacle(*host, waits)));
    }
    Names known;
    for (const HostRoom* host : allowed_) known.insert(host->name);
    for (const std::string& name : request_.hosts) {
      const char* labels = request_.labels.empty() ? "" : " with these labels";
      if (!known.contains(name))
        obstacles.push_back(absl::StrCat(name, " is no host here", labels));
    }
    const size_t shown = std::min(obstacles.size(), kHostsInReason);
    for (size_t i = 0; i < shown; ++i) absl::StrAppend(&reason, ", ", obstacles[i]);
    if (obstacles.size() > shown) {
      absl::StrAppend(&reason, ", and ", obstacles.size() - shown, " more hosts have not");
    }
    return reason;
  }

  std::string Need(bool waits) const {
    const std::string of = kind_.empty() ? (needed() == 1 ? "slot" : "slots") : kind_;
    std::string need =
        absl::StrCat("needs ", request_.min_nodes, request_.min_nodes == 1 ? " node" : " nodes");
    if (allowed_.empty() && request_.devices == "auto") {
      absl::StrAppend(&need, " for ", needed(), needed() == 1 ? " worker" : " workers");
    } else {
      absl::StrAppend(&need, " with ", needed(), waits ? " free " : " ", of);
    }
    if (request_.exclusive) absl::StrAppend(&need, " for itself alone");
    if (!request_.labels.empty()) {
      absl::StrAppend(&need, " and label ", absl::StrJoin(request_.labels, ", "));
    }
    return need;
  }

  const JobRequest& request_;
  const std::string kind_;
  const std::vector<const HostRoom*>& allowed_;
};

}  // namespace

Placement PlaceJob(const JobRequest& request, const std::vector<HostRoom>& hosts) {
  const std::vector<const HostRoom*> allowed = Allowed(request, hosts);
  Placement best;
  bool first = true;
  for (const std::string& kind : KindsToTry(request, allowed)) {
    Placement placement = KindTrial(request, kind, allowed).Run();
    if (!placement.nodes.empty()) return placement;
    if (first || (placement.waits_for_jobs && !best.waits_for_jobs)) best = std::move(placement);
    first = false;
  }
  return best;
}

}  // namespace hlaunch
