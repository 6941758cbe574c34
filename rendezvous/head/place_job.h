// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <string>
#include <vector>

#include "proto/cluster/cluster_messages.h"

// Where a job is started: on all of its nodes or on none. All is pure.

namespace hlaunch {

// Of one host's devices of one kind. A value.
struct KindRoom {
  int all = 0;            // Those that are well.
  std::vector<int> free;  // By id, ascending.
};

// What of a host is there for jobs. A value.
struct HostRoom {
  std::string name;
  std::string closed;  // Why no job is placed there, as "is drained: ECC"; empty: it is open.
  std::vector<std::string> labels;
  std::map<std::string, KindRoom> kinds;
  int slots = 0, slots_free = 0;
  bool used = false;       // A part of a job is there,
  bool exclusive = false;  // which wants nobody else.
};

// A node of a job that can start. A value.
struct PlacedNode {
  std::string host;
  std::vector<int> devices;
  int slots = 0;  // Where it has no devices.
  int workers = 0;
};

// A value.
struct Placement {
  std::vector<PlacedNode> nodes;  // By node rank; empty: the job cannot start now.
  int spares = 0;                 // The last so many stand by.
  std::string kind;               // Of the devices; empty: slots.
  // It could start if all that runs ended: jobs behind it are not to take what it waits for.
  bool waits_for_jobs = false;
  std::string reason;  // Why it cannot start, for people.
};

// Chooses hosts that have what the job needs: those first where least is left over, so that large
// jobs find empty hosts; else, and for the order of node ranks, by name, node9 before node10. Takes
// as many nodes as the job may have and at least its fewest, then spares. All have the same kind of
// devices. "auto" takes devices where any host that is allowed has some, else slots.
//
// Requires: `hosts` are in the order of their names, node9 before node10.
Placement PlaceJob(const JobRequest& request, const std::vector<HostRoom>& hosts);

}  // namespace hlaunch
