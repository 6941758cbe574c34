// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/health/health_watch.h"
#include "agent/output/output_relay.h"
#include "agent/round_store.h"
#include "agent/worker_group.h"
#include "agent/workers/fork_server/fork_servers.h"
#include "agent/workers/input/stdin_copies.h"
#include "agent/workers/process/held_program.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The workers of one round, and the process that watches this node's health while they run.
//
// Belongs to the loop thread. At most one round at a time.
class RoundWorkers {
 public:
  // The references must outlive it.
  RoundWorkers(asio::io_context& loop, const AgentOptions& options, RoundStore& store,
               OutputRelay& relay);
  ~RoundWorkers();

  // Starts all workers of `assignment`, or none; before that, the store on node rank 0 or the proxy
  // on other nodes. `events` are called as WorkerGroup says; call Clear from on_stopped. If PMIx is
  // offered to the workers, they start once its server is ready, which may wait for other nodes; if
  // modules are preloaded, once that is done. If they cannot start then, on_failure gets the
  // reason. Requires: there are no workers.
  //
  // Errors: as RoundStore::Open, RoundStore::OpenProxy and WorkerGroup::Start.
  absl::Status Start(const Assignment& assignment, WorkerGroup::Events events);

  // `tell` is called from the loop while workers run, with the node ranks of the nodes that this
  // node does not reach, whenever they change.
  void OnUnreached(std::function<void(std::vector<int>)> tell) { on_unreached_ = std::move(tell); }

  // True if there are workers, or processes that they left: from Start until Clear.
  bool exist() const { return group_ != nullptr || awaited_ != nullptr; }

  // True if workers will start once fork servers and PMIx are ready.
  bool starting() const { return awaited_ != nullptr; }

  // Ends the health watch, then stops the workers as WorkerGroup::Stop. No effect without workers.
  void Stop(int signal, Duration grace);

  // The same for processes that successful workers left behind. Most of them are about to end by
  // themselves, so they get a moment for that, and the user is told which have not ended then.
  void EndLeftovers();

  void Clear();

  // As in WorkerGroup. Without workers they have no effect, or return nothing.
  void Forward(int signal);
  void ReapOrphans();
  bool HasLeftovers() const;
  int alive() const;
  std::optional<int64_t> step() const;

  // What a preload has saved until now, for people; empty if nothing.
  std::string saved_imports() const;

  // Answers a question about the workers, perhaps from within this call.
  void Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done);

  // As in WorkerGroup. Does nothing if no workers run.
  void Hear(const RoundWord& word);

 private:
  struct Awaited;

  NodeFacts GatherFacts(const Assignment& assignment) const;
  void AwaitForkServers(const Assignment& assignment, NodeFacts facts, WorkerGroup::Events events);
  absl::Status Go(const Assignment& assignment, NodeFacts facts, WorkerGroup::Events events);
  void AwaitPmix(const Assignment& assignment, NodeFacts facts, WorkerGroup::Events events);
  void OnPmix(const absl::Status& ready);
  absl::Status StartGroup(const Assignment& assignment, NodeFacts facts, WorkerGroup::Events events,
                          std::unique_ptr<PmixServer> pmix);
  void WatchHealth(const Assignment& assignment);
  void TellHealth(Round round, const CheckResult& change) const;

  asio::io_context& loop_;
  const AgentOptions& options_;
  RoundStore& store_;
  OutputRelay& relay_;
  // Held from the start on: an upgrade may replace the file before a later round needs it.
  const HeldProgram pmix_program_;
  std::unique_ptr<ForkServers> fork_servers_;  // Set if modules are preloaded. Outlives the group.
  std::unique_ptr<WorkerGroup> group_;
  std::unique_ptr<Awaited> awaited_;           // Workers that start once servers are ready.
  std::unique_ptr<StdinCopies> stdin_copies_;  // Set once workers that all read stdin have started.
  std::function<void(std::vector<int>)> on_unreached_;
  bool stopping_ = false;                    // Stop was called since these workers began.
  std::optional<HealthWatch> health_watch_;  // Set while workers run and are not being stopped.
  struct Timers;
  const std::unique_ptr<Timers> timers_;
};

// Returns the warning that successful workers left `processes` behind. It names some of them, and
// says how many there are. Pure.
std::string DescribeLeftovers(std::vector<std::string> processes);

}  // namespace hlaunch
