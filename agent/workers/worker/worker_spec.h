// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/machine/binding/worker_binding.h"
#include "agent/machine/devices/env_change.h"
#include "agent/workers/worker/line_rule.h"
#include "proto/base/clock.h"
#include "rendezvous/round/hang/hang_rule.h"

namespace hlaunch {

// What happens to a worker that has stalled.
enum class StallAction {
  kWarn,  // It is named in a message, and goes on if it can.
  kFail,  // It counts as failed: it is killed, and the restart policy decides the rest.
};

// How workers find the server that starts MPI programs: PMI-1 for MPICH, MVAPICH and Intel MPI,
// PMIx for Open MPI.
enum class MpiOffer {
  kNone,        // No server: each worker is an MPI world of its own.
  kMaybe,       // By a port, but without MPI's names: it may be no MPI program.
  kPort,        // By a port, for a wrapper that passes no descriptor on.
  kDescriptor,  // By a descriptor.
  kPmix,        // PMIx only.
  kAny,         // PMI-1 by a port and PMIx: MPI programs of unknown kind.
};

// Whether PMI-1, or PMIx, is offered. Pure.
constexpr bool OffersPmi(MpiOffer offer) {
  return offer != MpiOffer::kNone && offer != MpiOffer::kPmix;
}
constexpr bool OffersPmix(MpiOffer offer) {
  return offer == MpiOffer::kPmix || offer == MpiOffer::kAny;
}

// Which workers of this node read hlaunch's stdin; the others read /dev/null. With kAll, each
// worker reads all of it.
enum class StdinTo { kNobody, kRank0, kAll };

// What each node imports once before its ranks are forked from it. A value.
struct Preload {
  bool automatic = false;            // What the script imports at its top level and is known.
  std::vector<std::string> modules;  // What the user names.

  bool wanted() const { return automatic || !modules.empty(); }
};

// A program that some of the job's ranks run instead of the first program. A value.
struct OtherProgram {
  int ranks = 0;                         // How many ranks run it, at least 1; see RanksOfPrograms.
  std::vector<std::string> argv;         // As WorkerSpec::argv.
  std::vector<std::string> environment;  // For these ranks alone, NAME=value each.
  std::string directory;                 // Where they run; empty: in the directory of all workers.
};

// Where the output of a worker is shown. A value; whoever fills it owns the descriptors.
struct ConsoleStreams {
  int out = -1, err = -1;  // -1: hlaunch's own.
};

// What every worker of this node runs. A value that the launcher makes once.
struct WorkerSpec {
  std::string job_id;
  std::vector<std::string> argv;           // argv[0] is a path or is looked up in PATH.
  std::vector<OtherProgram> others;        // What the job's last ranks run, in this order.
  std::vector<std::string> inherited_env;  // hlaunch's own environment, `NAME=value` each.
  std::string directory;                   // Where they run; empty: in hlaunch's.
  int nproc = 1;                           // Workers on this node.
  // By local rank: the command line that starts a stand-in, to which the worker's own is appended.
  // The stand-in makes another process of this node run the worker and ends as the worker ends. If
  // an entry is empty or missing, the worker is this process's child.
  std::vector<std::vector<std::string>> stand_ins;
  std::vector<ConsoleStreams> consoles;  // By local rank: replace hlaunch's own; may be empty.
  bool own_cpus = false;                 // Each worker has its own CPUs, as many as hlaunch.
  std::string role = "default";          // ROLE_NAME
  // The signals that the agent forwards to workers and ends the job for; empty: see EndingSignals.
  std::vector<int> signals_to_handle;
  bool virtual_local_rank = false;  // LOCAL_RANK is 0, and each worker sees one device.
  bool starts_others = false;       // The only worker starts the others itself and has no rank.
  bool keep_env = false;            // No inherited variable is removed.
  bool place_in_words = false;      // ${rank} and others in argv are replaced, see WorkerArgv.
  std::set<std::string> compat;     // Additional sets of variables, such as "openmpi".
  std::optional<StdinTo> stdin_to;  // Unset: the user did not say; nothing reads it.
  std::optional<uint64_t> descriptor_limit;  // Soft limit; unset: hlaunch's own.
  // By local rank: the changes that the worker's devices make to its environment, see
  // AssignDevices. Empty if no devices were assigned.
  std::vector<std::vector<EnvChange>> device_env;
  MpiOffer mpi = MpiOffer::kNone;
  std::string pmix_program;  // The path of hlaunch's PMIx program.
  std::string pmix_library;  // This machine's PMIx library, if OffersPmix(mpi).
  bool on_neuron =
      false;  // The workers compute on AWS Neuron, whose runtimes meet at their own port.
  std::vector<WorkerBinding> bindings;  // By local rank, see PlanBinding. Empty: none is bound.
  Duration stop_grace = std::chrono::seconds(30);  // From SIGTERM to SIGKILL.
  // A worker that has sent a heartbeat and then none for this long has stalled; zero if heartbeats
  // are not watched.
  Duration heartbeat_timeout = Duration::zero();
  StallAction stall_action = StallAction::kFail;
  bool hears_boundaries = false;  // Rank 0 can say when it has reached a good moment to stop.
  HangRule hang_rule = {};        // When a hang of the ranks is reported.
  StallAction hang_action = StallAction::kWarn;  // What happens to the rank that caused the hang.
  std::vector<LineRule> line_rules;              // What lines of the output mean.
  std::vector<SilenceRule> silence_rules;        // Which lines have to recur; see stall_action.
  Preload preload;
  // All users of the job's hosts may use its store, MPI servers and page, not only its own and
  // root.
  bool any_user = false;
};

}  // namespace hlaunch
