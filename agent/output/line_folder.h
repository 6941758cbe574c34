// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A rank and one of our two streams that its lines go to. A value.
struct LineSource {
  int rank = 0;
  int fd = 1;
  auto operator<=>(const LineSource&) const = default;
};

// Finds what several ranks print at the same time and in the same words, so that a person reads it
// once. Holds every rank's lines for a moment. A block is a line, or one of Python's tracebacks
// from its first line to its exception; tracebacks are equal if they differ in numbers only (a
// rank, an address, a port), lines if they are the same. The order of a source's own blocks stays.
//
// A value; `now` is an argument.
class LineFolder {
 public:
  // How long a line is held; one that comes with tracebacks, until so long after their last line.
  static constexpr Duration kHold = std::chrono::milliseconds(200);
  static constexpr Duration kLongestHold = std::chrono::seconds(1);
  // Beyond so many bytes nothing is held any longer.
  static constexpr size_t kMaxBytes = 256 * 1024;

  struct Block {
    std::string text;  // Whole lines, as the first of the ranks wrote them.
    int fd = 1;
    std::vector<int> ranks;  // Ascending.
  };

  // Takes what a source has written next.
  void Add(LineSource source, absl::string_view bytes, Instant now);

  // What this source has begun and not ended with a newline counts as a line.
  void EndLine(LineSource source, Instant now);

  // Takes that away from here: somebody else will end it.
  std::string TakeUnended(LineSource source);

  // When Take is to be called; unset while nothing is held.
  std::optional<Instant> due() const;

  // All whole lines, in the order in which they are to be shown.
  std::vector<Block> Take();

 private:
  struct Held {
    std::string text;
    std::string key;
    uint64_t number = 0;  // In the order of coming.
  };
  class Queues;
  struct Lines {
    std::deque<Held> blocks;
    bool in_traceback = false;  // The last block is one that goes on.
    std::string unended;
  };

  void AddLine(LineSource source, absl::string_view line, Instant now);
  static void EndTraceback(Lines& lines);

  std::map<LineSource, Lines> sources_;
  std::optional<Instant> first_;      // When the oldest of what is held came,
  std::optional<Instant> traceback_;  // and the latest line of a traceback.
  size_t bytes_ = 0;
  uint64_t count_ = 0;
};

}  // namespace hlaunch
