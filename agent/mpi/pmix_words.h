// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/worker/spawn_request.h"
#include "proto/contract/ids.h"

// What the agent and `hlaunch-pmix`, which serves PMIx to its workers, say to each other: the
// options that it is started with, one JSON object a line on its output, and on its input
// `absent REASON`, for a rank that will not come to MPI_Init, and `spawned WORLD` or
// `refused WORLD REASON` to what ranks have asked to be spawned.

namespace hlaunch {

inline constexpr char kPmixProgram[] = "hlaunch-pmix";
inline constexpr char kPmixAbsent[] = "absent ";
inline constexpr char kPmixSpawned[] = "spawned ";
inline constexpr char kPmixRefused[] = "refused ";

// How it is started. A value.
struct PmixPlan {
  std::string library;     // The path of libpmix.
  std::string name_space;  // New for every round; without blanks. Node rank 0's is that of all.
  std::string directory;   // Of this round alone; it is there.
  std::string host;        // This node's name.
  Rank first_rank = 0;
  int nproc = 1;
  int node_rank = 0;
  int num_nodes = 1;
  std::string store_host;  // Of the round's master store, or of this node's way to it.
  uint16_t store_port = 0;
  std::string programs;  // How many ranks run each program, "2 1", in the order of ranks.
  bool oversubscribed = false;
};

// The options of `plan`, without the program; and the reverse.
//
// Errors:
//   InvalidArgument - an option is unknown, missing or no number.
std::vector<std::string> PmixArguments(const PmixPlan& plan);
absl::StatusOr<PmixPlan> ParsePmixArguments(const std::vector<std::string>& words);

// One thing that it tells. A value.
struct PmixNews {
  enum class Kind {
    kEnvironment,  // Of `rank`: by which variables it finds the server.
    kReady,        // All of those were told.
    kConnected,    // `rank` has come to MPI_Init, or
    kFinalized,    // to the end of MPI_Finalize.
    kAbort,        // `rank` called MPI_Abort(`code`).
    kWaiting,      // For people: `text` says for whom the ranks wait.
    kBroken,       // It cannot go on, for the reason in `text`.
    kSpawn,        // `rank` asks for `spawn`, and waits.
  };
  Kind kind = Kind::kReady;
  Rank rank = -1;
  int code = 0;
  std::string text = {};
  std::vector<std::string> environment = {};  // NAME=value each.
  int world = 0;  // That of `rank`; 0: the job's own, else the number of a spawn.
  SpawnRequest spawn = {};
};

// One line, without its end; and the reverse.
//
// Errors:
//   InvalidArgument - it is something else.
std::string ToLine(const PmixNews& news);
absl::StatusOr<PmixNews> PmixNewsIn(absl::string_view line);

}  // namespace hlaunch
