// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/visible_devices.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/machine/devices/device_files.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using Slots = std::vector<DeviceSlot>;

constexpr int kMaxId = 4096;

std::optional<std::string> Get(const EnvMap& env, const std::string& name) {
  const auto it = env.find(name);
  return it == env.end() ? std::nullopt : std::optional<std::string>(it->second);
}

std::vector<std::string> Tokens(const std::string& list) {
  std::vector<std::string> tokens;
  for (absl::string_view token : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    tokens.emplace_back(absl::StripAsciiWhitespace(token));
  }
  return tokens;
}

// The names in `list` as the runtimes read it: up to the first place without a name.
std::vector<std::string> NamesUpToGap(const std::string& list) {
  std::vector<std::string> names;
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) break;
    names.emplace_back(part);
  }
  return names;
}

bool HasParts(DeviceKind kind, const EnvMap& env) {
  if (kind == DeviceKind::kNeuron) return true;
  // With FLAT, the drivers' default, and with COMBINED each tile is a device.
  return kind == DeviceKind::kXpu &&
         Get(env, "ZE_FLAT_DEVICE_HIERARCHY").value_or("FLAT") != "COMPOSITE";
}

Slots AllSlots(DeviceKind kind, const std::vector<Device>& devices, const EnvMap& env) {
  Slots slots;
  int next = 0;
  for (const Device& device : devices) {
    if (device.kind != kind) continue;
    // Split GPUs get no slot here: a process sees one instance of a split GPU and no GPU beside it,
    // and only by name.
    if (device.id < 0 || !device.mig.empty()) continue;
    const int parts = HasParts(kind, env) ? device.parts : 1;
    const int first = kind == DeviceKind::kXpu ? next : device.id * parts;
    next += parts;
    for (int part = 0; part < parts; ++part) {
      slots.push_back({&device, first + part, absl::StrCat(first + part)});
    }
  }
  return slots;
}

const DeviceSlot* ById(const Slots& slots, const std::string& token) {
  const int id = NumberAfter(token, "");
  const auto it = std::find_if(slots.begin(), slots.end(),
                               [id](const DeviceSlot& slot) { return id >= 0 && slot.id == id; });
  return it == slots.end() ? nullptr : &*it;
}

const DeviceSlot* ByUuid(const Slots& slots, const std::string& token) {
  const auto it = std::find_if(slots.begin(), slots.end(), [&token](const DeviceSlot& slot) {
    return slot.device != nullptr && !slot.device->uuid.empty() &&
           absl::StartsWith(slot.device->uuid, token);
  });
  return it == slots.end() ? nullptr : &*it;
}

const DeviceSlot* FindSlot(const Slots& all, const std::string& token) {
  const DeviceSlot* const slot = ById(all, token);
  return slot == nullptr && absl::StartsWith(token, "GPU-") ? ByUuid(all, token) : slot;
}

// Whether `token` is the name of a device or of a part that may be here though it is not known.
bool MayBeHere(const Slots& all, const std::string& token) {
  if (absl::StartsWith(token, "MIG-")) return true;
  return absl::StartsWith(token, "GPU-") &&
         std::any_of(all.begin(), all.end(),
                     [](const DeviceSlot& slot) { return slot.device->uuid.empty(); });
}

// The slots that `list` names, up to the first unknown name: the runtimes stop there.
Slots Named(const Slots& all, const std::string& list) {
  Slots named;
  for (const std::string& token : NamesUpToGap(list)) {
    const DeviceSlot* const slot = FindSlot(all, token);
    if (slot == nullptr && !MayBeHere(all, token)) break;
    named.push_back(slot != nullptr ? *slot : DeviceSlot{});
    named.back().token = token;
  }
  return named;
}

std::string KnownIds(const Slots& slots) {
  std::vector<int> ids;
  for (const DeviceSlot& slot : slots) ids.push_back(slot.id);
  return ids.empty() ? "none" : FormatIds(ids);
}

// Whether people write `token` to end a list, or for no device at all.
bool EndsList(const std::string& token) {
  return NumberAfter(token, "-") >= 0 || token == "none" || token == "void" ||
         token == "NoDevFiles";
}

// What `list` names that is not in `all`, such as the range 0-1; empty: nothing.
std::string AbsentName(const Slots& all, const std::string& list) {
  for (const std::string& token : Tokens(list)) {
    if (FindSlot(all, token) != nullptr || MayBeHere(all, token)) continue;
    return EndsList(token) ? "" : token;
  }
  return "";
}

// What helps where a list has a range: it is written with commas.
std::string HintOnRange(const std::string& token) {
  const auto ids = ParseIds(token);
  return ids && ids->size() > 1 && ids->size() <= 64
             ? absl::StrCat("; write ", absl::StrJoin(*ids, ","))
             : "";
}

// Applies the list that a container was started with: `variable` holds kernel numbers, or NVIDIA's
// UUIDs. If the device nodes are already limited to that many, the numbers may be another machine's
// and are ignored.
void KeepToContainer(const EnvMap& env, const std::string& variable, VisibleDevices& visible) {
  const std::vector<std::string> tokens = Tokens(Get(env, variable).value_or(""));
  if (tokens.empty() || tokens[0] == "all" || tokens[0] == "none" || tokens[0] == "void" ||
      visible.slots.size() <= tokens.size()) {
    return;
  }
  Slots kept;
  for (const DeviceSlot& slot : visible.slots) {
    const bool named = std::any_of(tokens.begin(), tokens.end(), [&slot](const std::string& token) {
      return token == absl::StrCat(slot.device->index) ||
             (!slot.device->uuid.empty() && token == slot.device->uuid);
    });
    if (named) kept.push_back(slot);
  }
  if (kept.empty()) return;
  visible.slots = std::move(kept);
  visible.by = variable;
}

absl::Status KeepToModules(const EnvMap& env, VisibleDevices& visible) {
  const std::optional<std::string> list = Get(env, visible.variable);
  if (!list || Tokens(*list).empty() || *list == "all") return absl::OkStatus();
  Slots kept;
  std::set<std::string> seen;
  for (const std::string& token : Tokens(*list)) {
    const DeviceSlot* slot = ById(visible.slots, token);
    if (slot == nullptr || !seen.insert(token).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          visible.variable, "=", *list, " names ", token, slot == nullptr ? "" : " twice",
          "; the modules of this node are ", KnownIds(visible.slots)));
    }
    kept.push_back(*slot);
  }
  visible.slots = std::move(kept);
  visible.by = visible.variable;
  return absl::OkStatus();
}

// What of `list` is behind a place without a name, as in ",0,1"; empty: nothing.
std::string BehindGap(const std::string& list) {
  const size_t before = NamesUpToGap(list).size();
  const std::vector<std::string> all = Tokens(list);
  return before < all.size() ? all[before] : "";
}

void KeepTo(const EnvMap& env, const std::string& variable, VisibleDevices& visible) {
  const std::optional<std::string> list = Get(env, variable);
  if (!list) return;
  if (const std::string behind = BehindGap(*list); !behind.empty()) {
    visible.doubt = absl::StrCat(variable, "=", *list, " has a comma without a device before ",
                                 behind, "; programs see what stands before the gap");
  }
  if (const std::string absent = AbsentName(visible.slots, *list); !absent.empty()) {
    visible.doubt = absl::StrCat(variable, "=", *list, " names ", absent, ", and this node has ",
                                 KnownIds(visible.slots), "; programs see what stands before it",
                                 HintOnRange(absent));
  }
  visible.slots = Named(visible.slots, *list);
  visible.by = variable;
}

// What two names of one device share. Parts of a device (MIG) are devices of their own.
std::string DeviceOf(const DeviceSlot& slot) {
  const bool is_part = absl::StartsWith(slot.token, "MIG-");
  if (is_part || slot.device == nullptr) return slot.token;
  return absl::StrCat("device ", slot.device->index);
}

enum class Spelling { kNumber, kGpu, kInstance };

Spelling SpellingOf(const std::string& token) {
  if (absl::StartsWith(token, "GPU-")) return Spelling::kGpu;
  return absl::StartsWith(token, "MIG-") ? Spelling::kInstance : Spelling::kNumber;
}

// CUDA reads a list as its first name is spelt: as numbers, GPU-… or MIG-…, and stops at the first
// name of another kind.
void StopAtOtherSpelling(VisibleDevices& visible) {
  const Slots& slots = visible.slots;
  const auto other = std::find_if(slots.begin(), slots.end(), [&slots](const DeviceSlot& slot) {
    return SpellingOf(slot.token) != SpellingOf(slots.front().token);
  });
  if (other == slots.end()) return;
  visible.doubt = absl::StrCat(visible.variable, " names ", slots.front().token, " and ",
                               other->token, ", which are of different kinds (numbers, GPU-…, ",
                               "MIG-…); programs see what stands before the latter");
  visible.slots.erase(other, slots.end());
}

// CUDA shows no device at all if one is named twice. With two names for one, two workers would use
// it.
void RefuseTwice(VisibleDevices& visible) {
  std::set<std::string> seen;
  for (const DeviceSlot& slot : visible.slots) {
    if (seen.insert(DeviceOf(slot)).second) continue;
    visible.doubt = absl::StrCat(visible.variable, " names ", slot.token,
                                 " twice, and CUDA shows no device then");
    visible.slots.clear();
    return;
  }
}

bool SameModels(const Slots& slots) {
  return std::all_of(slots.begin(), slots.end(), [&slots](const DeviceSlot& slot) {
    return slot.device->model == slots[0].device->model;
  });
}

void KeepToCuda(const EnvMap& env, VisibleDevices& visible) {
  KeepToContainer(env, "NVIDIA_VISIBLE_DEVICES", visible);
  const bool named = env.contains(visible.variable);
  const std::string order =
      Get(env, "CUDA_DEVICE_ORDER").value_or(named ? "FASTEST_FIRST" : "PCI_BUS_ID");
  visible.unordered = order != "PCI_BUS_ID" && !SameModels(visible.slots);
  KeepTo(env, visible.variable, visible);
  RefuseTwice(visible);
  if (named) StopAtOtherSpelling(visible);
  if (!visible.unordered) return;
  for (DeviceSlot& slot : visible.slots) {
    if (NumberAfter(slot.token, "") >= 0) slot.device = nullptr;
  }
}

// ROCR's list filters the devices first, and HIP's list (or CUDA's in its place) counts what is
// left from 0. Both are replaced by one list for HIP, whose numbers hold once ROCR's list is
// removed.
void KeepToRocm(const EnvMap& env, VisibleDevices& visible) {
  const std::string rocr = "ROCR_VISIBLE_DEVICES";
  const std::string hip = visible.variable;
  const std::string upper = env.contains(hip)                      ? hip
                            : env.contains("CUDA_VISIBLE_DEVICES") ? "CUDA_VISIBLE_DEVICES"
                                                                   : "";
  const bool both = env.contains(rocr) && !upper.empty();
  KeepTo(env, rocr, visible);
  if (env.contains(rocr) && !both) visible.variable = rocr;
  for (const std::string& name : {rocr, hip, std::string("CUDA_VISIBLE_DEVICES")}) {
    if (name != visible.variable) visible.others.push_back(name);
  }
  if (upper.empty()) return;
  const Slots left = visible.slots;
  for (size_t i = 0; both && i < visible.slots.size(); ++i) {
    visible.slots[i].id = static_cast<int>(i);
  }
  KeepTo(env, upper, visible);
  for (DeviceSlot& slot : visible.slots) {
    if (both && slot.id >= 0) slot = left[static_cast<size_t>(slot.id)];
    if (slot.id >= 0) slot.token = absl::StrCat(slot.id);
  }
  if (both) visible.by = absl::StrCat(rocr, " and ", upper);
}

void KeepToXpu(const EnvMap& env, VisibleDevices& visible) {
  if (env.contains("ONEAPI_DEVICE_SELECTOR")) {
    visible.foreign = "ONEAPI_DEVICE_SELECTOR";
    return;
  }
  const std::string list = Get(env, visible.variable).value_or("");
  if (absl::StrContains(list, '.')) visible.foreign = visible.variable;  // Names tiles by card.
  if (!list.empty() && visible.foreign.empty()) KeepTo(env, visible.variable, visible);
}

void KeepToCores(const EnvMap& env, VisibleDevices& visible) {
  const std::optional<std::string> list = Get(env, visible.variable);
  if (!list) return;
  const std::optional<std::vector<int>> ids = ParseIds(*list);
  if (!ids) {
    visible.foreign = visible.variable;
    return;
  }
  visible.slots = Named(visible.slots, absl::StrJoin(*ids, ","));
  visible.by = visible.variable;
}

}  // namespace

EnvMap ToEnvMap(const std::vector<std::string>& entries) {
  EnvMap env;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) env.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return env;
}

absl::StatusOr<VisibleDevices> FindVisible(DeviceKind kind, const std::vector<Device>& devices,
                                           const EnvMap& env) {
  VisibleDevices visible;
  visible.slots = AllSlots(kind, devices, env);
  switch (kind) {
    case DeviceKind::kHpu:
      visible.variable = "HABANA_VISIBLE_MODULES";
      KeepToContainer(env, "HABANA_VISIBLE_DEVICES", visible);
      HLAUNCH_RETURN_IF_ERROR(KeepToModules(env, visible));
      break;
    case DeviceKind::kCuda:
      visible.variable = "CUDA_VISIBLE_DEVICES";
      KeepToCuda(env, visible);
      break;
    case DeviceKind::kRocm:
      visible.variable = "HIP_VISIBLE_DEVICES";
      KeepToRocm(env, visible);
      break;
    case DeviceKind::kXpu:
      visible.variable = "ZE_AFFINITY_MASK";
      KeepToXpu(env, visible);
      break;
    case DeviceKind::kAscend:
      visible.variable = "ASCEND_RT_VISIBLE_DEVICES";
      KeepTo(env, visible.variable, visible);
      break;
    case DeviceKind::kNeuron:
      visible.variable = "NEURON_RT_VISIBLE_CORES";
      KeepToCores(env, visible);
      break;
    case DeviceKind::kTpu:
      visible.variable = "TPU_VISIBLE_CHIPS";
      KeepTo(env, visible.variable, visible);
      break;
  }
  return visible;
}

std::string ListWithoutDevices(const EnvMap& env) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                           "HABANA_VISIBLE_MODULES", "ASCEND_RT_VISIBLE_DEVICES"}) {
    const std::string list = Get(env, name).value_or("");
    const std::vector<std::string> tokens = Tokens(list);
    if (tokens.empty() || EndsList(tokens.front())) continue;
    return absl::StrCat(name, "=", list,
                        " names devices, and there is none here: the workers get no device; see "
                        "hlaunch devices");
  }
  return "";
}

std::string FormatIds(const std::vector<int>& ids) {
  std::string text;
  for (size_t first = 0; first < ids.size();) {
    size_t last = first;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", ids[first]);
    if (last > first) absl::StrAppend(&text, "-", ids[last]);
    first = last + 1;
  }
  return text;
}

std::optional<std::vector<int>> ParseIds(absl::string_view text) {
  std::vector<int> ids;
  for (absl::string_view field : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(field, '-');
    const int first = NumberAfter(ends[0], "");
    const int last = NumberAfter(ends.back(), "");
    if (ends.size() > 2 || first < 0 || last < first || last >= kMaxId) return std::nullopt;
    for (int id = first; id <= last; ++id) ids.push_back(id);
    if (ids.size() > kMaxId) return std::nullopt;
  }
  return ids;
}

}  // namespace hlaunch
