// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launcher/cluster/node_tasks.h"
#include "launcher/cluster/system_row.h"
#include "launcher/words/environment.h"

// How a run finds its place: which nodes there are, which one this is and where they meet, from
// what a scheduler or an outer launcher has left in the environment.

namespace hlaunch {

// What a place is found from. A value: tests make their own.
struct Surroundings {
  Environment environment;
  std::string host;            // This host's own name.
  std::vector<int> ancestors;  // The pids of this process and of those that it descends from.
  std::string root;            // Before the names of files that are read; empty: this machine's.
  bool own_pids = false;       // A container hides the processes outside of it.
  // No other node is to be started from here, whatever this is, and no worker in another task.
  bool alone = false;
};

// Those of this process.
Surroundings SurroundingsOfThisProcess(Environment environment);

// One thing that is known. A value.
struct PlaceValue {
  std::string name;  // The option that it is a default of, "--nnodes"; else what it is: "restarts".
  std::string value;
  std::string source;   // The variable or file: "SLURM_STEP_NUM_NODES".
  std::string meaning;  // In words.

  bool is_option() const { return name[0] == '-'; }
};

// What was found. A value.
struct ClusterPlace {
  std::string cluster = "none";  // A word of ClusterWords(); "none": nothing is taken.
  std::string reason;            // One line: the proof, or why nothing is taken. Always set.
  std::vector<PlaceValue> values;
  std::vector<std::string> warnings;  // One line each.
  std::vector<std::string> cautions;  // The same, however many nodes the user wants.
  // Not OK: a job cannot be made of this, unless the user says which nodes there are and where
  // they meet. InvalidArgument, with what to write instead.
  absl::Status refusal;
  // Not empty: this is the script or shell of an allocation, whose nodes can be started from here.
  // --hosts and --launch-agent are among the values then; all else is told of this node alone.
  std::string start_reason;
  // Several of its tasks are on this node, which together are that node's part; unset: this one is
  // it by itself. --nproc-per-node is among the values then.
  std::optional<NodeTasks> tasks;
  bool told_elsewhere = false;  // Another process of this node or another one says the same.
  // What to say where there are several nodes and nobody says where they meet.
  std::string no_endpoint;
  // A warning where nobody says how many nodes there are; empty: none.
  std::string no_nnodes;
  // The same, and it is certain that there are others, which train something of their own: an
  // error.
  std::string needs_nnodes;

  bool found() const { return cluster != "none"; }
  void Add(std::string name, std::string value, std::string source, std::string meaning) {
    values.push_back({std::move(name), std::move(value), std::move(source), std::move(meaning)});
  }
};

// The word of --cluster for a cluster of one's own, which no variables tell: a job goes there, and
// this process is none of its nodes.
inline constexpr char kOwnCluster[] = "hlaunchd";

// What --cluster takes: "auto", "none", kOwnCluster, "slurm", …, and the words of a site's own
// systems.
std::vector<std::string> ClusterWords(const std::vector<SystemRow>& own);

// Decides whether this process was started as one node's part of a job, and by whom. With "auto"
// only what proves that counts: a shell in an allocation, a batch script and variables that were
// left behind give nothing. Where it is certain that other nodes or processes were started, and
// not which one this is, the place is refused: each would train by itself. With a system's name its
// variables are taken at their word. A site's `own` systems are asked first. Reads files below
// `root`, else pure.
//
// Requires: `word` is one of ClusterWords().
ClusterPlace FindPlace(const Surroundings& surroundings, absl::string_view word,
                       const std::vector<SystemRow>& own = {});

// What --hosts stands for where it is this word.
inline constexpr char kHostsOfAllocation[] = "allocation";

// The job of a scheduler that this process is in, whether a script, a shell or a task of it, as a
// place that starts its nodes from here. Refused where there is none. Reads files below `root`,
// else pure.
ClusterPlace AllocationPlace(const Surroundings& surroundings);

}  // namespace hlaunch
