// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/output/output_relay.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

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

// What an agent is doing. Leaving kTakingPart always stops the workers of the round, if there are
// any. "all stopped" means that nothing of them is left, which may be the case at once.
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
  kTakingPart,  // Follows the rendezvous: waits, prepares a round, runs workers.
  kClearing,    // Stops the workers of a round that is over.
  kFinishing,   // The same, and the job is over. Obeys only a newer outcome.
  kLeaving,     // The same, and this node leaves the job. Obeys no directive.
  kCutOff,      // The same, and the rendezvous does not hear from this node any more.
};

// One node of one job: it does what the rendezvous directs and reports its state to the rendezvous.
//
// Belongs to the loop thread; Run turns the loop. NodePhase in rendezvous/round/values/round.h is
// what the rendezvous knows of the node; AgentState is what the node does.
class Agent {
 public:
  // `loop` and `relay` must outlive it; `client`, which calls it, must be destroyed before it.
  // Requires: the signals of AgentSignals (keeper.h) are blocked in every thread.
  Agent(asio::io_context& loop, AgentOptions options, RendezvousClient& client, OutputRelay& relay);
  ~Agent();

  // Joins the job and runs until the job is over for this node; no worker lives on return. Call
  // once.
  AgentResult Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hlaunch
