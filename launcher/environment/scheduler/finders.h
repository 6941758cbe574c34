// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/text/environment.h"

// How each system tells a process its place, and the helpers of these finders.

namespace hlaunch {

// The port where the nodes of a step meet: 12000 + (16 * job + step) mod 16381. It is the same on
// every node, below the ports that kernels assign, and differs between jobs and steps that may
// share a host. Pure.
uint16_t MeetingPort(uint64_t job, uint64_t step);

// The port where the nodes of a Slurm step meet that gave a job the id "17.0". Unset: the id has
// another form. Pure.
std::optional<uint16_t> PortOfStep(absl::string_view job_id);

// The hosts that a scheduler gave a job, each once, in the scheduler's order. A value.
struct HostsOfJob {
  std::vector<std::string> names;
  std::vector<int> slots;  // How many processes each host was given.

  void Add(const std::string& name, int count);
  // Returns the index of the host `own`, with or without its domain; -1: it is not among them.
  int Find(const std::string& own) const;
};
HostsOfJob HostsOfPbs(const Surroundings& surroundings);
HostsOfJob HostsOfLsf(const Surroundings& surroundings);
HostsOfJob HostsOfSge(const Surroundings& surroundings);

// Returns true if hlaunch runs in the script or shell of a scheduler's job and shall start the
// job's nodes from here.
bool StartsAllocation(const Surroundings& surroundings);

// Returns true if this is a worker of another launcher, or of hlaunch.
bool IsInWorker(const Environment& environment);

// The finder of each system. If none of its variables are set, the place has an empty `reason`.
// `told` says that the user named the system.
ClusterPlace FindMpirun(const Surroundings& surroundings, bool told);
// Refuses a process of an MPI launcher that says its rank, and not of how many: PRRTE's prterun,
// and Hydra by a port. Whoever else sets these variables has a finder of its own, to be asked
// before.
ClusterPlace FindRankAlone(const Surroundings& surroundings, bool told);
ClusterPlace FindSlurm(const Surroundings& surroundings, bool told);
ClusterPlace FindPbs(const Surroundings& surroundings, bool told);
ClusterPlace FindLsf(const Surroundings& surroundings, bool told);
ClusterPlace FindSageMaker(const Surroundings& surroundings, bool told);
ClusterPlace FindSge(const Surroundings& surroundings, bool told);
ClusterPlace FindVertex(const Surroundings& surroundings, bool told);
ClusterPlace FindKubernetes(const Surroundings& surroundings, bool told);
ClusterPlace FindByHand(const Surroundings& surroundings, bool told);
// The finder of a system that a row of a table describes.
ClusterPlace FindByRow(const SystemRow& row, const Surroundings& surroundings);

// Returns the first host of the scheduler's job that contains this process, whatever launcher
// started the process; empty: unknown.
std::string FirstHostOfJob(const Surroundings& surroundings);

// Makes a place from which nothing is taken, and says why.
ClusterPlace NoPlace(std::string reason);
// Makes a place that belongs to a job but is not usable.
ClusterPlace RefusedPlace(std::string cluster, std::string message);
// The same if several processes get this message. Only the one with `rank` 0 tells the user; a
// process without a rank tells it, too.
ClusterPlace RefusedTask(std::string cluster, std::string message, absl::string_view rank);
// A variable of the environment and its value.
struct Variable {
  std::string name, value;
};
// Returns the first variable of "A|B" that is set; else the first name and no value.
Variable FirstSet(const Environment& environment, absl::string_view names);
// The end of a message that says that a system's variables do not make a place.
inline constexpr char kSayPlaceYourself[] =
    "; give --nnodes, --node-rank and --rdzv-endpoint, or --cluster none";
// Reads a whole number from `min` to `max`; else returns -1.
int IntFrom(absl::string_view text, int min, int max);
// How many devices the environment leaves visible to this process, and by which variable. If none
// are named, `source` is empty, and each kind of device interprets its variable itself.
struct NamedDevices {
  int count = 0;
  std::string source;
};
NamedDevices CountNamedDevices(const Environment& environment);

}  // namespace hlaunch
