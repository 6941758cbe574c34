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

// Patterns that are looked for in lines of output.

namespace hlaunch {

// A line that one of the patterns was found in. A value.
struct LineMatch {
  size_t pattern = 0;                    // Its index.
  std::string line;                      // The first kMaxMatchedLine bytes of it; they may be any.
  std::map<std::string, double> values;  // Of the named groups that hold a number.
};

inline constexpr size_t kMaxMatchedLine = 64 * 1024;  // What follows in a line is not looked at.

// Patterns in the syntax of RE2, whose cost grows linearly with the output. Immutable.
class LinePatterns {
 public:
  // Errors:
  //   InvalidArgument - RE2's words on what is wrong with a pattern; they do not name it.
  static absl::StatusOr<std::shared_ptr<const LinePatterns>> Compile(
      const std::vector<std::string>& patterns);
  ~LinePatterns();

  // Which of them are in `line`.
  std::vector<LineMatch> Find(absl::string_view line) const;

 private:
  struct Pattern;
  LinePatterns();
  std::vector<Pattern> patterns_;
};

// Looks for patterns in the lines of one stream, which end with '\n', or with the '\r' of a
// progress bar. A value.
class LineMatcher {
 public:
  explicit LineMatcher(std::shared_ptr<const LinePatterns> patterns)
      : patterns_(std::move(patterns)) {}

  // Takes the next bytes; returns what was found in the lines that they end.
  std::vector<LineMatch> Feed(absl::string_view bytes);

 private:
  std::shared_ptr<const LinePatterns> patterns_;
  std::string pending_;  // Of the line that has not ended.
};

}  // namespace hlaunch
