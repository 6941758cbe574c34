// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "launcher/remote/detached/log_line.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Reads the log of a detached job from its oldest line on, while LogFile writes and rotates it.
// Lines of files that are removed before they are read are lost.
//
// Belongs to one thread.
class LogReader {
 public:
  explicit LogReader(std::string path);

  // Returns the next line; unset if there is none yet.
  std::optional<LogLine> Next();

 private:
  // Opens the files that are newer than the newest open one; all files if none is open.
  void OpenNewer();
  bool ReadMore();

  const std::string path_;
  std::deque<UniqueFd> files_;  // The oldest first.
  std::string bytes_;           // The bytes read; those from `taken_` on are not returned yet.
  size_t taken_ = 0;
};

}  // namespace hlaunch
