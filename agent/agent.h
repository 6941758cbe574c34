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
#include "agent/observe/node_event.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/worker/worker_env.h"
#include "agent/worker/worker_spec.h"
#include "rendezvous/c10d/c10d_server.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

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
  Duration lost_grace = std::chrono::seconds(2);  // From TERM to KILL: cut off, or no keeper.
  // Checks of this node before each round, in the process that `check_command` starts; empty: none.
  CheckPlan checks;
  std::function<std::vector<std::string>(const CheckPlan&)> check_command;
  Duration health_interval{};  // The same while workers run, so often; zero: never.
  std::function<void(const std::vector<CheckResult>&)> on_checks;  // Told each time; may be empty.
  NodeEventFn on_event;  // Told what happens here, all but the end; may be empty.
  int keeper_fd = -1;    // Readable once the keeper is dead; -1: there is no keeper.
};

// How this node's part ended.
struct AgentResult {
  int exit_code = 0;
  std::optional<Outcome> outcome;  // The job's outcome, if it was heard.
  absl::Status end;                // Why there is none; OK if there is.
  uint16_t store_port = 0;  // Where hlaunch served the last round's master store; 0: it did not.
};

// One node of one job: does what the rendezvous directs and tells it where the node stands.
//
// Belongs to the loop thread; Run turns the loop. State machine: NodePhase in
// rendezvous/round/round.h.
class Agent {
 public:
  // `loop` and `relay` must outlive it; `client`, which calls it, must be destroyed before it.
  // Requires: the signals of AgentSignals (keeper.h) are blocked in every thread.
  Agent(asio::io_context& loop, AgentOptions options, RendezvousClient& client, OutputRelay& relay);
  ~Agent();

  // Joins and runs until the job is over for this node; no worker lives on return. Call once.
  AgentResult Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hlaunch
