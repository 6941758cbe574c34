// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// Reads what CallRecord writes, in another process.

namespace hlaunch {

struct RecordedCall {
  uint64_t number = 0;
  std::string verb;    // "all_reduce"
  uint64_t count = 0;  // The elements of this rank's data; 0 if it has none.
  std::string type;    // "float32"
  size_t element = 0;  // The bytes of each.
  bool over = false;
};

// Messages to one rank of the group, or from it.
struct RecordedPeer {
  int64_t peer = 0;  // As the group counts.
  bool sends = false;
  uint64_t called = 0;
  uint64_t over = 0;
  bool awaited = false;  // A thread waits for one.
};

// What one group of a process has called. A value.
struct RecordedCalls {
  std::string group;
  uint64_t begun = 0;  // The number of its last collective.
  uint64_t over = 0;   // The number of the last one that is over.
  bool awaits_message = false;
  std::vector<RecordedCall> latest;      // In order.
  std::vector<RecordedPeer> peers = {};  // Empty if they are too many.
};

// Parses the file's bytes, which another process may be changing, or may have made up. Unset if
// they are no record. Pure.
std::optional<RecordedCalls> ParseCallRecord(std::span<const std::byte> bytes);

// The records of all groups that the process `pid` has now, at most `most`. Empty if there are
// none, or if this process may not read them.
std::vector<RecordedCalls> ReadCallRecords(pid_t pid, size_t most);

}  // namespace hlaunch
