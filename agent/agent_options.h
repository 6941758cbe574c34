// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/health/run_checks.h"
#include "agent/output/log_directory.h"
#include "agent/watch/notice/drain_watch.h"
#include "agent/watch/observe/node_event.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/store/c10d/c10d_server.h"

namespace hlaunch {

// The options of one agent.
struct AgentOptions {
  NodeInfo info;
  WorkerSpec spec;
  NodeFacts facts;            // The agent adds the facts that depend on round and worker.
  JobLogs logs;               // Where the workers' output goes.
  std::string store_address;  // Where a candidate store listens; all addresses if empty.
  C10dServerOptions store;
  uint16_t store_port = 0;       // The port that the user named; 0 means a new one each round.
  bool store_is_shared = false;  // The rendezvous' own listener serves the store on store_port.
  bool worker_store = false;     // Rank 0 serves the store on the port reserved for it.
  // Workers on nodes other than node rank 0 reach the store through their agent.
  bool store_proxy = false;
  // The agents' connections to the store are encrypted, and the store asks over them whose the
  // workers' are. Each round must then have a secret.
  bool store_sealed = false;
  // From Agent::Run on; after it this node leaves with kExitTimeout. Zero means no limit.
  Duration time_limit{};
  // From TERM to KILL, when this node is cut off or its keeper died.
  Duration lost_grace = std::chrono::seconds(2);
  // The checks of this node before each round. They run in the process that `check_command` starts;
  // if it is empty, no check runs.
  CheckPlan checks;
  std::function<std::vector<std::string>(const CheckPlan&)> check_command;
  Duration health_interval{};  // Interval of the checks while workers run; zero means none.
  // Gets the results of the checks before each round; may be empty.
  std::function<void(const std::vector<CheckResult>&)> on_checks;
  DrainSources drain;    // Sources of the notice that this node will be gone.
  NodeEventFn on_event;  // Gets the events of this node, except the end; may be empty.
  // Tells the keeper how long workers may live; see LifeSigns. May be empty.
  std::function<void(Instant until)> show_life;
  int keeper_fd = -1;  // Readable once the keeper is dead; -1 if there is no keeper.
};

// The checks that this node runs before the workers of `assignment` start, together with the other
// nodes if they have a store to meet at. Pure.
CheckPlan PlanChecksBefore(const AgentOptions& options, const Assignment& assignment);

// The checks while the workers run. Pure.
CheckPlan PlanChecksDuring(const AgentOptions& options, const Assignment& assignment);

// How this node's part of the job ended.
struct AgentResult {
  int exit_code = 0;
  std::optional<Outcome> outcome;  // The job's outcome, if this node heard it.
  absl::Status end;                // Why there is no outcome; OK if there is one.
  // Port where hlaunch served the last round's master store; 0 if it did not.
  uint16_t store_port = 0;
  std::vector<Rank> ranks;    // Of this node in its last round; empty if it ran none.
  int restarts = 0;           // The restart count of this node's last round.
  std::string saved_imports;  // What a preload has saved on this node, for people.
};

}  // namespace hlaunch
