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
#include "agent/stall/stack_dump.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// A directory by which torch opens its own control server in every rank of an unmodified script: it
// holds a Python package for the end of the workers' PYTHONPATH, which torch 2.5 and later load by
// themselves, and the servers' sockets. Only its owner may enter it.
//
// Belongs to one thread. Destruction removes the directory.
class Tap {
 public:
  // Below `parent`; where that is empty, in an AgentDirectory of its own.
  //
  // Errors:
  //   FailedPrecondition - the directory cannot be made, or its name is too long for sockets.
  static absl::StatusOr<std::unique_ptr<Tap>> Make(const std::string& parent);
  ~Tap();

  const std::string& directory() const { return directory_; }  // HLAUNCH_TAP

  // What is removed at the end and is not in `parent`; empty: nothing.
  std::string to_remove() const { return own_ == nullptr ? "" : own_->path(); }

 private:
  Tap(std::string directory, std::unique_ptr<AgentDirectory> own)
      : own_(std::move(own)), directory_(std::move(directory)) {}

  const std::unique_ptr<AgentDirectory> own_;
  const std::string directory_;
};

// Whether a user with this environment wants one: HLAUNCH_TAP=0 says no. Pure.
bool WantsTap(const std::vector<std::string>& env);

// On the signal SIGRTMAX minus this a rank writes its stacks where FindStacksFile finds them.
constexpr int kTapSignalBelowMax = 7;

// Where the package is, for PYTHONPATH. Pure.
std::string TapPackages(absl::string_view tap);

// The processes of `rank` that have opened a server, in the order of their pids, also those that
// were killed, in earlier rounds for example. Empty where the directory cannot be read.
std::vector<pid_t> TapServers(const std::string& tap, Rank rank);

// That of `worker`: its own, or of a process that came from it. 0: there is none.
pid_t FindTapServer(const std::string& tap, Rank rank, pid_t worker);

// How its stacks may be had: by the signal where that changes nothing for what it does.
StackTarget TapStackTarget(const ProcessEntry& process);

// The socket of one of them. Pure.
std::string TapSocketPath(absl::string_view tap, Rank rank, pid_t pid);

}  // namespace hlaunch
