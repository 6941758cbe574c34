// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/pmix/pmix_library.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// What libpmix cannot do alone. All of these are called on its own thread and may not block.
struct PmixWork {
  using Data = absl::StatusOr<std::string>;
  using Done = std::function<void(Data)>;  // May be called from any thread, once.

  std::function<void(Rank)> on_connected;  // It has come to MPI_Init, or
  std::function<void(Rank)> on_finalized;  // to the end of MPI_Finalize.
  std::function<void(Rank, int code, std::string message)> on_abort;
  // The ranks of this node have come to a fence of `ranks`, none: of all. `done` gets what all
  // nodes that have one of them have said, one after the other.
  std::function<void(std::vector<Rank> ranks, std::string own, Done done)> fence;
  // What `rank`, of another node, has said for others.
  std::function<void(Rank rank, Done done)> ask;
};

// What libpmix calls where it needs its host, as it takes it. It hands no pointer of ours on, so
// `work` is kept here: one for a process, which must live as long as that, as must `name_space`,
// the job that it is about.
pmix_server_module_t* PmixCalls(const PmixWork* work, const std::string* name_space);

}  // namespace hlaunch
