// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/text/environment.h"

namespace hlaunch {

constexpr size_t kPushBlock = 65536;

// A program without dependencies, sent to hosts that have no hlaunch. A value.
struct PushedProgram {
  std::string bytes;   // Whole blocks.
  std::string sha256;  // In hexadecimal.
};

// How a command is run on a host. A value.
struct Starter {
  std::vector<std::string> agent;      // The words of --launch-agent; empty: ssh.
  std::vector<std::string> ssh_words;  // The words of HLAUNCH_SSH_ARGS.
  // The program of --push. All hosts' starts share it, and it outlives them; null: none is sent.
  std::shared_ptr<const PushedProgram> pushed;

  // The name that messages use, as in "ssh".
  std::string Name() const;
};

// Errors:
//   InvalidArgument - a quote is open, or the command is empty.
absl::StatusOr<Starter> FindStarter(const HostWish& wish, const Environment& environment);

// The command that runs `program agent --stdin` on `host`. If `here`, the host is this one and ssh
// is not needed. Pure.
std::vector<std::string> StartCommand(const Starter& starter, const TargetHost& host, bool here,
                                      const std::string& program);

// The command that prints how ssh would reach `host`. Requires: ssh is the starter. Pure.
std::vector<std::string> SettingsCommand(const Starter& starter, const TargetHost& host);

// The command that first takes `starter.pushed` from its stdin and then becomes
// `hlaunch agent --stdin` of that program. Nothing stays on the host: the file is already deleted
// when it runs. Pure.
//
// Requires: `starter.pushed` is set.
std::vector<std::string> PushCommand(const Starter& starter, const TargetHost& host, bool here);

// The variables for the starter: those of `environment` except the token. Another command than ssh
// may pass them on to other hosts, whose hlaunch finds its own Python: it does not get this host's.
// srun reads options, such as the number of tasks, from variables too. So of Slurm's variables,
// srun gets only those that identify the job. Pure.
std::vector<std::string> StarterEnvironment(const Starter& starter, const Environment& environment);

}  // namespace hlaunch
