// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/hosts/host_list.h"
#include "launcher/words/environment.h"

namespace hlaunch {

constexpr size_t kPushBlock = 65536;

// A program that can run by itself, to be sent to hosts that have none. A value.
struct PushedProgram {
  std::string bytes;   // Whole blocks: zeros follow the program.
  std::string sha256;  // In hexadecimal.
};

// How words are run on a host. A value.
struct Starter {
  std::vector<std::string> agent;      // Of --launch-agent; empty: ssh.
  std::vector<std::string> ssh_words;  // Of HLAUNCH_SSH_ARGS.
  // Of --push, the same for all hosts' starts, which it outlives; null: nothing is sent.
  std::shared_ptr<const PushedProgram> pushed;

  // What messages call it: "ssh".
  std::string Name() const;
};

// Errors:
//   InvalidArgument - a quote is open, or nothing is there.
absl::StatusOr<Starter> FindStarter(const HostWish& wish, const Environment& environment);

// The command that runs `program agent --stdin` on `host`; `here`: it is this very host, and no
// starter is needed. Pure.
std::vector<std::string> StartCommand(const Starter& starter, const TargetHost& host, bool here,
                                      const std::string& program);

// The command that prints what ssh would do to reach `host`. Requires: ssh is the starter. Pure.
std::vector<std::string> SettingsCommand(const Starter& starter, const TargetHost& host);

// The command that takes `starter.pushed` on its stdin, before all else, and becomes
// `hlaunch agent --stdin` with it. Nothing stays on the host: the file has no name any more when it
// runs. Pure.
//
// Requires: `starter.pushed` is set.
std::vector<std::string> PushCommand(const Starter& starter, const TargetHost& host, bool here);

// The variables that the starter gets, those of `environment` but the token. srun takes options
// from variables as well, such as the job's number of tasks: it gets those alone that name the job.
// Pure.
std::vector<std::string> StarterEnvironment(const Starter& starter, const Environment& environment);

}  // namespace hlaunch
