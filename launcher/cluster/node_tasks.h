// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// This process's place among several that a scheduler or an mpirun has started on this node, each
// with its own share of the node's CPUs and devices. Task 0 becomes the node's agent; each of the
// others runs the worker with its number. A value.
struct NodeTasks {
  std::string owner;    // "Slurm step 17.3"
  std::string name;     // The same for all tasks of this node, and for no other; a word.
  int local = 0;        // This one's number on this node, from 0.
  int count = 1;        // How many there are on this node.
  int first_rank = 0;   // What its owner calls task 0 of this node in the whole job.
  int rank = 0;         // What it calls this one.
  std::string instead;  // How to start one task on each node: "srun ... hlaunch ...".
};

}  // namespace hlaunch
