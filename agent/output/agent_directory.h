// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// $TMPDIR, or /tmp.
std::string TemporaryDirectory();

// A directory of this process alone, `<parent>/hlaunch-agent.<random>`, for what lasts as long as
// the process. Removed with this object; by the keeper if the agent is killed; and if both were
// killed, or the host went down, by the next agent that starts on this host: the living one holds a
// lock on a file in it. Belongs to one thread.
class AgentDirectory {
 public:
  // Removes what agents of this user that are gone left below `parent`, and makes a new one.
  //
  // Errors:
  //   FailedPrecondition - it cannot be made; the message says why, and not where.
  static absl::StatusOr<std::unique_ptr<AgentDirectory>> Make(const std::string& parent);
  ~AgentDirectory();

  const std::string& path() const { return path_; }

 private:
  AgentDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const UniqueFd lock_;  // Invalid: it could not be locked, and is nobody else's to remove.
};

// Removes below `parent` the directories of agents that are gone. Leaves alone what has another
// name, owner or mode, is no directory, has no lock file or one that is held, and all that is on a
// file system of several hosts, where a lock may not be seen. Follows no link.
void RemoveAbandonedDirectories(const std::string& parent);

}  // namespace hlaunch
