// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launcher/environment/scheduler/node_tasks.h"
#include "launcher/environment/scheduler/system_row.h"
#include "launcher/text/environment.h"

// How a run finds its place: which nodes there are, which one this is and where they meet. The
// source is what a scheduler or an outer launcher has left in the environment.

namespace hlaunch {

// The facts from which a place is found. A value: tests make their own.
struct Surroundings {
  Environment environment;
  std::string host;  // This host's own name.
  // The pids of this process and its ancestors; none where no variable of Slurm or MPI is set.
  std::vector<int> ancestors;
  std::string root;       // Prefix of the names of files that are read; empty: this machine's.
  bool own_pids = false;  // A container hides the processes outside of it.
  // Never start other nodes from here, nor a worker in another task.
  bool alone = false;
};

// Returns the surroundings of this process.
Surroundings SurroundingsOfThisProcess(Environment environment);

// One fact that is known of the place. A value.
struct PlaceValue {
  std::string name;  // The option whose default it is, "--nnodes"; else a word: "restarts".
  std::string value;
  std::string source;   // The variable or file: "SLURM_STEP_NUM_NODES".
  std::string meaning;  // Its meaning in words.

  bool is_option() const { return name[0] == '-'; }
};

// The place that was found. A value.
struct ClusterPlace {
  std::string cluster = "none";  // A word of ClusterWords(); "none": nothing is taken.
  std::string reason;            // One line: the proof, or why nothing is taken. Always set.
  std::vector<PlaceValue> values;
  std::vector<std::string> warnings;  // One line each.
  std::vector<std::string> cautions;  // Warnings that hold for any number of nodes.
  // Not OK: no job can be made of this place, unless the user says which nodes there are and where
  // they meet. InvalidArgument, with what to write instead.
  absl::Status refusal;
  // Not empty: this is the script or shell of an allocation, whose nodes can be started from here.
  // Then --hosts and --launch-agent are among the values, and all other values describe this node
  // alone.
  std::string start_reason;
  // Of AllocationPlace: the processes that each host of --hosts was given; empty: nobody asked for
  // a number, so that the scheduler's own is no limit.
  std::vector<int> slots;
  // The scheduler's tasks on this node, if there are several: together they are the node's part of
  // the job. Then --nproc-per-node is among the values. Unset: this process alone is the node's
  // part.
  std::optional<NodeTasks> tasks;
  bool told_elsewhere = false;  // Another process tells the user about errors.
  // The nodes of --nnodes were started all at once, and nobody starts one of them again.
  bool started_once = false;
  // The message if there are several nodes and nothing says where they meet.
  std::string no_endpoint;
  // A warning if nothing says how many nodes there are; empty: no warning.
  std::string no_nnodes;
  // An error for that case: there certainly are other nodes, and each would train by itself.
  std::string needs_nnodes;

  bool found() const { return cluster != "none"; }
  void Add(std::string name, std::string value, std::string source, std::string meaning) {
    values.push_back({std::move(name), std::move(value), std::move(source), std::move(meaning)});
  }
};

// Returns the words that --cluster takes: "auto", "none", kOwnCluster, "slurm", …, and the words of
// a site's own systems.
std::vector<std::string> ClusterWords(const std::vector<SystemRow>& own);

// Decides whether this process was started as one node's part of a job, and by which system. With
// "auto" only proof counts: a shell in an allocation, a batch script and variables that were left
// behind give no place. If it is certain that other nodes or processes were started, but not which
// one this is, the place is refused, since each would train by itself. With a system's name its
// variables are believed. A site's `own` systems come first. Reads files below `root`, else pure.
//
// Requires: `word` is one of ClusterWords().
ClusterPlace FindPlace(const Surroundings& surroundings, absl::string_view word,
                       const std::vector<SystemRow>& own = {});

// Returns a line about a variable that counts the nodes or the ranks of a larger job than this one,
// which is one node with `ranks` ranks because nothing else makes a larger one; empty: there is
// none, or this is in a worker. Pure.
std::string CountAlone(const Environment& environment, int ranks);

// Whether this runs in the shell that `srun --pty` started on one node of a job. Pure.
bool IsInShellOfSrun(const Environment& environment);

// Whether this is one of several tasks of a Slurm step, and neither in a shell of `srun --pty`,
// where the variables are left from a task, nor in a worker, which has them from its agent. Pure.
bool IsOneOfSeveralTasks(const Environment& environment);

// Refuses a command that starts hosts in all tasks of a Slurm step but the first one: each would
// start the same job. Pure.
//
// Errors:
//   InvalidArgument - says which task this is, and what to do.
absl::Status CheckFirstTask(const Environment& environment);

// With this word --hosts stands for the hosts of the scheduler's job.
inline constexpr char kHostsOfAllocation[] = "allocation";

// Returns the scheduler's job that contains this process, be it a script, a shell or a task, as a
// place that starts the job's nodes from here. Refused if there is no such job, or its hosts cannot
// be read. Reads files below `root`, else pure.
ClusterPlace AllocationPlace(const Surroundings& surroundings);

}  // namespace hlaunch
