// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// $TMPDIR as seen from the root, or /tmp if it names no directory.
std::string TemporaryDirectory();

// A directory of this process alone, `<parent>/hlaunch-agent.<random>`, for files that live as long
// as the process. It is removed with this object, or by the keeper if the agent is killed. If both
// were killed or the host went down, RemoveAbandonedDirectories removes it later: a living agent
// holds a lock on a file in it. Belongs to one thread.
class AgentDirectory {
 public:
  // Errors:
  //   FailedPrecondition - the directory cannot be made; the message says why, but not where.
  static absl::StatusOr<std::unique_ptr<AgentDirectory>> Make(const std::string& parent);
  ~AgentDirectory();

  const std::string& path() const { return path_; }

 private:
  AgentDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const UniqueFd lock_;  // Invalid if locking failed; then no other agent may remove the directory.
};

// Removes the directories below `parent` of this user's agents that are gone. Leaves alone what has
// another name, owner or mode, is no directory, or has no lock file or a locked one. Does nothing
// on a file system that several hosts share, where another host's lock may be invisible. Follows no
// link.
void RemoveAbandonedDirectories(const std::string& parent);

}  // namespace hlaunch
