// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/agent.h"

#include <utility>

#include "agent/agent_run.h"

namespace hlaunch {

Agent::Agent(asio::io_context& loop, AgentOptions options, RendezvousClient& client,
             OutputRelay& relay)
    : run_(std::make_unique<AgentRun>(loop, std::move(options), client, relay)) {}
Agent::~Agent() = default;
AgentResult Agent::Run() { return run_->Run(); }

}  // namespace hlaunch
