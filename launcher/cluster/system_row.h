// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hlaunch {

// A system whose variables alone say a node's place. A value. A field names a variable, or several
// with '|' between them, of which the first that is set counts; empty: the system has none.
struct SystemRow {
  std::string word = {};                 // Of --cluster: "skypilot".
  std::string title = {};                // "a node of a SkyPilot task"
  std::vector<std::string> proof = {};   // All must be set.
  std::vector<std::string> absent = {};  // None may be set.
  std::string nnodes = {};               // The number of nodes.
  std::string rank = {};                 // This node's, from 0.
  std::string hosts =
      {};  // The first node, or all: commas, semicolons, blanks or line ends between.
  std::string port = {};   // Where the first node listens.
  std::string nproc = {};  // Workers of this node.
  std::string id = {};     // The job's.
  std::string tasks = {};  // All processes that the system started: more than nodes are refused.
  std::string local_size = {};       // Those on this node: more than one are refused.
  bool hosts_unset_is_here = false;  // The first node itself has no `hosts`.
  std::string once_a_node = {};      // How the system starts one process on each node, in words.
  std::string first_node = {};  // What to write after --rdzv-endpoint where nothing names a host.
};

// The systems that are known so, the more specific first.
const std::vector<SystemRow>& KnownSystems();

// The rows of a site's own file: {"systems": [{"word": "x", "title": …}, …]}, with the names of
// SystemRow's fields.
//
// Errors:
//   NotFound, InvalidArgument - what is wrong with the file, or with which row and field.
absl::StatusOr<std::vector<SystemRow>> ReadSystems(const std::string& path);

}  // namespace hlaunch
