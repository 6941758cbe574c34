// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/binding/plan_binding.h"
#include "agent/output/log_spec.h"
#include "agent/worker/worker_spec.h"
#include "launcher/words/endpoint.h"
#include "launcher/words/environment.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "rendezvous/c10d/c10d_server.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// The command line as read: every value checked by itself and against the others, nothing
// decided. A value.
struct Options {
  std::string program = "hlaunch";  // Or "torchrun", where it was called so.

  // --help, --version, --print-completion: print this on stdout and exit with 0. Nothing else is
  // set.
  std::optional<std::string> text_to_print;

  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<int> nproc = 1;  // Unset: as many as `nproc_word` stands for.
  std::string nproc_word;        // "auto", "cpu", or devices: "gpu", "hpu", "xpu", …

  std::optional<Endpoint> rdzv_endpoint;  // Port 0 only where max_nodes is 1.
  std::string rdzv_id;                    // Empty: not given.
  std::string rdzv_backend;               // "static", "c10d" or empty.
  std::optional<int> node_rank;
  std::string master_addr;              // Without brackets; empty: not given.
  std::optional<uint16_t> master_port;  // 0 only where max_nodes is 1.
  bool worker_store = false;            // --master-store worker

  std::optional<bool> is_host;             // Of --rdzv-conf. Unset: addresses and ranks decide.
  std::vector<std::string> unneeded_conf;  // Keys of --rdzv-conf that mean nothing to hlaunch.

  std::vector<std::string> unneeded;  // Options of torchrun that mean nothing to hlaunch.
  // Which values came from variables and which from the configuration; one line each.
  std::vector<std::string> sources;
  std::string cluster = "auto";               // A word of ClusterWords().
  std::vector<std::string> cluster_warnings;  // Of the place that was found; one line each.

  bool module = false;
  bool no_python = false;
  bool run_path = false;  // Then neither of the two.
  int max_restarts = 0;
  bool use_stdin = false;
  std::string token_file;
  Duration shutdown_timeout = std::chrono::seconds(30);
  Duration heartbeat_timeout = Duration::zero();  // Zero: not given.
  StallAction stall_action = StallAction::kFail;
  Duration join_timeout = std::chrono::seconds(600);
  Duration last_call = std::chrono::seconds(30);
  Duration loss_limit = std::chrono::seconds(30);
  int spares = 0;
  bool doctor = false;       // `hlaunch doctor`: the checks are what is wanted,
  bool doctor_json = false;  // as one JSON object.
  Preflight preflight = Preflight::kQuick;
  PreflightAction preflight_action = PreflightAction::kExclude;
  int preflight_share = 25;
  Duration health_interval = std::chrono::seconds(60);  // Zero: never.
  C10dServerOptions store;
  bool store_proxy = false;
  std::string local_addr;  // What this node is reached at, without brackets; empty: its route.

  std::string role = "default";
  std::vector<int> signals_to_handle;  // Empty: torchrun's four.
  bool virtual_local_rank = false;
  bool keep_env = false;
  std::string local_rank_option;  // Of --pass-local-rank[=NAME]; empty: not given.
  std::set<std::string> compat;

  std::optional<std::vector<int>> devices;  // Of this node, by id; unset: all that are visible.
  bool no_devices = false;                  // --devices none
  bool isolate_devices = false;
  bool oversubscribe = false;
  bool per_node = false;  // One worker, which starts the others of its node itself.
  std::string sysroot;    // The machine to look for devices on, as a directory; empty: this one.

  // Of --bind and --numa-binding, at most one; unset: not given.
  std::optional<BindMode> bind;
  std::optional<BindMode> numa_binding;
  bool report_bindings = false;

  LogSpec logs;
  std::string report_file;          // The final report as JSON; empty: none.
  std::string termination_log;      // Empty: Kubernetes' own, where it is.
  bool json = false;                // hlaunch's own lines on stderr are JSON, one object each.
  std::optional<Endpoint> metrics;  // Where they are served, a literal; unset: nowhere.
  LogLevel log_level = LogLevel::kInfo;

  bool dry_run = false;          // Say what would be run, and run nothing.
  std::optional<int> print_env;  // Print what this local rank would see, and run nothing.

  std::vector<std::string> command;  // The script and its arguments, untouched; not empty.

  // The words before the script as typed, the program's name first, and then what other sources
  // gave: for the command that another host is to run.
  std::vector<std::string> option_words;
};

}  // namespace hlaunch
