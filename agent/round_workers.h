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
#include "agent/input/stdin_copies.h"
#include "agent/output/output_relay.h"
#include "agent/round_store.h"
#include "agent/worker_group.h"
#include "rendezvous/round/round.h"

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

  // Starts all workers of `assignment`, or none; before that the store on node rank 0, and the
  // proxy on the others. `events` are called as WorkerGroup says; call Clear from on_stopped. Where
  // they are offered PMIx, they start once its server is ready, which may wait for other nodes; if
  // they cannot then, on_failure has why.
  // Requires: no workers are there.
  //
  // Errors: as RoundStore::Open, RoundStore::OpenProxy and WorkerGroup::Start.
  absl::Status Start(const Assignment& assignment, WorkerGroup::Events events);

  // `tell` is called from the loop with the node ranks of those that this node does not reach while
  // workers run, whenever that has changed.
  void OnUnreached(std::function<void(std::vector<int>)> tell) { on_unreached_ = std::move(tell); }

  // Whether workers, or what they left, are there: from Start until Clear.
  bool exist() const { return group_ != nullptr || awaited_ != nullptr; }

  // Ends the health watch, then stops the workers as WorkerGroup::Stop. No effect without workers.
  void Stop(int signal, Duration grace);

  // The same for what succeeded workers left behind: most of it is about to end by itself, so it
  // has a moment for that, and a person is told what has not ended then.
  void EndLeftovers();

  void Clear();

  // As WorkerGroup; no effect, or none, without workers.
  void Forward(int signal);
  void ReapOrphans();
  std::vector<std::string> Leftovers() const;
  int alive() const;
  std::optional<int64_t> step() const;

  // Answers what somebody asks of the workers, perhaps from within this.
  void Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done);

 private:
  struct Awaited;

  NodeFacts GatherFacts(const Assignment& assignment) const;
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
  std::unique_ptr<WorkerGroup> group_;
  std::unique_ptr<Awaited> awaited_;           // Workers that start once PMIx is served.
  std::unique_ptr<StdinCopies> stdin_copies_;  // Once workers that all read it have started.
  std::function<void(std::vector<int>)> on_unreached_;
  bool stopping_ = false;                    // Since these workers began.
  std::optional<HealthWatch> health_watch_;  // While workers run and are not being stopped.
  struct Timers;
  const std::unique_ptr<Timers> timers_;
};

// The warning that succeeded workers left `processes` behind: some of them, and how many there
// are. Pure.
std::string DescribeLeftovers(std::vector<std::string> processes);

}  // namespace hlaunch
