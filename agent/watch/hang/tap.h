// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/output/agent_directory.h"
#include "agent/watch/stall/stack_dump.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// A directory that makes torch open its own control server in every rank of an unmodified script.
// It holds the servers' sockets, and Python modules for the end of the workers' PYTHONPATH, which
// Python loads when it starts and which torch 2.5 and later set to work. Only its owner may enter
// it.
//
// Belongs to one thread. The destructor removes the modules, and the directory if it is its own.
class Tap {
 public:
  // Puts the modules into `directory`, or into an AgentDirectory of its own if that is empty or too
  // long a name for sockets: below TMPDIR, else below /tmp.
  //
  // Errors:
  //   FailedPrecondition - there is no directory, or it cannot be written to; the message names it
  //     and says why.
  static absl::StatusOr<std::unique_ptr<Tap>> Make(const std::string& directory);
  ~Tap();

  const std::string& directory() const { return directory_; }  // HLAUNCH_TAP and PYTHONPATH

  // The directory of its own, which is removed at the end; empty if there is none.
  std::string to_remove() const { return own_ == nullptr ? "" : own_->path(); }

 private:
  Tap(std::string directory, std::unique_ptr<AgentDirectory> own)
      : own_(std::move(own)), directory_(std::move(directory)) {}

  const std::unique_ptr<AgentDirectory> own_;
  const std::string directory_;
};

// True if a user with this environment wants a tap: HLAUNCH_TAP=0 turns it off. Pure.
bool WantsTap(const std::vector<std::string>& env);

// On the signal SIGRTMAX minus this, a rank writes its stacks to the file that FindStacksFile
// finds.
constexpr int kTapSignalBelowMax = 7;

// The processes of `rank` that have opened a server, ordered by pid. Includes processes that were
// killed, for example in earlier rounds. Empty if the directory cannot be read.
std::vector<pid_t> TapServers(const std::string& tap, Rank rank);

// The server process of `worker`: the worker itself or one of its descendants. 0 if there is none.
pid_t FindTapServer(const std::string& tap, Rank rank, pid_t worker);

// How to get the stacks of `process`: by the signal if that does not disturb the process.
StackTarget TapStackTarget(const ProcessEntry& process);

// The socket of a server process. Pure.
std::string TapSocketPath(absl::string_view tap, Rank rank, pid_t pid);

}  // namespace hlaunch
