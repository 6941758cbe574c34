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
#include "agent/notice/drain_watch.h"
#include "agent/observe/node_event.h"
#include "agent/output/log_directory.h"
#include "agent/worker/worker_env.h"
#include "agent/worker/worker_spec.h"
#include "rendezvous/c10d/c10d_server.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What one agent is told when it is made.
struct AgentOptions {
  NodeInfo info;
  WorkerSpec spec;
  NodeFacts facts;            // The agent adds what depends on round and worker.
  JobLogs logs;               // Where the workers' output goes.
  std::string store_address;  // Where a candidate store listens; empty: on all addresses.
  C10dServerOptions store;
  uint16_t store_port = 0;       // A port the user named, else 0: a new one each round.
  bool store_is_shared = false;  // The rendezvous' own listener serves the store on store_port.
  bool worker_store = false;     // Rank 0 serves the store on the port that is kept for it.
  bool store_proxy = false;  // Workers of other nodes than node rank 0 reach it through this agent.
  bool store_sealed = false;  // It carries what they say encrypted. The round's secret is one then.
  Duration
      time_limit{};  // From Agent::Run on; then this node leaves with kExitTimeout. Zero: none.
  Duration lost_grace = std::chrono::seconds(2);  // From TERM to KILL: cut off, or no keeper.
  // Checks of this node before each round, in the process that `check_command` starts; empty: none.
  CheckPlan checks;
  std::function<std::vector<std::string>(const CheckPlan&)> check_command;
  Duration health_interval{};  // The same while workers run, so often; zero: never.
  std::function<void(const std::vector<CheckResult>&)> on_checks;  // Told each time; may be empty.
  DrainSources drain;    // Where it is said that this node will be gone.
  NodeEventFn on_event;  // Told what happens here, all but the end; may be empty.
  // Tells the keeper until when workers may live; see LifeSigns. May be empty.
  std::function<void(Instant until)> show_life;
  int keeper_fd = -1;  // Readable once the keeper is dead; -1: there is no keeper.
};

// Which checks this node makes before the workers of `assignment` start, together with the other
// nodes where they have a store to meet at. Pure.
CheckPlan PlanChecksBefore(const AgentOptions& options, const Assignment& assignment);

// The same while the workers run. Pure.
CheckPlan PlanChecksDuring(const AgentOptions& options, const Assignment& assignment);

}  // namespace hlaunch
