// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/record_changes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/round/cause/first_cause.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {
namespace {

// Appends `one`, and keeps the last kMaxHistory entries.
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
  record.restart_log.pause = Duration::zero();
  record.held_ranks.clear();
  std::vector<const NodeInfo*> members;
  for (Seat* seat : order) {
    seat->told = record.round;
    seat->node_rank = static_cast<int>(members.size());
    seat->first_rank = record.world_size;
    seat->failures_seen = 0;
    seat->exited.clear();
    seat->given_up.clear();
    seat->unreached.clear();
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

void TakeRestart(JobRecord& record, const FailureEvent& event, const JobVerdict& verdict,
                 Instant now) {
  ++record.restarts;
  TakeRestart(record.policy, verdict, now, record.restart_log);
  PastRound past = {record.round, DescribeEvent(event), {}};
  if (event.kind == FailureEvent::Kind::kWorkerFailed) {
    past.failure = event.worker;
    Shorten(*past.failure);
  }
  AppendToHistory(record.history, std::move(past));
}

void TakeStep(JobRecord& record, int64_t step) {
  std::optional<int64_t>& best = record.progress.best_step;
  best = std::max(best.value_or(step), step);
}

void CountStuck(JobRecord& record) {
  Progress& progress = record.progress;
  if (std::exchange(progress.judged_restarts, record.restarts) == record.restarts) return;
  if (!progress.best_step) return;  // No worker reports steps.
  const bool further = !progress.judged_step || *progress.best_step > *progress.judged_step;
  progress.stuck_restarts = further ? 0 : progress.stuck_restarts + 1;
  progress.judged_step = progress.best_step;
}

std::string WhyStuck(const JobRecord& record) {
  const Progress& progress = record.progress;
  const int most = record.policy.max_stuck_restarts;
  if (most == 0 || progress.stuck_restarts < most) return "";
  return absl::StrCat(
      most == 1 ? "a restart" : absl::StrCat(most, " restarts in a row"),
      " brought the job no further than step ", *progress.best_step,
      record.history.empty() ? "" : absl::StrCat("; the last: ", record.history.back().reason));
}

void TakeBackRestart(JobRecord& record) {
  --record.restarts;
  TakeBack(record.restart_log);
  if (!record.history.empty()) record.history.pop_back();  // A restored record may be odd.
}

void CountExcluded(JobRecord& record, const PreflightVerdict& verdict) {
  if (verdict.bad) record.total_excluded += static_cast<int>(verdict.nodes.size());
  AppendToHistory(record.excluded, verdict.reason);
}

void SetOutcome(JobRecord& record, Outcome outcome, Instant now) {
  record.state = JobState::kOver;
  record.outcome = std::move(outcome);
  if (record.outcome.exit_code != 0 && record.outcome.failures.empty()) {
    record.outcome.failures = record.failures;
    record.outcome.total_failures = record.total_failures;
  }
  record.outcome.restart_count = record.restarts;
  record.outcome.uncounted =
      record.restarts - CountedRestarts(record.policy, record.restart_log, now);
  record.outcome.history = record.history;
  record.outcome.excluded = record.excluded;
  record.ghosts.clear();
}

}  // namespace hlaunch
