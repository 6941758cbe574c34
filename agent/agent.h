// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "agent/agent_options.h"
#include "agent/output/output_relay.h"
#include "rendezvous/job/rendezvous_client.h"

namespace asio {
class io_context;
}

namespace hlaunch {

class AgentRun;

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
  std::unique_ptr<AgentRun> run_;
};

}  // namespace hlaunch
