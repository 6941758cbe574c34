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

// Where stacks are kept, by local rank; empty: nowhere.
struct StackFiles {
  std::vector<std::string> paths;
  std::shared_ptr<LogLosses> losses;
};

// Keeps the stacks of stalled workers in files. A thread of its own writes them, so a file system
// that hangs holds up nobody; destruction waits a moment for it.
//
// Belongs to one thread.
class StackLog {
 public:
  explicit StackLog(StackFiles files) : files_(std::move(files)) {}
  ~StackLog();

  // Appends `text` to the file of that worker and returns the file's path; empty: it has none.
  std::string Keep(int local_rank, std::string text);

 private:
  const StackFiles files_;
  std::unique_ptr<OutputWriter> writer_;             // Made when the first stacks come.
  std::map<int, std::shared_ptr<LogFile>> written_;  // By local rank.
};

}  // namespace hlaunch
