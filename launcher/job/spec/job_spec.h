// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/machine/binding/plan_binding.h"
#include "agent/machine/devices/device.h"
#include "agent/output/log_spec.h"
#include "agent/workers/worker/worker_spec.h"
#include "launcher/cli/options/options.h"
#include "launcher/environment/mpi/mpi_program.h"
#include "launcher/environment/python/shim.h"
#include "launcher/job/spec/token.h"
#include "launcher/job/spec/worker_argv.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"
#include "rendezvous/net/trust/certificate_files.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// How the nodes of a job find each other.
enum class JobMode {
  kSingleNode,  // One node. The rendezvous is in the agent's process, without gRPC.
  kEndpoint,    // At --rdzv-endpoint. The node that owns this address hosts.
  kStatic,  // At --master-addr and --master-port. Node rank 0 hosts; the workers' store shares the
            // port.
  kListenAndPrint,  // No place was named. This node hosts and prints what to run elsewhere.
};

// Everything that is decided before the job starts. A value.
struct JobSpec {
  JobMode mode = JobMode::kSingleNode;
  std::string job_id;
  JobPolicy policy;
  NodeRole node;  // The role that the user gave.
  // The others reach this node here: a name or a literal. Empty: the address of its route.
  std::string local_addr;
  // With kEndpoint and kStatic: where the nodes meet. With kListenAndPrint: no host, and the first
  // port to try.
  Endpoint endpoint;
  std::vector<Endpoint> other_endpoints;  // With kEndpoint: further services.
  // The MASTER_PORT that the user set for every round: with kStatic unless `worker_store`, and with
  // kSingleNode if a port was given. Unset: each round has a new port.
  std::optional<uint16_t> master_port;
  std::string token;       // Secret: never printed, never in a worker's environment. Empty: none.
  std::string token_file;  // As Token::file: where the token was found.
  CertificateFiles certificates;  // Used instead of a token. May be none.
  bool tls = true;                // False: the token is proved in clear.
  WorkerSpec worker;
  // The devices of the workers, by local rank, and then the devices that no worker uses; see
  // BindRequest.
  std::vector<DevicePlace> places;
  std::string binding;  // Why workers are bound in this way. Empty if there is nothing to tell.
  std::vector<std::string> binding_lines;  // A picture of the binding.
  std::string mpi;  // How hlaunch serves MPI programs among the workers, and why.
  LogSpec logs;
  StoreSpec store;
  bool worker_store = false;          // Rank 0 serves the master store itself.
  bool store_proxy = false;           // Workers reach the master store through their own agent.
  bool store_sealed = false;          // The agents can encrypt that traffic between nodes.
  std::vector<std::string> warnings;  // One line each. To be logged once.
  std::vector<std::string> notes;     // The same, at debug level.
};

// The questions that MakeJobSpec asks about the host. Tests give their own answers.
struct HostProbes {
  std::function<int()> usable_cpus;
  std::function<std::string()> new_job_id;
  ReadTokenFileFn read_token_file;
  // Errors: as MakeWorkerArgv.
  std::function<absl::StatusOr<std::vector<std::string>>(const ScriptRequest&, const Environment&)>
      make_worker_argv;
  // Errors: as AskShim.
  std::function<absl::StatusOr<ShimChoice>(const std::string& shim, const std::string& directory,
                                           const Environment&)>
      ask_shim = [](const std::string& shim, const std::string&, const Environment&) {
        return ShimChoice{shim, {}};
      };
  // Finds the devices of the machine that `sysroot` describes. Empty: this machine.
  std::function<std::vector<Device>(const std::string& sysroot)> find_devices =
      [](const std::string&) { return std::vector<Device>(); };
  // Counts the sockets ("socket"), NUMA nodes ("numa"), caches ("l3") or cores that have a usable
  // CPU.
  std::function<absl::StatusOr<int>(const std::string& object)> count_objects =
      [](const std::string&) { return 1; };
  std::function<MpiProgram(const std::vector<std::string>& argv, const Environment&)> look_for_mpi =
      [](const std::vector<std::string>&, const Environment&) { return MpiProgram(); };
  std::function<PmixTools(const Environment&, const std::string& mpi)> find_pmix =
      [](const Environment&, const std::string&) { return PmixTools(); };
};

// Decides how the nodes of this job find each other. Pure.
JobMode DecideMode(const Options& options);

// Decides what becomes of the job if the node dies that hosts its rendezvous. If the user does not
// say it, a job that may restart outlives that node, unless its rendezvous belongs to a command
// (--hosts), a service, or a port that the workers' store shares. Pure.
HostLoss DecideHostLoss(const Options& options);

// Returns whether the job needs the program that links gRPC.
inline bool NeedsGrpc(JobMode mode) { return mode != JobMode::kSingleNode; }
inline bool NeedsGrpc(const JobSpec& spec) { return NeedsGrpc(spec.mode); }

// Returns whether users or hosts that prove nothing are heard in this node's part: by the metrics,
// the status page, or a store and MPI servers for all users. It runs in `hlaunch-agent` then, whose
// addresses are others in each run. Pure.
bool HearsAnybody(const Options& options, const JobSpec& spec);

}  // namespace hlaunch
