// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

// The log of a detached job, in the format of Kubernetes' container logs: one entry per line,
// `TIME stdout|stderr F|P TEXT`. P marks a part of a line that goes on. All is pure.

namespace hlaunch {

// One entry of the log. A value.
struct LogLine {
  std::string time;   // As WallTime; empty if a line of hlaunch has none.
  int fd = 1;         // The stream that it was written to.
  bool whole = true;  // The line ends here.
  std::string text;   // Without the line end.
};

// The entry with its line end.
std::string MakeLogLine(absl::string_view time, int fd, bool whole, absl::string_view text);

// `line` has no line end. A line in another format counts as a whole line of stderr.
LogLine ReadLogLine(absl::string_view line);

// The ranks in a prefix as in "[3] " or "[0-3,7] ", which may follow a time; empty if there is no
// prefix.
std::vector<Rank> RanksOfText(absl::string_view text);

// Cuts the bytes of one stream into entries of the log.
//
// Belongs to one thread.
class LogLineCutter {
 public:
  explicit LogLineCutter(int fd) : fd_(fd) {}

  // Returns the entries for the lines that `bytes` complete. A line that is too long is cut in
  // parts.
  std::string Take(absl::string_view time, absl::string_view bytes);
  // Returns the unfinished line as a part; empty if there is none.
  std::string Flush(absl::string_view time);
  bool waits() const { return !line_.empty(); }

 private:
  const int fd_;
  std::string line_;
};

}  // namespace hlaunch
