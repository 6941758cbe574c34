// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/text/environment.h"

// The scheduler's job around a call of mpirun. All functions read at most the scheduler's own list
// of hosts, and are pure otherwise.

namespace hlaunch {

// What a scheduler gave its job. A value. Empty `hosts`: this is in no job's script or shell.
struct JobHosts {
  std::string title;              // "Slurm job 17"
  std::string starter;            // In the format of --launch-agent; empty: ssh.
  std::vector<TargetHost> hosts;  // With slots if some host has more than one.
  std::vector<int> slots;         // One for each host; empty: nobody asked for a number.
  absl::Status refusal;           // InvalidArgument: this is a job, and its hosts cannot be read.
};

// Whether --hosts=allocation finds the hosts of a scheduler's job, and this process is not one of
// several tasks of a step. Pure.
bool IsInAllocation(const Environment& environment);

// Whether this is the only task of a Slurm step, and in no shell of `srun --pty`: its ranks stay on
// its host. Pure.
bool IsOnlyTask(const Environment& environment);

// The job in which IsInAllocation finds this process.
JobHosts HostsOfJobAround(const Environment& environment);

}  // namespace hlaunch
