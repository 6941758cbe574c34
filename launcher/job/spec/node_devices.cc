// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/node_devices.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/machine/devices/assign_devices.h"
#include "launcher/text/parse_int.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr char kCpuWord[] = "cpu";
constexpr int kMostWorkers = 1 << 16;  // On one node, however many objects it has.

// Returns whether `word` is a number of workers for each object, as in "2:socket".
bool IsPerObject(const std::string& word) { return absl::StrContains(word, ':'); }

absl::StatusOr<int> CountPerObject(const std::string& word, const HostProbes& probes) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(word, ':');
  HLAUNCH_ASSIGN_OR_RETURN(const int objects, probes.count_objects(parts.second));
  int each = 0;
  const int most = kMostWorkers / std::max(objects, 1);
  if (objects > 0 && ParseInt(parts.first, 1, most, &each)) return each * objects;
  return absl::InvalidArgumentError(absl::StrCat("this host has ", objects, " of them"));
}

DeviceRequest MakeRequest(const Options& options, const JobSpec& spec) {
  DeviceRequest request = options.devices;
  request.several_nodes = NeedsGrpc(spec);
  request.kinds = KindsOfWord(options.nproc_word);
  request.virtual_local_rank = options.worker.virtual_local_rank;
  return request;
}

// Returns this node's part of -n, of which no node but a lone one may have less than `count`, the
// number of objects times their workers.
absl::StatusOr<int> ShareOf(const Options& options, int count) {
  const int share = options.nproc_share.value_or(count);
  if (share == count || (share < count && options.policy.max_nodes == 1)) return share;
  return absl::InvalidArgumentError(
      absl::StrCat("these are ", count, count == 1 ? " worker" : " workers",
                   " on this host, and its part of -n is ", share,
                   ": leave -n out, or write a number for each host (-N, ppr:N:node)"));
}

// Returns the number of workers that the word of --nproc-per-node stands for.
absl::StatusOr<int> CountWorkers(const Options& options, const DeviceRequest& request,
                                 const std::vector<Device>& devices, const EnvMap& env,
                                 const HostProbes& probes) {
  if (options.nproc_word == kCpuWord) return probes.usable_cpus();
  if (IsPerObject(options.nproc_word)) {
    HLAUNCH_ASSIGN_OR_RETURN(const int all, CountPerObject(options.nproc_word, probes));
    return ShareOf(options, all);
  }
  HLAUNCH_ASSIGN_OR_RETURN(const int count, CountDevices(request, devices, env));
  if (count > 0) return count;
  if (request.kinds.empty()) return probes.usable_cpus();  // The word is "auto".
  return absl::InvalidArgumentError("no device is left for workers; see hlaunch devices");
}

DevicePlace PlaceOf(const Device* device) {
  if (device == nullptr) return {};
  return {absl::StrCat(KindName(device->kind), " ", device->id), device->numa_node};
}

absl::Status Assign(const Options& options, const HostProbes& probes, JobSpec& spec) {
  const std::vector<Device> devices = probes.find_devices(options.sysroot);
  const EnvMap env = ToEnvMap(spec.worker.inherited_env);
  DeviceRequest request = MakeRequest(options, spec);
  if (options.nproc) {
    spec.worker.nproc = *options.nproc;
  } else {
    HLAUNCH_ASSIGN_OR_RETURN(spec.worker.nproc,
                             CountWorkers(options, request, devices, env, probes));
    // A user who counts CPUs wants no devices, unless --devices names some.
    const bool counts_cpus = options.nproc_word == kCpuWord || IsPerObject(options.nproc_word);
    request.none = request.none || (counts_cpus && !request.ids);
  }
  request.workers = spec.worker.nproc;
  spec.worker.starts_others = options.devices.starts_others;
  HLAUNCH_ASSIGN_OR_RETURN(const DevicePlan plan, AssignDevices(request, devices, env));
  for (const WorkerDevice& worker : plan.workers) spec.worker.device_env.push_back(worker.env);
  spec.worker.on_neuron =
      plan.workers[0].device != nullptr && plan.workers[0].device->kind == DeviceKind::kNeuron;
  for (const WorkerDevice& worker : plan.workers) spec.places.push_back(PlaceOf(worker.device));
  for (const Device* device : plan.unused) spec.places.push_back(PlaceOf(device));
  spec.warnings.insert(spec.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  if (!devices.empty()) spec.notes.push_back(plan.why);
  return absl::OkStatus();
}

}  // namespace

absl::Status AssignNodeDevices(const Options& options, const HostProbes& probes, JobSpec& spec) {
  const absl::Status status = Assign(options, probes, spec);
  if (status.ok() || options.nproc_word.empty()) return status;
  return absl::Status(
      status.code(), absl::StrCat("--nproc-per-node ", options.nproc_word, ": ", status.message()));
}

}  // namespace hlaunch
