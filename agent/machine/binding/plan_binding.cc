// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/binding/plan_binding.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

constexpr int kAllSlots = 1 << 20;

// A physical core, with its threads that may be used.
struct Core {
  Cpu first;
  std::vector<int> cpus;
};

// Indexes into the list of all cores, which is ordered by socket, node and cache.
using Cores = std::vector<size_t>;

std::string Count(size_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::vector<Core> UsableCores(const Topology& topology, const std::vector<int>& allowed) {
  const std::set<int> usable(allowed.begin(), allowed.end());
  std::map<int, Core> by_number;
  for (const Cpu& cpu : topology.cpus) {
    if (!usable.contains(cpu.id)) continue;
    Core& core = by_number[cpu.core];
    if (core.cpus.empty()) core.first = cpu;
    core.cpus.push_back(cpu.id);
  }
  std::vector<Core> cores;
  for (auto& entry : by_number) cores.push_back(std::move(entry.second));
  const auto place = [](const Core& core) {
    const Cpu& cpu = core.first;
    return std::make_tuple(cpu.socket, cpu.node, cpu.cache, cpu.core);
  };
  std::sort(cores.begin(), cores.end(),
            [&](const Core& a, const Core& b) { return place(a) < place(b); });
  return cores;
}

// Part `index` of `parts`; the first parts have one core more if the division leaves a rest.
Cores Part(const Cores& cores, size_t index, size_t parts) {
  const size_t each = cores.size() / parts;
  const size_t more = cores.size() % parts;
  const size_t begin = index * each + std::min(index, more);
  const size_t end = begin + each + (index < more ? 1 : 0);
  return Cores(cores.begin() + static_cast<ptrdiff_t>(begin),
               cores.begin() + static_cast<ptrdiff_t>(end));
}

// Plans one binding: which worker is near which node, and which cores it gets there.
class Planner {
 public:
  Planner(std::vector<Core> cores, const BindRequest& request)
      : cores_(std::move(cores)),
        workers_(static_cast<size_t>(request.workers)),
        each_(static_cast<size_t>(request.cores_each)) {
    places_ = request.places;
    places_.resize(std::max(workers_, places_.size()));
    for (const Core& core : cores_) ++cores_of_node_[core.first.node];
  }

  size_t num_cores() const { return cores_.size(); }
  bool has_one_node() const { return cores_of_node_.size() == 1; }

  bool NearKnownCores(const DevicePlace& place) const {
    return cores_of_node_.contains(place.numa_node);
  }

  // Deals cores to each worker, near its device if every worker has at least one core there.
  std::vector<Cores> Deal(BindMode mode) {
    std::vector<Cores> dealt = DealNear(mode);
    near_ = Fits(dealt);
    if (!near_) dealt = DealEvenly(mode, places_.size());
    return Fits(dealt) ? dealt : DealEvenly(mode, workers_);
  }

  // The same, but only near the devices; empty if a worker would have less than `least` cores.
  std::vector<Cores> DealNearWith(BindMode mode, size_t least) const {
    std::vector<Cores> dealt = DealNear(mode);
    const std::vector<size_t> shares = Shares(dealt);
    const bool enough =
        std::all_of(shares.begin(), shares.end(), [least](size_t share) { return share >= least; });
    return enough ? dealt : std::vector<Cores>();
  }

  // True if a device has a known place and the plan follows it.
  bool is_near() const {
    return near_ && std::any_of(places_.begin(), places_.end(),
                                [this](const DevicePlace& place) { return NearKnownCores(place); });
  }

  // How many cores each worker has, if workers with the same cores share them evenly.
  std::vector<size_t> Shares(const std::vector<Cores>& dealt) const {
    std::map<Cores, size_t> sharers;
    for (const Cores& cores : dealt) ++sharers[cores];
    std::vector<size_t> shares;
    for (const Cores& cores : dealt) shares.push_back(cores.size() / sharers[cores]);
    return shares;
  }

  WorkerBinding Bind(size_t worker, const Cores& own, size_t share, bool with_memory) const {
    WorkerBinding binding;
    std::set<int> nodes;
    for (const size_t core : own) {
      nodes.insert(cores_[core].first.node);
      binding.cpus.insert(binding.cpus.end(), cores_[core].cpus.begin(), cores_[core].cpus.end());
    }
    std::sort(binding.cpus.begin(), binding.cpus.end());
    binding.cores = static_cast<int>(share);
    if (with_memory && nodes.size() == 1 && !has_one_node()) binding.memory_node = *nodes.begin();
    binding.why = Why(places_[worker]);
    return binding;
  }

 private:
  std::string Why(const DevicePlace& place) const {
    if (place.name.empty()) return "";
    if (near_ && NearKnownCores(place)) return absl::StrCat("near ", place.name);
    if (place.numa_node < 0) {
      return has_one_node() ? "" : absl::StrCat("where ", place.name, " sits is unknown");
    }
    return absl::StrCat(
        place.name, " is near NUMA node ", place.numa_node,
        NearKnownCores(place) ? ", which has too few cores" : ", of which no CPU may be used");
  }

  // The NUMA node of each place: the device's, or the only one, or the one with the most cores to
  // spare. Empty if no device has a known place.
  std::vector<int> Homes() const {
    std::vector<int> homes;
    std::map<int, int> guests;
    bool any = has_one_node();
    for (const DevicePlace& place : places_) {
      homes.push_back(has_one_node()          ? cores_of_node_.begin()->first
                      : NearKnownCores(place) ? place.numa_node
                                              : -1);
      if (homes.back() < 0) continue;
      any = true;
      ++guests[homes.back()];
    }
    if (!any) return {};
    for (int& home : homes) {
      if (home >= 0) continue;
      const auto roomiest = std::max_element(
          cores_of_node_.begin(), cores_of_node_.end(), [&](const auto& a, const auto& b) {
            return a.second * (guests[b.first] + 1) < b.second * (guests[a.first] + 1);
          });
      home = roomiest->first;
      ++guests[home];
    }
    return homes;
  }

  template <typename Predicate>
  Cores Where(Predicate predicate) const {
    Cores found;
    for (size_t i = 0; i < cores_.size(); ++i) {
      if (predicate(cores_[i].first)) found.push_back(i);
    }
    return found;
  }

  Cores OfNode(int node) const {
    return Where([node](const Cpu& cpu) { return cpu.node == node; });
  }

  // All cores of the node, socket or cache that holds `core`.
  Cores Around(BindMode mode, size_t core) const {
    const Cpu& here = cores_[core].first;
    return Where([&](const Cpu& cpu) {
      if (mode == BindMode::kSocket) return cpu.socket == here.socket;
      return cpu.node == here.node && (mode == BindMode::kNuma || cpu.cache == here.cache);
    });
  }

  // The part of the cores that belongs to one worker; empty if there are too few.
  Cores OwnPart(const Cores& cores, size_t index, size_t parts) const {
    if (each_ == 0) return Part(cores, index, parts);
    if ((index + 1) * each_ > cores.size()) return {};
    const auto begin = cores.begin() + static_cast<ptrdiff_t>(index * each_);
    return Cores(begin, begin + static_cast<ptrdiff_t>(each_));
  }

  size_t NumCpus(const Cores& cores) const {
    size_t count = 0;
    for (const size_t core : cores) count += cores_[core].cpus.size();
    return count;
  }

  // The cores of one cache of a node. Each worker there gets the next cache, larger ones first.
  Cores CacheOf(int node, size_t index) const {
    std::vector<Cores> caches;
    for (const size_t core : OfNode(node)) {
      Cores cache = Around(BindMode::kL3, core);
      if (cache.front() == core) caches.push_back(std::move(cache));
    }
    std::stable_sort(caches.begin(), caches.end(),
                     [this](const Cores& a, const Cores& b) { return NumCpus(a) > NumCpus(b); });
    return caches[index % caches.size()];
  }

  std::vector<Cores> DealNear(BindMode mode) const {
    const std::vector<int> homes = Homes();
    std::vector<Cores> dealt;
    std::map<int, size_t> next;
    for (size_t i = 0; i < workers_ && !homes.empty(); ++i) {
      const int home = homes[i];
      const size_t index = next[home]++;
      const auto all = static_cast<size_t>(std::count(homes.begin(), homes.end(), home));
      switch (mode) {
        case BindMode::kCore:
          dealt.push_back(OwnPart(OfNode(home), index, all));
          break;
        case BindMode::kL3:
          dealt.push_back(CacheOf(home, index));
          break;
        default:
          dealt.push_back(Around(mode, OfNode(home).front()));
      }
    }
    return dealt;
  }

  std::vector<Cores> DealEvenly(BindMode mode, size_t parts) const {
    const Cores all = Where([](const Cpu&) { return true; });
    std::vector<Cores> dealt;
    for (size_t i = 0; i < workers_; ++i) {
      const Cores part = OwnPart(all, i, parts);
      if (part.empty()) return {};
      dealt.push_back(mode == BindMode::kCore ? part : Around(mode, part[(part.size() - 1) / 2]));
    }
    return dealt;
  }

  bool Fits(const std::vector<Cores>& dealt) const {
    const std::vector<size_t> shares = Shares(dealt);
    return dealt.size() == workers_ &&
           std::all_of(shares.begin(), shares.end(), [](size_t share) { return share > 0; });
  }

  const std::vector<Core> cores_;
  const size_t workers_;
  const size_t each_;  // Cores for each worker; 0 means an even part.
  std::vector<DevicePlace> places_;
  std::map<int, int> cores_of_node_;
  bool near_ = true;
};

// Says why auto does not bind, if devices and number of workers alone decide that; empty otherwise.
std::string NothingToGain(const BindRequest& request) {
  if (request.workers == 1) return "there is one worker";
  std::set<int> nodes;
  for (size_t i = 0; i < static_cast<size_t>(request.workers); ++i) {
    const DevicePlace place = i < request.places.size() ? request.places[i] : DevicePlace{};
    if (place.name.empty()) return "workers have no devices";
    if (place.numa_node < 0) return absl::StrCat("where ", place.name, " sits is unknown");
    nodes.insert(place.numa_node);
  }
  return nodes.size() == 1 ? "all devices are near one NUMA node" : "";
}

BindingPlan NotBound(const std::string& why, bool asked) {
  BindingPlan plan;
  plan.why = absl::StrCat("workers are not bound: ", why);
  if (asked) plan.warning = plan.why;
  return plan;
}

const char* Object(BindMode mode) {
  switch (mode) {
    case BindMode::kNuma:
      return "NUMA nodes";
    case BindMode::kSocket:
      return "sockets";
    case BindMode::kL3:
      return "largest caches";
    default:
      return "cores of their own";
  }
}

BindingPlan MakePlan(const Planner& planner, const std::vector<Cores>& dealt, BindMode mode,
                     bool asked) {
  BindingPlan plan;
  const std::vector<size_t> shares = planner.Shares(dealt);
  for (size_t i = 0; i < dealt.size(); ++i) {
    plan.workers.push_back(planner.Bind(i, dealt[i], shares[i], asked));
  }
  plan.why = absl::StrCat("workers are bound to ", Object(mode),
                          planner.is_near() ? " near their devices" : ", dealt evenly");
  return plan;
}

BindingPlan PlanAuto(const Planner& planner, const BindRequest& request) {
  for (size_t i = 0; i < static_cast<size_t>(request.workers); ++i) {
    const DevicePlace& place = request.places[i];
    if (!planner.NearKnownCores(place)) {
      return NotBound(absl::StrCat("no CPU near ", place.name, " may be used"), false);
    }
  }
  const size_t even = planner.num_cores() / static_cast<size_t>(request.workers);
  for (const BindMode mode : {BindMode::kNuma, BindMode::kSocket}) {
    const std::vector<Cores> dealt = planner.DealNearWith(mode, even);
    if (!dealt.empty()) return MakePlan(planner, dealt, mode, /*asked=*/false);
  }
  return NotBound("near their devices some would have less than an even share of the cores", false);
}

// A range of cores, in one socket or counted over all.
struct SlotRange {
  int socket = -1;  // -1 for all sockets.
  int first = 0, last = kAllSlots;
};

std::optional<std::vector<SlotRange>> ReadSlots(absl::string_view text) {
  std::vector<SlotRange> ranges;
  int socket = -1;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    SlotRange range;
    if (const size_t colon = part.find(':'); colon != part.npos) {
      const bool number = absl::SimpleAtoi(part.substr(0, colon), &socket) && socket >= 0;
      if (!number) return std::nullopt;
      part.remove_prefix(colon + 1);
    }
    range.socket = socket;
    if (part == "*") {
      ranges.push_back(range);
      continue;
    }
    const size_t dash = part.find('-');
    const bool good =
        absl::SimpleAtoi(part.substr(0, dash), &range.first) && range.first >= 0 &&
        absl::SimpleAtoi(dash == part.npos ? part : part.substr(dash + 1), &range.last) &&
        range.last >= range.first && range.last < kAllSlots && part[0] != '+';
    if (!good) return std::nullopt;
    ranges.push_back(range);
  }
  return ranges;
}

// All cores of the machine, including those that may not be used, in the order of `UsableCores`.
std::vector<Core> AllCores(const Topology& topology) {
  std::vector<int> all;
  for (const Cpu& cpu : topology.cpus) all.push_back(cpu.id);
  return UsableCores(topology, all);
}

// The CPUs of `range`; unset if one of its cores does not exist.
std::optional<std::vector<int>> CpusOf(const SlotRange& range, const std::vector<Core>& cores) {
  std::vector<int> cpus;
  int number = 0;
  for (const Core& core : cores) {
    if (range.socket >= 0 && core.first.socket != range.socket) continue;
    if (number >= range.first && number <= range.last) {
      cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
    }
    ++number;
  }
  const bool there = range.last == kAllSlots ? number > 0 : number > range.last;
  return there ? std::optional(cpus) : std::nullopt;
}

BindingPlan PlanSlots(const Topology& topology, const std::vector<int>& allowed,
                      const BindRequest& request) {
  if (request.slots.size() != static_cast<size_t>(request.workers)) {
    return NotBound(absl::StrCat(Count(request.slots.size(), "list"), " of slots for ",
                                 Count(static_cast<size_t>(request.workers), "worker")),
                    /*asked=*/true);
  }
  const std::vector<Core> cores = AllCores(topology);
  BindingPlan plan;
  for (const std::string& slots : request.slots) {
    std::set<int> cpus, of_cores;
    for (const SlotRange& range : ReadSlots(slots).value_or(std::vector<SlotRange>())) {
      const auto found = CpusOf(range, cores);
      if (!found) return NotBound(absl::StrCat("this host has no slot ", slots), true);
      cpus.insert(found->begin(), found->end());
    }
    WorkerBinding binding;
    for (const Cpu& cpu : topology.cpus) {
      if (!cpus.contains(cpu.id)) continue;
      if (std::find(allowed.begin(), allowed.end(), cpu.id) == allowed.end()) {
        return NotBound(absl::StrCat("CPU ", cpu.id, " of slot ", slots, " may not be used"), true);
      }
      of_cores.insert(cpu.core);
    }
    binding.cpus.assign(cpus.begin(), cpus.end());
    binding.cores = static_cast<int>(of_cores.size());
    plan.workers.push_back(std::move(binding));
  }
  plan.why = "workers are bound to the slots that were named";
  return plan;
}

}  // namespace

const char* BindModeName(BindMode mode) {
  switch (mode) {
    case BindMode::kAuto:
      return "auto";
    case BindMode::kNone:
      return "none";
    case BindMode::kNuma:
      return "numa";
    case BindMode::kSocket:
      return "socket";
    case BindMode::kCore:
      return "core";
    case BindMode::kL3:
      return "l3";
    case BindMode::kSlots:
      return "slots";
  }
  return "";
}

bool IsSlotList(absl::string_view text) { return ReadSlots(text).has_value(); }

bool NeedsTopology(const BindRequest& request) {
  if (request.mode == BindMode::kNone) return false;
  return request.mode != BindMode::kAuto || NothingToGain(request).empty();
}

BindingPlan PlanBinding(const Topology& topology, const std::vector<int>& allowed,
                        const BindRequest& request) {
  if (request.mode == BindMode::kNone) return NotBound("as asked", false);
  const bool asked = request.mode != BindMode::kAuto;
  if (!asked) {
    if (const std::string why = NothingToGain(request); !why.empty()) return NotBound(why, false);
  }
  if (request.mode == BindMode::kSlots) return PlanSlots(topology, allowed, request);
  Planner planner(UsableCores(topology, allowed), request);
  const auto workers = static_cast<size_t>(request.workers);
  const auto least = static_cast<size_t>(std::max(request.cores_each, 1));
  if (planner.num_cores() / least < workers) {
    return NotBound(
        absl::StrCat(
            Count(workers, "worker"),
            request.cores_each > 0 ? absl::StrCat(" with ", Count(least, "core"), " each") : "",
            " have ", Count(planner.num_cores(), "core")),
        asked);
  }
  if (!asked) return PlanAuto(planner, request);
  const std::vector<Cores> dealt = planner.Deal(request.mode);
  return MakePlan(planner, dealt, request.mode, asked);
}

}  // namespace hlaunch
