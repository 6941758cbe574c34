// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// This process's place among several that a scheduler or an mpirun has started on this node, each
// with its own share of the node's CPUs and devices. Task 0 becomes the node's agent. Each other
// task runs the worker that has the task's number. A value.
struct NodeTasks {
  std::string owner;    // "Slurm step 17.3"
  std::string name;     // One word. The same for all tasks of this node, and for no other task.
  int local = 0;        // This task's number on this node, from 0.
  int count = 1;        // The number of tasks on this node.
  int first_rank = 0;   // The owner's number of this node's task 0 in the whole job.
  int rank = 0;         // The owner's number of this task.
  std::string instead;  // How to start one task on each node: "srun ... hlaunch ...".
};

}  // namespace hlaunch
