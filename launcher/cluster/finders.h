// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/cluster/place.h"
#include "launcher/words/environment.h"

// How each system tells a process its place, and what these finders share.

namespace hlaunch {

// The port where the nodes of a step meet, 12000 + (16 * job + step) mod 16381: the same on every
// node, below those that kernels give out, and another one for jobs and steps that may share a
// host. Pure.
uint16_t MeetingPort(uint64_t job, uint64_t step);

// The port where the nodes of the Slurm step meet that gave a job the id "17.0"; unset: it has
// another kind of id. Pure.
std::optional<uint16_t> PortOfStep(absl::string_view job_id);

// The hosts that a scheduler gave a job, each once, in its order. A value.
struct HostsOfJob {
  std::vector<std::string> names;
  std::vector<int> slots;  // How many processes each was given.

  void Add(const std::string& name, int count);
  // The index of the host that `own` is, with or without its domain; -1: none of them.
  int Find(const std::string& own) const;
};
HostsOfJob HostsOfPbs(const Surroundings& surroundings);
HostsOfJob HostsOfLsf(const Surroundings& surroundings);
HostsOfJob HostsOfSge(const Surroundings& surroundings);

// Whether hlaunch, in the script or shell of Slurm's job, is to start the job's nodes from here.
bool StartsAllocation(const Surroundings& surroundings);

// Whether this is a worker of another launcher, or of our own.
bool IsInWorker(const Environment& environment);

// The finder of each system. None of its variables there: an empty `reason`. `told`: the user
// named it.
ClusterPlace FindMpirun(const Surroundings& surroundings, bool told);
ClusterPlace FindSlurm(const Surroundings& surroundings, bool told);
ClusterPlace FindPbs(const Surroundings& surroundings, bool told);
ClusterPlace FindLsf(const Surroundings& surroundings, bool told);
ClusterPlace FindSageMaker(const Surroundings& surroundings, bool told);
ClusterPlace FindSge(const Surroundings& surroundings, bool told);
ClusterPlace FindVertex(const Surroundings& surroundings, bool told);
ClusterPlace FindKubernetes(const Surroundings& surroundings, bool told);
ClusterPlace FindByHand(const Surroundings& surroundings, bool told);
// The same of a system that a row of a table describes.
ClusterPlace FindByRow(const SystemRow& row, const Surroundings& surroundings);

// The first host of the scheduler's job that this process is in, whoever started it there; empty:
// none is known.
std::string FirstHostOfJob(const Surroundings& surroundings);

// Nothing is taken, and why.
ClusterPlace NoPlace(std::string reason);
// It is a job's place and none can be made of it.
ClusterPlace RefusedPlace(std::string cluster, std::string message);
// The same of several processes, of which the one with `rank` 0 tells the user, or one without it.
ClusterPlace RefusedTask(std::string cluster, std::string message, absl::string_view rank);
// A variable of the environment and its value.
struct Variable {
  std::string name, value;
};
// The first variable of "A|B" that is set; else the first name and no value.
Variable FirstSet(const Environment& environment, absl::string_view names);
// What a message ends with where a system's variables do not make a place.
inline constexpr char kSayPlaceYourself[] =
    "; give --nnodes, --node-rank and --rdzv-endpoint, or --cluster none";
// A whole number from `min` to `max`; else -1.
int IntFrom(absl::string_view text, int min, int max);
// How many devices the environment leaves visible to this process, and by which variable. None
// named: an empty `source`, and what the variable means is the kind's own business.
struct NamedDevices {
  int count = 0;
  std::string source;
};
NamedDevices CountNamedDevices(const Environment& environment);

}  // namespace hlaunch
