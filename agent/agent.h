// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/output/output_relay.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// How this node's part ended.
struct AgentResult {
  int exit_code = 0;
  std::optional<Outcome> outcome;  // The job's outcome, if it was heard.
  absl::Status end;                // Why there is none; OK if there is.
  uint16_t store_port = 0;  // Where hlaunch served the last round's master store; 0: it did not.
  int restarts = 0;         // The restart count of its last round.
};

// What an agent is doing. Whatever leaves kTakingPart stops the workers of the round, if there are
// any; "all stopped" is when nothing of them is left, which may be at once.
//
//                told kStop                all stopped, says that it is ready
//   kTakingPart ------------> kClearing ---------------------------------------> kTakingPart
//
//   kTakingPart, kClearing --told kFinish--> kFinishing --all stopped, says kFinished--> the end
//   kTakingPart, kClearing --a signal------> kLeaving ----all stopped, says kLeft------> the end
//   kTakingPart, kClearing --client ended--> kCutOff -----all stopped------------------> the end
//   kTakingPart, kClearing, kFinishing --the keeper died--> kLeaving
//   kClearing --all stopped, but no port is to be had--> kLeaving
enum class AgentState {
  kTakingPart,  // It does what the rendezvous directs: waits, prepares a round, runs workers.
  kClearing,    // It stops the workers of a round that is over.
  kFinishing,   // The same, and the job is over. Only a newer outcome is obeyed.
  kLeaving,     // The same, and this node leaves the job. No directive is obeyed.
  kCutOff,      // The same, and the rendezvous hears nothing any more.
};

// One node of one job: does what the rendezvous directs and tells it where the node stands.
//
// Belongs to the loop thread; Run turns the loop. What the rendezvous knows of it is NodePhase in
// rendezvous/round/round.h; what it does is AgentState.
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
