// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <string>
#include <vector>

#include "proto/cluster/cluster_messages.h"

// Chooses where a job starts: on all of its nodes or on none. All is pure.

namespace hlaunch {

// The devices of one kind on one host. A value.
struct KindRoom {
  int all = 0;            // All healthy ones.
  std::vector<int> free;  // The ids of the free ones, ascending.
};

// What a host has for jobs, and what of it is free. A value.
struct HostRoom {
  std::string name;
  std::string closed;  // Why no job may be placed there: "is drained: ECC"; empty: open.
  std::vector<std::string> labels;
  std::map<std::string, KindRoom> kinds;
  int slots = 0, slots_free = 0;
  bool used = false;       // A job has a part there.
  bool exclusive = false;  // That job wants the host for itself.
};

// A node of a job that can start. A value.
struct PlacedNode {
  std::string host;
  std::vector<int> devices;
  int slots = 0;  // If the node has no devices.
  int workers = 0;
};

// A value.
struct Placement {
  std::vector<PlacedNode> nodes;  // By node rank; empty: the job cannot start now.
  int spares = 0;                 // This many nodes, the last ones, stand by.
  std::string kind;               // The kind of devices; empty if the job uses slots.
  // The job could start if all running jobs ended, so jobs behind it must not take what it waits
  // for.
  bool waits_for_jobs = false;
  std::string reason;  // Why it cannot start, for people.
};

// Chooses hosts that have what the job needs. Prefers hosts with the least left over, so that large
// jobs find empty hosts; equal hosts are taken by name, node9 before node10. Node ranks also follow
// the names. Takes as many nodes as the job may have, at least its minimum, then spares. All nodes
// have the same kind of devices. "auto" takes devices if any allowed host has some, else slots.
//
// Requires: `hosts` are in the order of their names, node9 before node10.
Placement PlaceJob(const JobRequest& request, const std::vector<HostRoom>& hosts);

}  // namespace hlaunch
