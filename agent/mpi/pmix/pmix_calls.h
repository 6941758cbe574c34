// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/mpi/pmix/group_parts.h"
#include "agent/mpi/pmix/pmix_library.h"
#include "agent/workers/worker/spawn_request.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// The work that libpmix leaves to its host. All of these are called on libpmix's own thread and may
// not block.
struct PmixWork {
  using Data = absl::StatusOr<std::string>;
  using Done = std::function<void(Data)>;  // May be called from any thread, once.

  // Ranks of world 0 are the job's own; ranks of other worlds were spawned.
  std::function<void(int world, Rank)> on_connected;  // It has called MPI_Init.
  std::function<void(int world, Rank)> on_finalized;  // It is at the end of MPI_Finalize.
  std::function<void(int world, Rank, int code, std::string message)> on_abort;
  // The ranks of this node have entered a fence of `ranks` (empty: all ranks). `done` gets the data
  // of all nodes that have one of the ranks, one after the other.
  std::function<void(std::vector<Rank> ranks, std::string own, Done done)> fence;
  // The same for ranks that make the group `name`.
  using GroupDone = std::function<void(absl::StatusOr<GroupAnswer>)>;
  std::function<void(std::string name, std::vector<Rank> ranks, std::string own, GroupDone done)>
      group;
  // Asks for the data that `rank`, on another node, has given for others.
  std::function<void(Rank rank, Done done)> ask;
  // `rank` of `world` asks for `request`; `done` gets the name of the new world.
  std::function<void(int world, Rank rank, SpawnRequest request, Done done)> spawn;
  // True if it is certain that all ranks of all worlds are on this node.
  bool all_here = false;
};

// The name of a world of the job called `job`, and the reverse; unset if `name` is not a world of
// this job. Pure.
std::string PmixWorldName(absl::string_view job, int world);
std::optional<int> PmixWorldIn(absl::string_view name, absl::string_view job);

// The functions that libpmix calls when it needs its host. libpmix passes no pointer of ours to
// them, so `work` and `name_space`, the job's name, are kept in globals: one of each per process,
// and both must live as long as the process. `groups` says whether the library serves groups.
pmix_server_module_t* PmixCalls(const PmixWork* work, const std::string* name_space, bool groups);

}  // namespace hlaunch
