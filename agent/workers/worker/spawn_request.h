// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/workers/worker/worker_spec.h"

namespace hlaunch {

// The programs that a rank starts with MPI_Comm_spawn or MPI_Comm_spawn_multiple: they form a world
// of their own. A value.
struct SpawnRequest {
  std::vector<OtherProgram> programs = {};  // In the order of its ranks.
  std::vector<std::string> hosts = {};      // Where the rank wants them to run; mostly empty.
  // The keys and values that the new ranks find set from the beginning, by PMI-1.
  std::vector<std::pair<std::string, std::string>> given = {};
  // If PMIx serves the world: its number there, and for each rank the variables (NAME=value each)
  // by which it finds the server.
  int pmix_world = 0;
  std::vector<std::vector<std::string>> environments = {};
};

// How many ranks the request starts. Pure.
inline int RanksOf(const SpawnRequest& request) {
  int ranks = 0;
  for (const OtherProgram& program : request.programs) ranks += program.ranks;
  return ranks;
}

}  // namespace hlaunch
