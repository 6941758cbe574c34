// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/binding/plan_binding.h"
#include "agent/devices/device_plan.h"
#include "agent/event_hook/deliver_event.h"
#include "agent/notice/drain_watch.h"
#include "agent/output/log_spec.h"
#include "agent/worker/worker_spec.h"
#include "launcher/cluster/node_tasks.h"
#include "launcher/cluster/system_row.h"
#include "launcher/hosts/host_list.h"
#include "launcher/mpi/decide_mpi.h"
#include "launcher/words/endpoint.h"
#include "launcher/words/other_program.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "rendezvous/c10d/c10d_server_options.h"
#include "rendezvous/round/round.h"
#include "rendezvous/trust/certificate_files.h"

// What the user asks for, in the structs that the rest of hlaunch takes as they are. All are
// values.

namespace hlaunch {

// What every worker runs.
struct ScriptRequest {
  std::vector<std::string> command;  // Script, module or program, then its arguments; not empty.
  bool module = false;
  bool no_python = false;
  bool run_path = false;               // Beats the other two.
  std::string directory = "";          // Where workers run; empty: in ours.
  std::string local_rank_option = "";  // Of --pass-local-rank[=NAME]; empty: not given.
};

// Where the nodes of the job meet.
struct Meeting {
  std::optional<Endpoint> endpoint;       // Port 0 only where there is one node.
  std::vector<Endpoint> other_endpoints;  // Beside it: services of which one leads.
  std::string job_id;                     // --rdzv-id; empty: not given.
  std::string backend;                    // "static", "c10d" or empty.
  std::string master_addr;                // Without brackets; empty: not given.
  std::optional<uint16_t> master_port;    // 0 only where there is one node.
  std::string local_addr;  // What this node is reached at, without brackets; empty: its route.
  std::string token_file;
  CertificateFiles certificates;
  std::string tls;  // "on", "off" or empty.
};

// What this node is to be among the nodes.
struct NodeRole {
  std::optional<int> rank;      // Unset: the rendezvous decides.
  std::optional<bool> is_host;  // Of --rdzv-conf. Unset: addresses and ranks decide.
};

// The master store of the job.
struct StoreSpec {
  C10dServerOptions server;
  // Rank 0 serves it itself. Unset: where a worker is likely to start the ranks, see JobSpec.
  std::optional<bool> in_worker;
  // Workers reach it through their own agent. Unset: where nodes encrypt what they say.
  std::optional<bool> proxy;
};

// Of --bind and --numa-binding, at most one; unset: not given.
struct BindWish {
  std::optional<BindMode> mode;
  std::optional<BindMode> numa;
  int cores = 0;                        // Of core:N; 0: an even part.
  std::vector<std::string> slots = {};  // Of slots:A;B, by local rank.
  bool report = false;
};

// Where this node tells how the job goes and how it ended.
struct NodeOutput {
  std::string report_file;          // The final report as JSON; empty: none.
  std::string termination_log;      // Empty: Kubernetes' own, where it is.
  bool json = false;                // hlaunch's own lines on stderr are JSON, one object each.
  std::optional<Endpoint> metrics;  // Where they are served, a literal; unset: nowhere.
  // The same for the status page, where the job's rendezvous is.
  std::optional<Endpoint> status_page;
  EventReceiver on_event;  // Who is told what becomes of the job, by node rank 0.
  LogLevel log_level = LogLevel::kInfo;
};

// What is wanted instead of a job.
struct InsteadOfJob {
  bool dry_run = false;          // Say what would be run, and run nothing.
  std::optional<int> print_env;  // Print what this local rank would see, and run nothing.
  bool doctor = false;           // `hlaunch doctor`: the checks are what is wanted,
  bool doctor_json = false;      // as one JSON object.
  std::string install_links;     // Make links to hlaunch in this folder; empty: no.
  std::string install_copies;    // Copy hlaunch's programs there; empty: no.

  bool installs() const { return !install_links.empty() || !install_copies.empty(); }
};

// What of a cluster's hosts the job wants, where the cluster of this host's hlaunchd places it.
struct PlacingWish {
  std::vector<std::string> hosts;   // --nodes; empty: any.
  std::vector<std::string> labels;  // --constraint: hosts that have all of these.
  bool exclusive = false;           // Nobody else on its hosts.

  bool any() const { return exclusive || !hosts.empty() || !labels.empty(); }
};

// The policy of a user who says nothing of it. An older hlaunch knows neither of these times, so a
// policy off the wire that is silent of them has zero.
inline JobPolicy UsersPolicy() {
  JobPolicy policy;
  policy.grow_interval = std::chrono::seconds(60);
  policy.boundary_limit = std::chrono::seconds(600);
  return policy;
}

// The command line as read: every value checked by itself and against the others, nothing
// decided.
struct Options {
  std::string program = "hlaunch";  // Or "torchrun", where it was called so.

  // --help, --version, --print-completion: print this on stdout and exit with 0. Nothing else is
  // set. Of `instead.installs()` the same is true.
  std::optional<std::string> text_to_print;

  HostWish hosts;  // Where this command line starts the job by itself; none: here alone.
  JobPolicy policy = UsersPolicy();  // Of its lease only the loss limit is the user's.
  Meeting meeting;
  NodeRole node;
  StoreSpec store;
  ScriptRequest script;
  std::vector<OtherProgramWish> others;  // Of --also: what the last ranks run, in this order.

  std::optional<int> nproc = 1;  // Unset: as many as `nproc_word` stands for.
  std::string nproc_word;        // "auto", "cpu", or devices: "gpu", "hpu", "xpu", …
  WorkerSpec worker;             // As far as the user says it; MakeJobSpec adds the rest.
  DeviceRequest devices;         // The same; `ids` is unset for all that are visible.
  MpiWish mpi = MpiWish::kAuto;
  BindWish binding;
  std::string sysroot;  // The machine to look for devices on, as a directory; empty: this one.
  Duration health_interval = std::chrono::seconds(60);  // Zero: never.
  DrainSources drain;     // Where it is said that this node will be gone.
  Duration time_limit{};  // Of the whole job; zero: none.

  LogSpec logs;
  NodeOutput output;
  InsteadOfJob instead;

  bool detach = false;             // The job goes on without this terminal.
  std::string detached_directory;  // Where it is kept, for what runs it; empty: it is not detached.

  std::optional<NodeTasks> tasks;  // Those of this node, where there are several.

  std::string cluster = "auto";  // A word of ClusterWords().
  PlacingWish placing;
  std::vector<SystemRow> cluster_systems;     // Of --cluster-file.
  std::vector<std::string> cluster_warnings;  // Of the place that was found; one line each.
  std::vector<std::string> unneeded_conf;     // Keys of --rdzv-conf that mean nothing to hlaunch.
  std::vector<std::string> unneeded;          // Options of torchrun that mean nothing to hlaunch.
  // Which values came from variables and which from the configuration; one line each.
  std::vector<std::string> sources;

  // The words before the script as typed, the program's name first, and then what other sources
  // gave: for the command that another host is to run.
  std::vector<std::string> option_words;
};

}  // namespace hlaunch
