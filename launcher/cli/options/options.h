// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/events/deliver_event.h"
#include "agent/machine/binding/plan_binding.h"
#include "agent/machine/devices/device_plan.h"
#include "agent/output/log_spec.h"
#include "agent/watch/notice/drain_watch.h"
#include "agent/workers/worker/worker_spec.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/environment/mpi/decide_mpi.h"
#include "launcher/environment/scheduler/node_tasks.h"
#include "launcher/environment/scheduler/system_row.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/other_program.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "rendezvous/net/trust/certificate_files.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/store/c10d/c10d_server_options.h"

// What the user asks for, in structs that the rest of hlaunch uses directly. All are values.

namespace hlaunch {

// What every worker runs.
struct ScriptRequest {
  std::vector<std::string> command;  // Script, module or program, then its arguments; not empty.
  bool module = false;
  bool no_python = false;
  bool run_path = false;               // If true, `module` and `no_python` do not count.
  std::string directory = "";          // Where workers run. Empty: in this process's directory.
  std::string local_rank_option = "";  // NAME of --pass-local-rank[=NAME]. Empty: not given.
};

// Where the nodes of the job meet.
struct Meeting {
  std::optional<Endpoint> endpoint;       // Its port is 0 only if there is one node.
  std::vector<Endpoint> other_endpoints;  // Further services; one of all of them leads.
  std::string job_id;                     // --rdzv-id; empty: not given.
  std::string backend;                    // "static", "c10d" or empty.
  std::string master_addr;                // Without brackets; empty: not given.
  std::optional<uint16_t> master_port;    // 0 only if there is one node.
  std::string local_addr;  // Others reach this node here. No brackets; empty: by its route.
  std::string token_file;
  CertificateFiles certificates;
  std::string tls;  // "on", "off" or empty.
};

// The role that the user gives this node.
struct NodeRole {
  std::optional<int> rank;      // Unset: the rendezvous decides.
  std::optional<bool> is_host;  // From --rdzv-conf. Unset: addresses and ranks decide.
};

// The master store of the job.
struct StoreSpec {
  C10dServerOptions server;
  // Rank 0 serves the store itself. Unset: it does so if a worker is likely to start the ranks; see
  // JobSpec.
  std::optional<bool> in_worker;
  // Workers reach the store through their own agent. Unset: they do not.
  std::optional<bool> proxy;
};

// The wish of --bind (`mode`) or --numa-binding (`numa`). Only one of the two may be given.
struct BindWish {
  std::optional<BindMode> mode;
  std::optional<BindMode> numa;
  int cores = 0;                        // N of core:N. 0: the cores are divided evenly.
  std::vector<std::string> slots = {};  // The lists of slots:A;B, by local rank.
  bool report = false;
};

// Where this node reports how the job goes and how it ended.
struct NodeOutput {
  std::string report_file;          // The final report as JSON; empty: none.
  std::string termination_log;      // Empty: the file of Kubernetes, if it exists.
  bool json = false;                // hlaunch's own lines on stderr are JSON, one object each.
  std::optional<Endpoint> metrics;  // Where metrics are served, an IP literal. Unset: nowhere.
  // The same for the status page. Only the node that hosts the job's rendezvous serves it.
  std::optional<Endpoint> status_page;
  EventReceiver on_event;  // Node rank 0 tells it what happens to the job.
  LogLevel log_level = LogLevel::kInfo;
};

// What the user wants instead of a job.
struct InsteadOfJob {
  bool dry_run = false;          // Print what would be run, but run nothing.
  std::optional<int> print_env;  // Print the environment of this local rank, but run nothing.
  bool doctor = false;           // `hlaunch doctor`: only run the checks.
  bool doctor_json = false;      // Print their results as one JSON object.
  std::string install_links;     // Make links to hlaunch in this folder. Empty: make none.
  std::string install_copies;    // Copy hlaunch's programs into this folder. Empty: do not copy.

  bool installs() const { return !install_links.empty() || !install_copies.empty(); }
};

// Which hosts the job wants if the cluster of this host's hlaunchd places it.
struct PlacingWish {
  std::vector<std::string> hosts;   // From --nodes. Empty: any hosts.
  std::vector<std::string> labels;  // From --constraint: hosts must have all of these labels.
  bool exclusive = false;           // No other job may run on the job's hosts.

  bool any() const { return exclusive || !hosts.empty() || !labels.empty(); }
};

// The default policy of a user. These two defaults are not in JobPolicy itself, because an older
// hlaunch does not know these times: a policy that comes over the wire without them must have zero.
inline JobPolicy UsersPolicy() {
  JobPolicy policy;
  policy.grow_interval = std::chrono::seconds(60);
  policy.boundary_limit = std::chrono::seconds(600);
  return policy;
}

// The parsed command line: every value is checked by itself and against the others, but nothing is
// decided yet.
struct Options {
  std::string program = "hlaunch";  // "torchrun" if it was called so.

  // With --help, --version or --print-completion: print this on stdout and exit with 0. Nothing
  // else is set then. If `instead.installs()` is true, nothing else is set either.
  std::optional<std::string> text_to_print;

  HostWish hosts;  // The hosts on which this command starts the job. None: only this host.
  JobPolicy policy = UsersPolicy();      // The user sets only the loss limit of its lease.
  std::optional<HostLoss> on_host_loss;  // Not in `policy`: if unset, DecideHostLoss decides.
  Meeting meeting;
  NodeRole node;
  StoreSpec store;
  ScriptRequest script;
  std::vector<OtherProgramWish> others;  // From --also: programs of the last ranks, in this order.

  std::optional<int> nproc = 1;  // Unset: the number that `nproc_word` stands for.
  // With N of each object, as in "2:socket": this node's part of -n. Unset: -n was not given.
  std::optional<int> nproc_share;
  std::string nproc_word;  // "auto", "cpu", or devices: "gpu", "hpu", "xpu", …
  WorkerSpec worker;       // Only what the user gives; MakeJobSpec adds the rest.
  DeviceRequest devices;   // The same. `ids` is unset if all visible devices are wanted.
  MpiWish mpi = MpiWish::kAuto;
  BindWish binding;
  // A directory that describes the machine to look for devices on. Empty: this machine.
  std::string sysroot;
  Duration health_interval = std::chrono::seconds(60);  // Zero: never.
  DrainSources drain;     // The sources that announce that this node will go away.
  Duration time_limit{};  // For the whole job. Zero: no limit.

  LogSpec logs;
  NodeOutput output;
  InsteadOfJob instead;

  bool detach = false;  // The job continues without this terminal.
  // Set in the process that runs a detached job: the job's directory. Empty: it is not detached.
  std::string detached_directory;

  std::optional<NodeTasks> tasks;  // This node's tasks, if it has several.

  std::string cluster = "auto";  // A word of ClusterWords().
  bool says_size = false;        // How many nodes there are is said, or how many ranks.
  PlacingWish placing;
  std::vector<SystemRow> cluster_systems;     // From --cluster-file.
  std::vector<std::string> cluster_warnings;  // About the place that was found; one line each.
  std::vector<std::string> unneeded_conf;     // Keys of --rdzv-conf that hlaunch ignores.
  std::vector<std::string> unneeded;          // Options of torchrun that hlaunch ignores.
  // Says for each value that was not typed which source gave it; one line each.
  std::vector<std::string> sources;

  // The words before the script as typed, from the program's name on, and then what variables and
  // the configuration gave. The command for other hosts is made from them.
  std::vector<std::string> option_words;
};

}  // namespace hlaunch
