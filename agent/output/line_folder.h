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

// A rank, and the one of our two streams that its lines go to. A value.
struct LineSource {
  int rank = 0;
  int fd = 1;
  auto operator<=>(const LineSource&) const = default;
};

// Finds equal text that several ranks print at the same time, so that a person reads it once. For
// this it holds every rank's lines for a moment. A block is a line, or a Python traceback from its
// first line to its exception. Two tracebacks are equal if they differ in numbers only (a rank, an
// address, a port); two lines are equal if they are identical. The blocks of one source stay in
// order.
//
// A value; `now` is an argument.
class LineFolder {
 public:
  // How long lines are held; with tracebacks among them, this long after the last traceback line,
  // but at most kLongestHold.
  static constexpr Duration kHold = std::chrono::milliseconds(200);
  static constexpr Duration kLongestHold = std::chrono::seconds(1);
  // Beyond this many bytes, lines are due at once.
  static constexpr size_t kMaxBytes = 256 * 1024;

  struct Block {
    std::string text;  // Whole lines, as the first of the ranks wrote them.
    int fd = 1;
    std::vector<int> ranks;  // Ascending.
  };

  // Takes what a source has written next.
  void Add(LineSource source, absl::string_view bytes, Instant now);

  // Treats the source's unfinished line as a line.
  void EndLine(LineSource source, Instant now);

  // Returns the source's unfinished line and drops it here: the caller continues it.
  std::string TakeUnended(LineSource source);

  // When Take has to be called; unset if nothing is held.
  std::optional<Instant> due() const;

  // Returns and drops all whole lines, in the order in which they are to be shown.
  std::vector<Block> Take();

 private:
  struct Held {
    std::string text;
    std::string key;
    uint64_t number = 0;  // The order of arrival.
  };
  class Queues;
  struct Lines {
    std::deque<Held> blocks;
    bool in_traceback = false;  // The last block is an unfinished traceback.
    std::string unended;
  };

  void AddLine(LineSource source, absl::string_view line, Instant now);
  static void EndTraceback(Lines& lines);

  std::map<LineSource, Lines> sources_;
  std::optional<Instant> first_;      // When the oldest held line came.
  std::optional<Instant> traceback_;  // When the latest traceback line came.
  size_t bytes_ = 0;
  uint64_t count_ = 0;
};

}  // namespace hlaunch
