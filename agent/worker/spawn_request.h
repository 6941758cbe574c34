// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/worker/worker_spec.h"

namespace hlaunch {

// What a rank asks to be started by MPI_Comm_spawn or MPI_Comm_spawn_multiple: a world of its own.
// A value.
struct SpawnRequest {
  std::vector<OtherProgram> programs = {};  // In the order of its ranks.
  std::vector<std::string> hosts = {};      // Where they are to run, as it says; mostly nothing.
  // What its ranks find said from the beginning, by PMI-1: key and value.
  std::vector<std::pair<std::string, std::string>> given = {};
  // Where PMIx serves it: its number there, and by which variables each rank finds the server,
  // NAME=value each.
  int pmix_world = 0;
  std::vector<std::vector<std::string>> environments = {};
};

// How many ranks it asks for. Pure.
inline int RanksOf(const SpawnRequest& request) {
  int ranks = 0;
  for (const OtherProgram& program : request.programs) ranks += program.ranks;
  return ranks;
}

}  // namespace hlaunch
