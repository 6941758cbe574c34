// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/workers/worker/spawn_request.h"
#include "proto/contract/ids.h"

// The protocol between the agent and `hlaunch-pmix`, which serves PMIx to its workers. The agent
// passes options at the start. `hlaunch-pmix` prints one JSON object a line. Its input gets `absent
// REASON` for a rank that will not call MPI_Init, and `spawned WORLD` or `refused WORLD REASON` as
// the answer to a spawn.

namespace hlaunch {

inline constexpr char kPmixProgram[] = "hlaunch-pmix";
// A program that carries `hlaunch-pmix` in itself names itself in its place; its first word then is
// kCarriedPmixWord. See launcher/environment/mpi/carried_pmix.h.
inline constexpr char kCarriedPmix[] = "/proc/self/exe";
inline constexpr char kCarriedPmixWord[] = "--carried-pmix";
inline constexpr char kPmixAbsent[] = "absent ";
inline constexpr char kPmixSpawned[] = "spawned ";
inline constexpr char kPmixRefused[] = "refused ";

// The options of `hlaunch-pmix`. A value.
struct PmixPlan {
  std::string library;  // The path of libpmix; empty: there is none, and the other nodes hear it.
  std::string name_space;  // New for every round; without blanks. All nodes use node rank 0's.
  std::string directory;   // For this round alone; it exists already.
  std::string host;        // This node's name.
  Rank first_rank = 0;
  int nproc = 1;
  int node_rank = 0;
  int num_nodes = 1;
  std::string store_host;  // The round's master store, or this node's proxy to it.
  uint16_t store_port = 0;
  std::string programs;  // How many ranks run each program, "2 1", in the order of ranks.
  bool oversubscribed = false;
  bool optional = false;  // Workers start without PMIx if not all nodes can serve it.
  bool any_user = false;  // Processes of all users are heard at its port.
};

// The options of `plan`, without the program; and the reverse.
//
// Errors:
//   InvalidArgument - an option is unknown, missing or no number.
std::vector<std::string> PmixArguments(const PmixPlan& plan);
absl::StatusOr<PmixPlan> ParsePmixArguments(const std::vector<std::string>& words);

// One report of `hlaunch-pmix`. A value.
struct PmixNews {
  enum class Kind {
    kEnvironment,  // The variables by which `rank` finds the server.
    kReady,        // Every rank's variables were reported.
    kConnected,    // `rank` has called MPI_Init.
    kFinalized,    // `rank` has reached the end of MPI_Finalize.
    kAbort,        // `rank` called MPI_Abort(`code`).
    kWaiting,      // For people: `text` says what the ranks wait for.
    kBroken,       // The server cannot go on; `text` says why.
    kSpawn,        // `rank` asks for `spawn`, and waits.
  };
  Kind kind = Kind::kReady;
  Rank rank = -1;
  int code = 0;
  std::string text = {};
  std::vector<std::string> environment = {};  // NAME=value each.
  int world = 0;  // The world of `rank`; 0: the job's own, else the number of a spawn.
  SpawnRequest spawn = {};
};

// Converts to one line, without a newline, and back.
//
// Errors:
//   InvalidArgument - `line` is something else.
std::string ToLine(const PmixNews& news);
absl::StatusOr<PmixNews> PmixNewsIn(absl::string_view line);

}  // namespace hlaunch
