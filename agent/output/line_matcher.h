// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Searches lines of output for patterns.

namespace hlaunch {

// A line in which a pattern was found. A value.
struct LineMatch {
  size_t pattern = 0;                    // The pattern's index.
  std::string line;                      // Its first kMaxMatchedLine bytes; any bytes are possible.
  std::map<std::string, double> values;  // By named group, if it matched a number.
};

inline constexpr size_t kMaxMatchedLine = 64 * 1024;  // The rest of a line is not searched.

// Patterns in RE2's syntax; their cost grows linearly with the output. Immutable.
class LinePatterns {
 public:
  // Errors:
  //   InvalidArgument - RE2's description of the error in a pattern; it does not name the pattern.
  static absl::StatusOr<std::shared_ptr<const LinePatterns>> Compile(
      const std::vector<std::string>& patterns);
  ~LinePatterns();

  // Returns a match for each pattern that is found in `line`.
  std::vector<LineMatch> Find(absl::string_view line) const;

 private:
  struct Pattern;
  LinePatterns();
  std::vector<Pattern> patterns_;
};

// Searches the lines of one stream, which end with '\n', or with the '\r' of a progress bar. A
// value.
class LineMatcher {
 public:
  explicit LineMatcher(std::shared_ptr<const LinePatterns> patterns)
      : patterns_(std::move(patterns)) {}

  // Takes the next bytes; returns the matches in the lines that these bytes complete.
  std::vector<LineMatch> Feed(absl::string_view bytes);

 private:
  std::shared_ptr<const LinePatterns> patterns_;
  std::string pending_;  // The unfinished line.
};

}  // namespace hlaunch
