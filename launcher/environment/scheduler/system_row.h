// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hlaunch {

// The word of --cluster for a cluster of one's own, which no variables describe. The job goes to
// that cluster, and this process is none of its nodes.
inline constexpr char kOwnCluster[] = "hlaunchd";

// A system whose variables alone tell a node's place. A value. A field names a variable, or several
// with '|' between them, of which the first that is set counts. An empty field: the system has no
// such variable.
struct SystemRow {
  std::string word = {};                 // The word of --cluster: "skypilot".
  std::string title = {};                // "a node of a SkyPilot task"
  std::vector<std::string> proof = {};   // All of these must be set.
  std::vector<std::string> absent = {};  // None of these may be set.
  std::string nnodes = {};               // The number of nodes.
  std::string rank = {};                 // This node's number, from 0.
  std::string hosts = {};       // The first node or all, between commas, semicolons, white space.
  std::string port = {};        // Where the first node listens.
  std::string nproc = {};       // The number of workers of this node.
  std::string id = {};          // The job's id.
  std::string tasks = {};       // The number of all processes; more than nodes are refused.
  std::string local_size = {};  // The number of processes on this node; more than one are refused.
  bool hosts_unset_is_here = false;  // `hosts` is not set on the first node itself.
  std::string once_a_node = {};      // Says how the system starts one process on each node.
  std::string first_node = {};  // What to write after --rdzv-endpoint if no variable names a host.
};

// Returns the known systems of this form. More specific ones come first.
const std::vector<SystemRow>& KnownSystems();

// Reads the rows in a site's own file: {"systems": [{"word": "x", "title": …}, …]}, with the names
// of SystemRow's fields.
//
// Errors:
//   NotFound - the file cannot be read.
//   InvalidArgument - the message says what is wrong, and in which row and field.
absl::StatusOr<std::vector<SystemRow>> ReadSystems(const std::string& path);

}  // namespace hlaunch
