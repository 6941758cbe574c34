// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/pmix/group_parts.h"
#include "agent/pmix/pmix_library.h"
#include "agent/worker/spawn_request.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// What libpmix cannot do alone. All of these are called on its own thread and may not block.
struct PmixWork {
  using Data = absl::StatusOr<std::string>;
  using Done = std::function<void(Data)>;  // May be called from any thread, once.

  // Ranks of world 0 are the job's own, those of others were spawned.
  std::function<void(int world, Rank)> on_connected;  // It has come to MPI_Init, or
  std::function<void(int world, Rank)> on_finalized;  // to the end of MPI_Finalize.
  std::function<void(int world, Rank, int code, std::string message)> on_abort;
  // The ranks of this node have come to a fence of `ranks`, none: of all. `done` gets what all
  // nodes that have one of them have said, one after the other.
  std::function<void(std::vector<Rank> ranks, std::string own, Done done)> fence;
  // The same of ranks that make the group `name`.
  using GroupDone = std::function<void(absl::StatusOr<GroupAnswer>)>;
  std::function<void(std::string name, std::vector<Rank> ranks, std::string own, GroupDone done)>
      group;
  // What `rank`, of another node, has said for others.
  std::function<void(Rank rank, Done done)> ask;
  // `rank` of `world` asks for `request`, and `done` gets the name of the new world.
  std::function<void(int world, Rank rank, SpawnRequest request, Done done)> spawn;
  // Whether ranks that are not all of the job's own are on this node for certain.
  bool all_here = false;
};

// The name of a world of the job that is called `job`, and the reverse; unset: it is of another.
// Pure.
std::string PmixWorldName(absl::string_view job, int world);
std::optional<int> PmixWorldIn(absl::string_view name, absl::string_view job);

// What libpmix calls where it needs its host, as it takes it. It hands no pointer of ours on, so
// `work` is kept here: one for a process, which must live as long as that, as must `name_space`,
// the job that it is about. `groups`: the library serves them.
pmix_server_module_t* PmixCalls(const PmixWork* work, const std::string* name_space, bool groups);

}  // namespace hlaunch
