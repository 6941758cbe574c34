// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/output/log_file.h"
#include "agent/output/output_writer.h"

namespace hlaunch {

// The files in which stacks are kept, by local rank; an empty path means no file.
struct StackFiles {
  std::vector<std::string> paths;
  std::shared_ptr<LogLosses> losses;
};

// Keeps the stacks of stalled workers in files. A separate thread writes them, so a file system
// that hangs holds up nothing else; destruction waits a moment for the thread.
//
// Belongs to one thread.
class StackLog {
 public:
  explicit StackLog(StackFiles files) : files_(std::move(files)) {}
  ~StackLog();

  // Appends `text` to the file of that worker and returns the file's path; empty if it has no file.
  std::string Keep(int local_rank, std::string text);

 private:
  const StackFiles files_;
  std::unique_ptr<OutputWriter> writer_;             // Made when the first stacks come.
  std::map<int, std::shared_ptr<LogFile>> written_;  // By local rank.
};

}  // namespace hlaunch
