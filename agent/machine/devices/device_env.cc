// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/device_env.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

using Changes = std::vector<EnvChange>;

constexpr size_t kMostModules = 8;  // Gaudi's bridge refuses a longer list.

std::string Tokens(const std::vector<DeviceSlot>& slots) {
  return absl::StrJoin(slots, ",", [](std::string* out, const DeviceSlot& slot) {
    absl::StrAppend(out, slot.token);
  });
}

// A process sees at most one instance of a split GPU.
bool IsMig(const DeviceSlot& slot) { return absl::StartsWith(slot.token, "MIG-"); }

// Gaudi's bridge uses HLS_MODULE_ID if it is set, else element LOCAL_RANK of the list. Each worker
// gets its own id and all get the same list, because either alone fails if the ids are not 0 … n-1.
Changes GaudiEnv(const DeviceRequest& request, const DeviceChoice& choice, size_t worker) {
  Changes changes;
  if (!request.starts_others) changes.push_back({"HLS_MODULE_ID", choice.of_worker[worker].token});
  if (choice.list.size() <= kMostModules) {
    changes.push_back({"HABANA_VISIBLE_MODULES", Tokens(choice.list)});
  } else {
    changes.push_back({"HABANA_VISIBLE_MODULES", std::nullopt});
  }
  return changes;
}

Changes ListEnv(const DeviceRequest& request, const VisibleDevices& visible,
                const DeviceChoice& choice, size_t worker) {
  const DeviceSlot& own = choice.of_worker[worker];
  const bool alone =
      !request.starts_others && (request.isolate || request.virtual_local_rank || IsMig(own));
  if (own.token.empty() || (!alone && !choice.is_new)) return {};
  Changes changes = {{visible.variable, alone ? own.token : Tokens(choice.list)}};
  for (const std::string& other : visible.others) changes.push_back({other, std::nullopt});
  return changes;
}

// A worker's chips are one, a pair, or the whole host.
absl::Status AddTpuBounds(Changes& changes) {
  if (changes.empty() || !changes[0].value) return absl::OkStatus();
  const std::vector<std::string> tokens = absl::StrSplit(*changes[0].value, ',');
  const size_t chips = tokens.size();
  if (chips > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part of a TPU host is 1 or 2 chips, not ", chips));
  }
  changes.push_back({"TPU_CHIPS_PER_HOST_BOUNDS", chips == 1 ? "1,1,1" : "1,2,1"});
  changes.push_back({"TPU_HOST_BOUNDS", "1,1,1"});
  return absl::OkStatus();
}

// Without this oneCCL asks for an MPI launcher. If LOCAL_RANK is the same in all workers, oneCCL
// gets their numbers through variables of its own.
void AddOneCcl(const DeviceRequest& request, size_t worker, Changes& changes) {
  if (!request.virtual_local_rank) {
    changes.push_back({"CCL_PROCESS_LAUNCHER", "torchrun", /*is_default=*/true});
    return;
  }
  changes.push_back({"CCL_PROCESS_LAUNCHER", "none", /*is_default=*/true});
  changes.push_back({"CCL_LOCAL_RANK", absl::StrCat(worker), /*is_default=*/true});
  changes.push_back({"CCL_LOCAL_SIZE", absl::StrCat(request.workers), /*is_default=*/true});
}

}  // namespace

absl::StatusOr<std::vector<WorkerDevice>> DeviceEnv(DeviceKind kind, const DeviceRequest& request,
                                                    const VisibleDevices& visible,
                                                    const DeviceChoice& choice) {
  std::vector<WorkerDevice> workers;
  for (size_t i = 0; i < choice.of_worker.size(); ++i) {
    WorkerDevice worker;
    worker.device = choice.of_worker[i].device;
    worker.env = kind == DeviceKind::kHpu ? GaudiEnv(request, choice, i)
                                          : ListEnv(request, visible, choice, i);
    if (kind == DeviceKind::kCuda && !visible.unordered) {
      worker.env.push_back({"CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*is_default=*/true});
    }
    if (kind == DeviceKind::kXpu) AddOneCcl(request, i, worker.env);
    if (kind == DeviceKind::kTpu) {
      if (absl::Status status = AddTpuBounds(worker.env); !status.ok()) return status;
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

}  // namespace hlaunch
