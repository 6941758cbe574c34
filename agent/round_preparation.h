// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_options.h"
#include "agent/health/health_helper.h"
#include "agent/round_store.h"
#include "agent/watch/notice/waiting_notice.h"
#include "agent/workers/master/master_check.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Finds out whether this node can run a proposed round. Node rank 0 opens the master store and the
// other nodes ask it for an answer. At the same time each node checks itself.
//
//            Start                 both answers are there
//   idle ----------> preparing ---------------------------> idle, on_prepared was called
//                       |  ^ |
//          Cancel: idle <  +-+ Start with a later round begins anew
//
// Belongs to the loop thread.
class RoundPreparation {
 public:
  // `unfit` is empty if the node can run the round; otherwise it says why not.
  using OnPrepared = std::function<void(Round, const std::string& unfit, const NodeHealth&)>;

  // `on_prepared` may be called from within Start. The references must outlive this object.
  RoundPreparation(asio::io_context& loop, const AgentOptions& options, RoundStore& store,
                   WaitingNotice& waiting, OnPrepared on_prepared)
      : loop_(loop),
        options_(options),
        store_(store),
        waiting_(waiting),
        on_prepared_(std::move(on_prepared)) {}

  // Prepares the round of `assignment`, if it is later than all rounds that were prepared before.
  void Start(const Assignment& assignment);

  // Gives up the preparation under way.
  void Cancel();

 private:
  void CheckNode(const Assignment& assignment);
  void OnChecked(const std::vector<CheckResult>& results, double clock);
  void AskStore(const Assignment& assignment);
  void TellIfDone();

  asio::io_context& loop_;
  const AgentOptions& options_;
  RoundStore& store_;
  WaitingNotice& waiting_;
  const OnPrepared on_prepared_;
  Round round_ = 0;  // The last round that was prepared.
  std::optional<MasterCheck> store_check_;
  std::optional<HealthHelper> node_checks_;
  std::optional<std::string> unfit_;  // The answer of the store check.
  std::optional<NodeHealth> health_;  // The answer of the node checks.
  std::string hardware_;              // Empty until it is looked up.
};

}  // namespace hlaunch
