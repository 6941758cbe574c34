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
#include "agent/worker/spawn_request.h"

// The words of PMI-1, which MPICH, MVAPICH and Intel MPI speak with whoever started them: a request
// is one line, `cmd=NAME key=value …`, but for spawn, which is a block of lines from `mcmd=spawn`
// to `endcmd`.

namespace hlaunch {

inline constexpr size_t kMaxPmiLine = 64 << 10;  // Values of a spawn block are some KB long.
inline constexpr size_t kMaxPmiBlock = 1 << 20;  // All lines of such a block.

// One request. A value.
struct PmiRequest {
  std::string command;    // Of `cmd=` or `mcmd=`.
  std::string arguments;  // What follows it: a line's rest, or a block's lines.
  bool block = false;

  // The value of `key`, in a line up to the next blank; unset: it is not there. In a line of keys
  // before `value=` and `message=` alone, whose values may hold anything.
  std::optional<std::string> Word(absl::string_view key) const;
  // All that follows `key=` in a line, blanks included.
  std::optional<std::string> Rest(absl::string_view key) const;
  // A decimal number that fits an int; unset: there is none.
  std::optional<int> Number(absl::string_view key) const;
};

// Adds the program that a block of spawn asks for to `request`. Of MPI_Info's reserved keys `wdir`
// and `host` are heeded; the others say where to look for the program, and PATH does. Pure.
//
// Errors:
//   InvalidArgument - no program, no rank, too many of them, or arguments that are missing.
absl::Status AddProgram(const PmiRequest& block, SpawnRequest* request);

// Whether a block of spawn is the last one of its call. Pure.
bool IsLastOfSpawn(const PmiRequest& block);

// Divides what a client sends into requests. Belongs to one thread.
class PmiReader {
 public:
  // Takes `bytes` as they come and returns the requests that are whole.
  //
  // Errors:
  //   InvalidArgument - a line that is none of PMI's, or too long; after it the reader is of no
  //   use.
  absl::StatusOr<std::vector<PmiRequest>> Take(absl::string_view bytes);

 private:
  absl::StatusOr<std::optional<PmiRequest>> TakeLine(absl::string_view line);

  std::string begun_;                // A line that is not whole.
  std::optional<PmiRequest> block_;  // The same of a block.
};

}  // namespace hlaunch
