// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "launcher/detached/log_line.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Reads the log of a detached job from its oldest line on, while it is written and put aside as
// LogFile does. Lines of files that are gone before they are read are lost.
//
// Belongs to one thread.
class LogReader {
 public:
  explicit LogReader(std::string path);

  // The next line; unset: there is none yet.
  std::optional<LogLine> Next();

 private:
  // Opens the files that are newer than the last that is open, all of them if none is.
  void OpenNewer();
  bool ReadMore();

  const std::string path_;
  std::deque<UniqueFd> files_;  // The oldest first.
  std::string bytes_;           // Read, and from `taken_` on not given yet.
  size_t taken_ = 0;
};

}  // namespace hlaunch
