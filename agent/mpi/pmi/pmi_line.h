// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/workers/worker/spawn_request.h"

// The protocol PMI-1, which MPICH, MVAPICH and Intel MPI use to talk to their launcher. A request
// is one line, `cmd=NAME key=value …`, except for spawn, which is a block of lines from
// `mcmd=spawn` to `endcmd`.

namespace hlaunch {

inline constexpr size_t kMaxPmiLine = 64 << 10;  // Values in a spawn block are some KB long.
inline constexpr size_t kMaxPmiBlock = 1 << 20;  // For all lines of one block.

// One request. A value.
struct PmiRequest {
  std::string command;    // The value of `cmd=` or `mcmd=`.
  std::string arguments;  // The rest of the line, or the lines of the block.
  bool block = false;

  // The value of `key`, which in a line ends at the next blank; unset if `key` is missing. In a
  // line, only keys before `value=` and `message=` are found, because those two values may contain
  // anything.
  std::optional<std::string> Word(absl::string_view key) const;
  // Everything that follows `key=` in a line, blanks included.
  std::optional<std::string> Rest(absl::string_view key) const;
  // A decimal number that fits an int; unset if there is none.
  std::optional<int> Number(absl::string_view key) const;
};

// Adds the program of a spawn block to `request`. Of MPI_Info's reserved keys only `wdir` and
// `host` are used. The other keys say where to look for the program; PATH is used instead. Pure.
//
// Errors:
//   InvalidArgument - there is no program, no rank or too many ranks, or arguments are missing.
absl::Status AddProgram(const PmiRequest& block, SpawnRequest* request);

// True if a spawn block is the last one of its call. Pure.
bool IsLastOfSpawn(const PmiRequest& block);

// Splits what a client sends into requests. Belongs to one thread.
class PmiReader {
 public:
  // Takes the next `bytes` and returns the requests that are complete.
  //
  // Errors:
  //   InvalidArgument - a line is too long or not PMI-1's; the reader cannot be used after that.
  absl::StatusOr<std::vector<PmiRequest>> Take(absl::string_view bytes);

 private:
  absl::StatusOr<std::optional<PmiRequest>> TakeLine(absl::string_view line);

  std::string begun_;                // An incomplete line.
  std::optional<PmiRequest> block_;  // An incomplete block.
};

}  // namespace hlaunch
