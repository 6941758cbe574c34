// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/binding/worker_binding.h"
#include "agent/devices/env_change.h"
#include "agent/worker/line_rule.h"
#include "proto/base/clock.h"
#include "rendezvous/hang/hang_rule.h"

namespace hlaunch {

// What becomes of a worker that has stalled.
enum class StallAction {
  kWarn,  // It is named, and goes on if it can.
  kFail,  // It has failed: it is killed, and what follows is the restart policy's.
};

// How workers find the server that starts MPI programs: of PMI-1 for MPICH, MVAPICH and Intel MPI,
// of PMIx for Open MPI.
enum class MpiOffer {
  kNone,        // Not at all: each is an MPI world of its own.
  kMaybe,       // By a port, and no name says so that others read: they may be no MPI programs.
  kPort,        // By a port, as where a wrapper passes no descriptor on.
  kDescriptor,  // By a descriptor.
  kPmix,        // That of PMIx alone.
  kAny,         // Both, PMI-1 by a port: they are MPI programs, and it is not seen of which kind.
};

// Whether one of the two is offered. Pure.
constexpr bool OffersPmi(MpiOffer offer) {
  return offer != MpiOffer::kNone && offer != MpiOffer::kPmix;
}
constexpr bool OffersPmix(MpiOffer offer) {
  return offer == MpiOffer::kPmix || offer == MpiOffer::kAny;
}

// Which workers of this node read hlaunch's stdin; the others read /dev/null. Of all, each reads
// everything.
enum class StdinTo { kNobody, kRank0, kAll };

// A program that some of the job's ranks run instead of the others'. A value.
struct OtherProgram {
  int ranks = 0;                         // How many run it, see RanksOfPrograms; from 1 on.
  std::vector<std::string> argv;         // As that of all.
  std::vector<std::string> environment;  // For these ranks alone, NAME=value each.
  std::string directory;                 // Where they run; empty: where all do.
};

// Where the output of a worker comes to light. A value; the descriptors are its maker's.
struct ConsoleStreams {
  int out = -1, err = -1;  // -1: our own.
};

// What every worker of this node runs. A value, made once by the launcher.
struct WorkerSpec {
  std::string job_id;
  std::vector<std::string> argv;           // argv[0] is a path or is looked up in PATH.
  std::vector<OtherProgram> others;        // What the job's last ranks run, in this order.
  std::vector<std::string> inherited_env;  // hlaunch's own environment, `NAME=value` each.
  std::string directory;                   // Where they run; empty: in ours.
  int nproc = 1;                           // Workers on this node.
  // By local rank: the program, and its first arguments, that has another process of this node run
  // the worker and ends as it ends; empty, or none: the worker is this process's child.
  std::vector<std::vector<std::string>> stand_ins;
  std::vector<ConsoleStreams> consoles;  // By local rank: in place of our own; empty: ours.
  bool own_cpus = false;                 // Each has as many CPUs as we, and none of ours.
  std::string role = "default";          // ROLE_NAME
  // What the agent forwards to workers and ends the job for; empty: see EndingSignals (keeper.h).
  std::vector<int> signals_to_handle;
  bool virtual_local_rank = false;  // LOCAL_RANK is 0, and one device is visible.
  bool starts_others = false;    // The lone worker starts others itself: it has no rank of its own.
  bool keep_env = false;         // Nothing of what was inherited is scrubbed.
  std::set<std::string> compat;  // Further sets of variables, such as "openmpi".
  std::optional<StdinTo> stdin_to;           // Unset: the user left it open; then nobody.
  std::optional<uint64_t> descriptor_limit;  // Soft; unset: hlaunch's own.
  // By local rank: what each worker's environment says of its devices, see AssignDevices. Empty:
  // none were assigned.
  std::vector<std::vector<EnvChange>> device_env;
  MpiOffer mpi = MpiOffer::kNone;
  std::string pmix_program;  // Of hlaunch, and
  std::string pmix_library;  // of this machine, where OffersPmix(mpi).
  bool on_neuron =
      false;  // They compute on AWS Neuron, whose runtimes meet at a port of their own.
  std::vector<WorkerBinding> bindings;  // By local rank, see PlanBinding. Empty: nobody is bound.
  Duration stop_grace = std::chrono::seconds(30);  // From SIGTERM to SIGKILL.
  // A worker that has sent a heartbeat, and then none for so long, has stalled; zero: nobody
  // listens.
  Duration heartbeat_timeout = Duration::zero();
  StallAction stall_action = StallAction::kFail;
  bool hears_boundaries = false;  // Rank 0 can say when it is at a good moment to stop.
  HangRule hang_rule = {};        // When ranks that stand still are told of,
  StallAction hang_action = StallAction::kWarn;  // and what becomes of the one that holds them up.
  std::vector<LineRule> line_rules;              // What lines of its output mean,
  std::vector<SilenceRule> silence_rules;  // and which of them have to come; see stall_action.
};

}  // namespace hlaunch
