// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/workers/fork_server/fork_server.h"
#include "agent/workers/fork_server/plan_fork_servers.h"
#include "agent/workers/fork_server/saved_imports.h"
#include "agent/workers/process/process.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The fork servers of this node. They live from the first round to the end of the agent; one that
// has ended, or that serves no more, is replaced in the next round. What goes wrong is logged, and
// the ranks start in the normal way.
//
// Belongs to the loop thread.
class ForkServers {
 public:
  // `directory` is made when the first server starts; whoever owns the agent's directory removes
  // it. The loop calls `on_reaped` when a server has ended, which held up the reaping of orphans.
  ForkServers(asio::io_context& loop, std::string directory, std::function<void()> on_reaped);
  ~ForkServers();

  // Sees to servers for `plans`. The loop calls `on_settled` once each is ready or will not be.
  void Prepare(std::vector<ForkServerPlan> plans, std::function<void()> on_settled);

  // Calls no on_settled any more.
  void Hush();

  // Makes `rank`, whose descriptors may be closed afterwards. Unset if it is to start in the normal
  // way; if that was not planned, a line says why.
  std::optional<Process> Fork(const Command& rank);

  // A round has started after which there may be another: once it is quiet, forks are made for that
  // one. They wait until then, or until the end.
  void ExpectAnotherRound();

  // What its forks have not had to import.
  const SavedImports& saved() const { return saved_; }

  // The processes that are no workers: children of this process.
  std::vector<pid_t> pids() const;

 private:
  void Begin(ForkServerPlan plan);
  void Settled();

  asio::io_context& loop_;
  const std::string directory_;
  const std::function<void()> on_reaped_;
  std::list<ForkServer> servers_;
  int lost_ = 0;  // How many have ended by accident.
  std::function<void()> on_settled_;
  SavedImports saved_;
  struct Timer;
  const std::unique_ptr<Timer> quiet_;  // Until forks are made for the next round.
  const std::shared_ptr<bool> life_ = std::make_shared<bool>(true);  // Expires with this object.
};

}  // namespace hlaunch
