// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

// The log of a detached job, in the format of Kubernetes' container logs: a line each,
// `TIME stdout|stderr F|P TEXT`, P being a part whose end follows. All is pure.

namespace hlaunch {

// What a job has said at a time. A value.
struct LogLine {
  std::string time;   // As WallTime; empty: of no time, hlaunch's own.
  int fd = 1;         // Where it went.
  bool whole = true;  // It ends here.
  std::string text;   // Without the end of the line.
};

// With the end of the line.
std::string MakeLogLine(absl::string_view time, int fd, bool whole, absl::string_view text);

// `line` has no end. What is no such line is a whole one of stderr.
LogLine ReadLogLine(absl::string_view line);

// The ranks that "[3] " or "[0-3,7] " before a line names, behind the time if there is one; none
// where it names none.
std::vector<Rank> RanksOfText(absl::string_view text);

// Cuts the bytes of one stream into lines of the log.
//
// Belongs to one thread.
class LogLineCutter {
 public:
  explicit LogLineCutter(int fd) : fd_(fd) {}

  // The lines that `bytes` complete, as the log has them; what is too long goes in parts.
  std::string Take(absl::string_view time, absl::string_view bytes);
  // What waits for its end, as a part; empty: nothing does.
  std::string Flush(absl::string_view time);
  bool waits() const { return !line_.empty(); }

 private:
  const int fd_;
  std::string line_;
};

}  // namespace hlaunch
