// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/make_job_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/devices/find_devices.h"
#include "agent/node_facts.h"
#include "agent/worker/worker_env.h"
#include "launcher/job/node_devices.h"
#include "launcher/job/token.h"
#include "proto/base/status_macros.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr char kPrefixVariable[] = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";  // As for torchrun.
constexpr char kCommonJobId[] = "none";  // torchrun's: all nodes must come to the same one.

int UsableCpus() { return std::max(1, static_cast<int>(AllowedCpus().size())); }

void SetPlace(const Options& options, JobSpec& spec) {
  switch (spec.mode) {
    case JobMode::kSingleNode:
      if (options.master_port.value_or(0) != 0) spec.master_port = options.master_port;
      return;
    case JobMode::kListenAndPrint:
      spec.endpoint = {"", kDefaultRdzvPort};
      return;
    case JobMode::kStatic:
      spec.endpoint = options.rdzv_endpoint.value_or(
          Endpoint{options.master_addr, options.master_port.value_or(kDefaultMasterPort)});
      if (options.worker_store) {
        spec.warnings.push_back(absl::StrCat(
            "--master-store worker: the nodes meet on port ", spec.endpoint.port,
            ", so rank 0 cannot serve there; MASTER_PORT is a port of its own, new in each round"));
      } else {
        spec.master_port = spec.endpoint.port;
      }
      break;
    case JobMode::kEndpoint:
      spec.endpoint = *options.rdzv_endpoint;
      break;
  }
  const bool other_host = !options.master_addr.empty() && options.master_addr != spec.endpoint.host;
  if (other_host || options.master_port.value_or(spec.endpoint.port) != spec.endpoint.port) {
    spec.warnings.push_back(absl::StrCat(other_host ? "--master-addr" : "--master-port",
                                         " is not used: --rdzv-endpoint says that",
                                         " the nodes meet at ", HostPort(spec.endpoint)));
  }
}

// The whole rule scales with the loss limit: 5 s and 10 s at the default of 30 s.
Lease MakeLease(Duration loss_limit) {
  Lease lease;
  lease.loss_limit = loss_limit;
  lease.lease = std::min<Duration>(seconds(5), loss_limit / 3);
  // An agent that was itself paused is forgiven one lease; then it stops its workers within 2 s
  // and what ignores that is killed: only afterwards may its place be given away.
  lease.margin = lease.lease + seconds(5);
  return lease;
}

std::string MakeJobId(const Options& options, JobMode mode, const HostProbes& probes) {
  if (!options.rdzv_id.empty()) return options.rdzv_id;
  const bool others_read_it_here = mode == JobMode::kSingleNode || mode == JobMode::kListenAndPrint;
  return others_read_it_here ? probes.new_job_id() : kCommonJobId;
}

// Requires: spec.worker.nproc is decided.
void SetLogs(const Options& options, const Environment& environment, JobSpec& spec) {
  spec.logs = options.logs;
  if (spec.logs.prefix_template.empty()) {
    spec.logs.prefix_template = environment.Get(kPrefixVariable);
  }
  const auto warn_of = [&spec](const char* option, int rank) {
    if (rank < spec.worker.nproc) return;
    spec.warnings.push_back(
        absl::StrCat(option, " names local rank ", rank, ", and this node has ", spec.worker.nproc,
                     spec.worker.nproc == 1
                         ? " worker: local rank 0"
                         : absl::StrCat(" workers: local ranks 0 to ", spec.worker.nproc - 1)));
  };
  const LogSpec& logs = spec.logs;
  if (!logs.redirects.ranks.empty()) warn_of("--redirects", logs.redirects.ranks.rbegin()->first);
  if (!logs.tee.ranks.empty()) warn_of("--tee", logs.tee.ranks.rbegin()->first);
  if (!logs.shown_ranks.empty()) warn_of("--local-ranks-filter", *logs.shown_ranks.rbegin());
}

}  // namespace

HostProbes RealHostProbes() {
  return {UsableCpus, NewJobId, ReadTokenFile, MakeWorkerArgv,
          [](const std::string& sysroot) { return FindDevices(DeviceFiles(sysroot)); }};
}

absl::StatusOr<JobSpec> MakeJobSpec(const Options& options, const Environment& environment,
                                    const HostProbes& probes) {
  JobSpec spec;
  spec.mode = DecideMode(options);
  spec.policy.min_nodes = options.min_nodes;
  spec.policy.max_nodes = options.max_nodes;
  spec.policy.max_restarts = options.max_restarts;
  spec.policy.lease = MakeLease(options.loss_limit);
  spec.policy.join_timeout = options.join_timeout;
  spec.policy.last_call = options.last_call;
  spec.policy.spares = options.spares;
  spec.policy.preflight = options.preflight;
  spec.policy.preflight_action = options.preflight_action;
  spec.policy.preflight_share = options.preflight_share;
  spec.node_rank = options.node_rank;
  spec.warnings = options.cluster_warnings;
  spec.is_host = options.is_host;
  if (!options.unneeded_conf.empty()) {
    spec.notes.push_back(
        absl::StrCat("--rdzv-conf: not needed here: ", absl::StrJoin(options.unneeded_conf, ", ")));
  }
  if (!options.unneeded.empty()) {
    spec.notes.push_back(absl::StrCat("not needed here: ", absl::StrJoin(options.unneeded, ", ")));
  }
  spec.notes.insert(spec.notes.end(), options.sources.begin(), options.sources.end());
  spec.worker_store = options.worker_store;
  spec.store_proxy = options.store_proxy;
  SetPlace(options, spec);
  spec.job_id = MakeJobId(options, spec.mode, probes);
  if (NeedsGrpc(spec)) {
    HLAUNCH_ASSIGN_OR_RETURN(const Token token,
                             FindToken(options.token_file, environment, probes.read_token_file));
    spec.token = token.secret;
    spec.token_file = token.file;
    spec.warnings.insert(spec.warnings.end(), token.warnings.begin(), token.warnings.end());
  }
  ScriptRequest script{options.command, options.module, options.no_python, options.run_path};
  if (!options.local_rank_option.empty()) {  // Each worker puts in its own.
    script.command.insert(script.command.begin() + 1,
                          absl::StrCat(options.local_rank_option, "=${local_rank}"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(spec.worker.argv, probes.make_worker_argv(script, environment));
  spec.worker.job_id = spec.job_id;
  spec.worker.inherited_env = environment.Without(kTokenVariable);
  HLAUNCH_RETURN_IF_ERROR(AssignNodeDevices(options, probes, spec));
  const bool lone_worker = spec.mode == JobMode::kSingleNode && spec.worker.nproc == 1;
  spec.worker.stdin_to_rank0 = options.use_stdin || lone_worker;
  spec.worker.stop_grace = options.shutdown_timeout;
  spec.worker.heartbeat_timeout = options.heartbeat_timeout;
  spec.worker.stall_action = options.stall_action;
  spec.worker.role = options.role;
  spec.worker.signals_to_handle = options.signals_to_handle;
  spec.worker.virtual_local_rank = options.virtual_local_rank;
  spec.worker.keep_env = options.keep_env;
  spec.worker.compat = options.compat;
  HLAUNCH_RETURN_IF_ERROR(CheckWorkerSpec(spec.worker, options.max_nodes));
  SetLogs(options, environment, spec);
  spec.store = options.store;
  return spec;
}

}  // namespace hlaunch
