// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/binding/plan_binding.h"
#include "agent/devices/device.h"
#include "agent/output/log_spec.h"
#include "agent/worker/worker_spec.h"
#include "launcher/job/token.h"
#include "launcher/job/worker_argv.h"
#include "launcher/mpi/mpi_program.h"
#include "launcher/options/options.h"
#include "launcher/words/endpoint.h"
#include "launcher/words/environment.h"
#include "proto/base/clock.h"
#include "rendezvous/round/round.h"
#include "rendezvous/trust/certificate_files.h"

namespace hlaunch {

// How the nodes of a job find each other.
enum class JobMode {
  kSingleNode,  // One node: rendezvous within the process, no gRPC.
  kEndpoint,    // At --rdzv-endpoint; the node that owns it hosts.
  kStatic,  // At --master-addr and --master-port; node rank 0 hosts, the workers' store shares the
            // port.
  kListenAndPrint,  // Nothing was named: this node hosts and prints what to run elsewhere.
};

// All that is decided before the job starts. A value.
struct JobSpec {
  JobMode mode = JobMode::kSingleNode;
  std::string job_id;
  JobPolicy policy;
  NodeRole node;           // As the user says it.
  std::string local_addr;  // What this node is reached at: a name or a literal; empty: its route.
  // kEndpoint, kStatic: where the nodes meet. kListenAndPrint: no host, and the first port to
  // try.
  Endpoint endpoint;
  std::vector<Endpoint> other_endpoints;  // kEndpoint: services beside it, of which one leads.
  // The MASTER_PORT that the user named for every round: kStatic unless `worker_store`,
  // kSingleNode with --master-port. Unset: a new one each round.
  std::optional<uint16_t> master_port;
  std::string token;       // Secret: never printed, never in a worker's environment. Empty: none.
  std::string token_file;  // Where it was read; empty: from HLAUNCH_TOKEN, or there is none.
  CertificateFiles certificates;  // Instead of a token. None: none.
  bool tls = true;                // Without, the token is proved in clear.
  WorkerSpec worker;
  // What workers compute on, by local rank, and then what else they may see, see BindRequest.
  std::vector<DevicePlace> places;
  std::string binding;                     // Why workers are bound so, if it is worth a word.
  std::vector<std::string> binding_lines;  // The same as a picture.
  std::string mpi;  // How MPI programs among the workers are served, and why.
  LogSpec logs;
  StoreSpec store;
  bool worker_store = false;  // Rank 0 serves the master store itself.
  bool store_proxy = false;   // Whether workers reach the master store through their own agent,
  bool store_sealed = false;  // and whether that encrypts what they say to other nodes' stores.
  std::vector<std::string> warnings;  // One line each, to be logged once.
  std::vector<std::string> notes;     // The same at debug level.
};

// What MakeJobSpec asks of the host; tests put in their own.
struct HostProbes {
  std::function<int()> usable_cpus;
  std::function<std::string()> new_job_id;
  ReadTokenFileFn read_token_file;
  // Errors: as MakeWorkerArgv.
  std::function<absl::StatusOr<std::vector<std::string>>(const ScriptRequest&, const Environment&)>
      make_worker_argv;
  // Of the machine that `sysroot` describes; empty: this one.
  std::function<std::vector<Device>(const std::string& sysroot)> find_devices =
      [](const std::string&) { return std::vector<Device>(); };
  // How many sockets, NUMA nodes ("numa"), caches ("l3") or cores have a CPU that may be used.
  std::function<absl::StatusOr<int>(const std::string& object)> count_objects =
      [](const std::string&) { return 1; };
  std::function<MpiProgram(const std::vector<std::string>& argv, const Environment&)> look_for_mpi =
      [](const std::vector<std::string>&, const Environment&) { return MpiProgram(); };
  std::function<PmixTools(const Environment&, const std::string& mpi)> find_pmix =
      [](const Environment&, const std::string&) { return PmixTools(); };
};

// How the nodes of this job find each other. Pure.
JobMode DecideMode(const Options& options);

// Whether the job needs the program that links gRPC.
inline bool NeedsGrpc(JobMode mode) { return mode != JobMode::kSingleNode; }
inline bool NeedsGrpc(const JobSpec& spec) { return NeedsGrpc(spec.mode); }

}  // namespace hlaunch
