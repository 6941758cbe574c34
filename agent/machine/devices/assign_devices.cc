// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/assign_devices.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/machine/devices/device_env.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using Slots = std::vector<DeviceSlot>;

bool IsAsked(const DeviceRequest& request) {
  return !request.kinds.empty() || request.ids.has_value();
}

std::optional<DeviceKind> ChooseKind(const DeviceRequest& request,
                                     const std::vector<Device>& devices) {
  std::vector<DeviceKind> kinds = request.kinds;
  if (kinds.empty()) kinds.assign(std::begin(kDeviceKinds), std::end(kDeviceKinds));
  for (const DeviceKind kind : kinds) {
    if (std::any_of(devices.begin(), devices.end(),
                    [kind](const Device& d) { return d.kind == kind && d.id >= 0; })) {
      return kind;
    }
  }
  return std::nullopt;
}

std::string KindNames(const std::vector<DeviceKind>& kinds) {
  return absl::StrJoin(kinds, " or ", [](std::string* out, DeviceKind kind) {
    absl::StrAppend(out, KindName(kind));
  });
}

// Says why none of the requested kinds can be used, as far as it is known.
absl::Status NoDevice(const DeviceRequest& request, const std::vector<Device>& devices) {
  const std::string wanted =
      request.kinds.empty() ? "accelerator" : KindNames(request.kinds) + " device";
  std::string why;
  for (const Device& device : devices) {
    const bool meant =
        request.kinds.empty() ||
        std::find(request.kinds.begin(), request.kinds.end(), device.kind) != request.kinds.end();
    if (meant && why.empty()) {
      why = absl::StrCat(" (", device.model, " ", device.pci_address, ": ", device.fault, ")");
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "this node has no ", wanted, " that workers can use", why, "; see hlaunch devices"));
}

std::vector<int> IdsOf(const Slots& slots) {
  std::vector<int> ids;
  for (const DeviceSlot& slot : slots) {
    if (slot.id >= 0) ids.push_back(slot.id);
  }
  return ids;
}

// "hpu 0-3", "cuda GPU-…".
std::string NamesOf(DeviceKind kind, const Slots& slots) {
  const std::vector<int> ids = IdsOf(slots);
  if (ids.size() == slots.size()) return absl::StrCat(KindName(kind), " ", FormatIds(ids));
  return absl::StrCat(KindName(kind), " ",
                      absl::StrJoin(slots, ",", [](std::string* out, const DeviceSlot& slot) {
                        absl::StrAppend(out, slot.token);
                      }));
}

absl::StatusOr<Slots> Select(DeviceKind kind, const VisibleDevices& visible,
                             const DeviceRequest& request) {
  if (!request.ids) return visible.slots;
  if (!visible.foreign.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices does not go with ", visible.foreign, ", which chooses them too"));
  }
  Slots chosen;
  std::set<int> seen;
  for (const int id : *request.ids) {
    const auto slot = std::find_if(visible.slots.begin(), visible.slots.end(),
                                   [id](const DeviceSlot& s) { return s.id == id; });
    if (slot == visible.slots.end() || !seen.insert(id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices names ", KindName(kind), " ", id,
                       slot == visible.slots.end() ? "; this node has " : " twice; this node has ",
                       visible.slots.empty() ? "none" : NamesOf(kind, visible.slots),
                       visible.by.empty() ? "" : absl::StrCat(" by ", visible.by)));
    }
    chosen.push_back(*slot);
  }
  return chosen;
}

// What keeps a worker from using its device; empty if nothing does.
std::string Obstacle(const DeviceSlot& slot) {
  if (slot.device == nullptr) return "";
  const Device& device = *slot.device;
  const std::string name =
      absl::StrCat(KindName(device.kind), " ", device.id, " (", device.node_path, ")");
  if (!device.fault.empty()) return absl::StrCat(name, " is not operational: ", device.fault);
  if (!IsExclusive(device.kind) || device.holders.empty()) return "";
  const DeviceHolder& holder = device.holders[0];
  return absl::StrCat(name, " is held by ", holder.command.empty() ? "a process" : holder.command,
                      " (pid ", holder.pid, ")");
}

bool AllFree(const Slots& slots) {
  return std::all_of(slots.begin(), slots.end(),
                     [](const DeviceSlot& slot) { return Obstacle(slot).empty(); });
}

// The cards of a server are wired in pairs, fours and eights. A container or a virtual machine with
// fewer cards uses all that it was given.
bool IsWired(const Slots& cards, size_t all_cards) {
  if (cards.size() <= 1 || cards.size() == all_cards) return true;
  const int size = static_cast<int>(cards.size());
  if (size != 2 && size != 4 && size != 8) return false;
  std::vector<int> ids = IdsOf(cards);
  std::sort(ids.begin(), ids.end());
  return ids.size() == cards.size() && ids.front() % size == 0 &&
         ids.back() - ids.front() == size - 1;
}

// Chooses `count` cards that are wired to each other, free ones if possible.
Slots ChooseCards(const Slots& slots, size_t count, size_t all_cards) {
  const Slots first(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(count));
  std::vector<Slots> choices = {first};
  for (const DeviceSlot& start : slots) {
    Slots block;
    for (const DeviceSlot& slot : slots) {
      if (slot.id >= start.id && slot.id < start.id + static_cast<int>(count))
        block.push_back(slot);
    }
    if (block.size() == count) choices.push_back(std::move(block));
  }
  const auto best = std::find_if(choices.begin(), choices.end(), [&](const Slots& choice) {
    return IsWired(choice, all_cards) && AllFree(choice);
  });
  if (best != choices.end()) return *best;
  const auto wired = std::find_if(choices.begin(), choices.end(),
                                  [&](const Slots& choice) { return IsWired(choice, all_cards); });
  return wired != choices.end() ? *wired : first;
}

// Chooses one slot for each worker. If there are too few slots, it starts again from the first.
Slots Choose(DeviceKind kind, const DeviceRequest& request, const Slots& slots, size_t count,
             size_t all_cards) {
  Slots first;
  for (size_t i = 0; i < count; ++i) first.push_back(slots[i % slots.size()]);
  if (kind == DeviceKind::kAscend) {
    std::sort(first.begin(), first.end(),
              [](const DeviceSlot& a, const DeviceSlot& b) { return a.id < b.id; });
  }
  if (request.ids || count >= slots.size() || !IsExclusive(kind)) return first;
  if (kind == DeviceKind::kHpu) return ChooseCards(slots, count, all_cards);
  Slots free;
  for (const DeviceSlot& slot : slots) {
    if (free.size() < count && Obstacle(slot).empty()) free.push_back(slot);
  }
  return free.size() == count ? free : first;
}

bool SameTokens(const Slots& a, const Slots& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const DeviceSlot& x, const DeviceSlot& y) { return x.token == y.token; });
}

// Makes the list that all workers may see: their own slots in the order of local ranks, then the
// rest. Gaudi's list holds exactly the cards that work together: those used here if hlaunch starts
// all workers on this one node, else all of the node.
DeviceChoice MakeChoice(DeviceKind kind, const DeviceRequest& request,
                        const VisibleDevices& visible, const Slots& slots, Slots of_worker) {
  DeviceChoice choice;
  const bool used_only = kind == DeviceKind::kHpu
                             ? !request.several_nodes && !request.starts_others
                             : IsExclusive(kind) && !request.ids && !request.starts_others;
  for (const Slots* source : {&std::as_const(of_worker), &slots}) {
    if (source == &slots && used_only) break;
    for (const DeviceSlot& slot : *source) {
      const bool known =
          std::any_of(choice.list.begin(), choice.list.end(),
                      [&slot](const DeviceSlot& s) { return s.token == slot.token; });
      if (!known) choice.list.push_back(slot);
    }
  }
  const bool inherited = visible.by.empty() || visible.by == visible.variable;
  Slots as_is = visible.slots;
  if (!request.ids) as_is.resize(std::min(as_is.size(), choice.list.size()));
  choice.is_new = !inherited || !SameTokens(choice.list, as_is);
  choice.of_worker = std::move(of_worker);
  return choice;
}

// Collects the objections to a choice. The first one becomes the error, unless objections are only
// warnings.
class Objections {
 public:
  Objections(const DeviceRequest& request, DevicePlan& plan) : request_(request), plan_(plan) {}

  void Add(absl::StatusCode code, const std::string& text) {
    plan_.warnings.push_back(text);
    if (request_.oversubscribe || !status_.ok()) return;
    status_ = absl::Status(
        code, absl::StrCat(text, "; --oversubscribe starts the workers anyway",
                           IsAsked(request_) ? "" : ", --devices none without devices"));
  }
  const absl::Status& status() const { return status_; }

 private:
  const DeviceRequest& request_;
  DevicePlan& plan_;
  absl::Status status_;
};

std::string Workers(size_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

// Checks the choice. Each objection is an error, or else a warning in `plan`.
absl::Status Check(DeviceKind kind, const DeviceRequest& request, const Slots& slots,
                   const Slots& of_worker, size_t all_cards, DevicePlan& plan) {
  Objections objections(request, plan);
  const Slots& used = request.starts_others ? slots : of_worker;
  if (of_worker.size() > slots.size()) {
    objections.Add(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(Workers(of_worker.size()), " and only ", NamesOf(kind, slots)));
  } else if (kind == DeviceKind::kHpu && !IsWired(used, all_cards)) {
    objections.Add(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(NamesOf(kind, used),
                                " are not wired to each other: Gaudi cards "
                                "work together as 0-1, 2-3, …, as 0-3 or 4-7, or all"));
  }
  std::set<std::string> told;
  for (const DeviceSlot& slot : used) {
    const std::string obstacle = Obstacle(slot);
    if (obstacle.empty() || !told.insert(obstacle).second) continue;
    if (IsExclusive(kind) || IsAsked(request)) {
      objections.Add(absl::StatusCode::kResourceExhausted, obstacle);
    } else {
      plan.warnings.push_back(obstacle);
    }
  }
  return objections.status();
}

// Who asks for devices wants no fewer than the list names. Others need none.
absl::Status CheckList(const DeviceRequest& request, const VisibleDevices& visible) {
  if (visible.doubt.empty() || !IsAsked(request) || request.oversubscribe) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(visible.doubt, "; correct the list or unset it"));
}

absl::Status NoneLeft(DeviceKind kind, const VisibleDevices& visible) {
  return absl::InvalidArgumentError(absl::StrCat(
      "no ", KindName(kind), " is left for workers",
      visible.by.empty()
          ? "; name the instances of split GPUs (nvidia-smi -L) in CUDA_VISIBLE_DEVICES"
          : absl::StrCat(": ", visible.by, " names none of this node's; see hlaunch devices")));
}

std::string Sentence(DeviceKind kind, const DeviceRequest& request, const VisibleDevices& visible,
                     const Slots& of_worker) {
  const std::string by = visible.by.empty() ? "" : absl::StrCat(" (by ", visible.by, ")");
  if (request.starts_others) {
    return absl::StrCat("the worker starts its node's others, and all see ",
                        NamesOf(kind, visible.slots), by);
  }
  return absl::StrCat("local ranks 0-", of_worker.size() - 1, " get ", NamesOf(kind, of_worker),
                      " in this order", by);
}

}  // namespace

std::vector<DeviceKind> KindsOfWord(absl::string_view word) {
  if (word == "gpu") return {DeviceKind::kCuda, DeviceKind::kRocm};
  if (word == "npu") return {DeviceKind::kAscend};
  for (const DeviceKind kind : kDeviceKinds) {
    if (word == KindName(kind)) return {kind};
  }
  return {};
}

absl::StatusOr<int> CountDevices(const DeviceRequest& request, const std::vector<Device>& devices,
                                 const EnvMap& env) {
  const std::optional<DeviceKind> kind = ChooseKind(request, devices);
  if (request.none || !kind) {
    if (!request.none && IsAsked(request)) return NoDevice(request, devices);
    return 0;
  }
  HLAUNCH_ASSIGN_OR_RETURN(const VisibleDevices visible, FindVisible(*kind, devices, env));
  HLAUNCH_ASSIGN_OR_RETURN(const Slots slots, Select(*kind, visible, request));
  HLAUNCH_RETURN_IF_ERROR(CheckList(request, visible));
  const bool none_left = slots.empty() && visible.foreign.empty();
  if (none_left && IsAsked(request)) return NoneLeft(*kind, visible);
  return static_cast<int>(slots.size());
}

absl::StatusOr<DevicePlan> AssignDevices(const DeviceRequest& request,
                                         const std::vector<Device>& devices, const EnvMap& env) {
  DevicePlan plan;
  plan.workers.resize(static_cast<size_t>(request.workers));
  const std::optional<DeviceKind> kind = ChooseKind(request, devices);
  if (request.none || !kind) {
    if (!request.none && IsAsked(request)) return NoDevice(request, devices);
    plan.why = request.none ? "no devices are assigned: --devices none" : "no accelerators here";
    const std::string doubt = request.none ? "" : ListWithoutDevices(env);
    if (!doubt.empty()) plan.warnings.push_back(doubt);
    return plan;
  }
  HLAUNCH_ASSIGN_OR_RETURN(const VisibleDevices visible, FindVisible(*kind, devices, env));
  HLAUNCH_ASSIGN_OR_RETURN(const Slots slots, Select(*kind, visible, request));
  HLAUNCH_RETURN_IF_ERROR(CheckList(request, visible));
  if (!visible.doubt.empty()) plan.warnings.push_back(visible.doubt);
  const size_t count = static_cast<size_t>(request.workers);
  if (!visible.foreign.empty()) {
    plan.why = absl::StrCat(visible.foreign, " chooses the devices of all workers");
    const DeviceChoice unknown{Slots(count), {}, false};
    HLAUNCH_ASSIGN_OR_RETURN(plan.workers, DeviceEnv(*kind, request, visible, unknown));
    return plan;
  }
  if (slots.empty() && IsAsked(request)) return NoneLeft(*kind, visible);
  if (slots.empty() || (count > slots.size() && !IsAsked(request))) {
    plan.why = absl::StrCat("no devices are assigned: ", Workers(count), " and ", slots.size(), " ",
                            KindName(*kind), visible.by.empty() ? "" : " by " + visible.by);
    if (!slots.empty()) plan.warnings.push_back(plan.why);
    return plan;
  }
  const size_t all_cards =
      static_cast<size_t>(std::count_if(devices.begin(), devices.end(), [&](const Device& device) {
        return device.kind == *kind && device.id >= 0;
      }));
  Slots of_worker = Choose(*kind, request, slots, count, all_cards);
  HLAUNCH_RETURN_IF_ERROR(Check(*kind, request, slots, of_worker, all_cards, plan));
  plan.why = Sentence(*kind, request, visible, of_worker);
  for (const DeviceSlot& slot : slots) {
    const bool used = std::any_of(of_worker.begin(), of_worker.end(),
                                  [&slot](const DeviceSlot& s) { return s.token == slot.token; });
    if (!used) plan.unused.push_back(slot.device);
  }
  const DeviceChoice choice = MakeChoice(*kind, request, visible, slots, std::move(of_worker));
  HLAUNCH_ASSIGN_OR_RETURN(plan.workers, DeviceEnv(*kind, request, visible, choice));
  return plan;
}

}  // namespace hlaunch
