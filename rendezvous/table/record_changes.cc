// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/table/record_changes.h"

#include <utility>

#include "rendezvous/round/first_cause.h"
#include "rendezvous/round/master_address.h"

namespace hlaunch {
namespace {

// The last kMaxHistory of them are kept.
template <typename T>
void AppendToHistory(std::vector<T>& history, T one) {
  if (history.size() == kMaxHistory) history.erase(history.begin());
  history.push_back(std::move(one));
}

}  // namespace

void BeginRound(JobRecord& record, const std::vector<Seat*>& order, std::string comm_secret) {
  const bool check = record.policy.preflight != Preflight::kOff && order.size() > 1;
  record.state = check ? JobState::kPreflight : JobState::kRunning;
  ++record.round;
  record.round_nodes = static_cast<int>(order.size());
  record.succeeded = record.stopped = record.world_size = 0;
  record.cause.clear();
  record.held_ranks.clear();
  std::vector<const NodeInfo*> members;
  for (Seat* seat : order) {
    seat->told = record.round;
    seat->node_rank = static_cast<int>(members.size());
    seat->first_rank = record.world_size;
    seat->failures_seen = 0;
    seat->exited.clear();
    seat->prepared = seat->succeeded = seat->stopped = false;
    record.world_size += seat->info.nproc;
    record.held_ranks[seat->info.node_id] = seat->node_rank;
    members.push_back(&seat->info);
  }
  record.master_addr = MasterAddress(members);
  record.master_port = order[0]->store_port;
  record.coordinator_port = order[0]->coordinator_port;
  record.worker_store = order[0]->worker_store;
  record.comm_secret = std::move(comm_secret);
}

void SetStopping(JobRecord& record, std::string cause) {
  record.state = JobState::kStopping;
  record.cause = std::move(cause);
}

void ChargeRestart(JobRecord& record, const FailureEvent& event) {
  ++record.restarts;
  PastRound past = {record.round, DescribeEvent(event), {}};
  if (event.kind == FailureEvent::Kind::kWorkerFailed) {
    past.failure = event.worker;
    Shorten(*past.failure);
  }
  AppendToHistory(record.history, std::move(past));
}

void CountExcluded(JobRecord& record, const PreflightVerdict& verdict) {
  if (verdict.bad) record.total_excluded += static_cast<int>(verdict.nodes.size());
  AppendToHistory(record.excluded, verdict.reason);
}

void SetOutcome(JobRecord& record, Outcome outcome) {
  record.state = JobState::kOver;
  record.outcome = std::move(outcome);
  if (record.outcome.exit_code != 0 && record.outcome.failures.empty()) {
    record.outcome.failures = record.failures;
    record.outcome.total_failures = record.total_failures;
  }
  record.outcome.restart_count = record.restarts;
  record.outcome.history = record.history;
  record.outcome.excluded = record.excluded;
  record.ghosts.clear();
}

}  // namespace hlaunch
