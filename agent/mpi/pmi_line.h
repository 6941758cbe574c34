// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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
