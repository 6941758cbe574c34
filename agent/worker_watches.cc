// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_watches.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Time lost grows for as long as a job runs; not every second is worth an event.
bool HasGrown(Duration now, Duration told) {
  return now - told >= std::max<Duration>(std::chrono::seconds(1), told / 50);
}

}  // namespace

absl::Status WorkerWatches::Open(const WorkerSpec& spec, const JobLogs& logs,
                                 const RoundLogs& round_logs, NodeFacts& facts) {
  HLAUNCH_RETURN_IF_ERROR(OpenWatchdog(spec, facts));
  HLAUNCH_RETURN_IF_ERROR(OpenStalls(spec, logs, round_logs));
  OpenLines(spec);
  // A new worker would hit what holds this one.
  kernel_waits_ = KernelWaitWatch::Open(loop_, spec, [this](int local_rank, std::string reason) {
    events_.on_stall({.local_rank = local_rank, .reason = std::move(reason), .no_restart = true},
                     StallAction::kFail);
  });
  hangs_ = HangWatch::Open(
      loop_, assignment_, spec, facts,
      [this, action = spec.hang_action](const HangCulprit& culprit) {
        events_.on_stall({.local_rank = culprit.local_rank,
                          .kind = FailureKind::kHangs,
                          .reason = culprit.reason},
                         action);
      },
      events_.on_word, [this](const SlowNews& news) { TellSlow(news); });
  answers_.emplace(loop_, PlanLook(assignment_, spec, facts));
  return absl::OkStatus();
}

void WorkerWatches::TellSlow(const SlowNews& news) {
  if (!events_.on_found) return;
  if (!news.ranks.text.empty()) {
    events_.on_found(
        SlowRanksFound{assignment_.round, news.ranks.ranks, news.ranks.lost, news.ranks.text});
  }
  const TimeLost lost{assignment_.round, news.waited, news.saved};
  if (!HasGrown(lost.waiting, told_.waiting) && !HasGrown(lost.saving, told_.saving)) return;
  told_ = lost;
  events_.on_found(lost);
}

absl::Status WorkerWatches::OpenWatchdog(const WorkerSpec& spec, NodeFacts& facts) {
  if (!Watchdog::IsWanted(spec)) return absl::OkStatus();
  HLAUNCH_ASSIGN_OR_RETURN(watchdog_, Watchdog::Open(loop_, spec, events_.on_overdue));
  facts.timer_file = watchdog_->path();
  return absl::OkStatus();
}

// The watch of heartbeats, and of the good moments that rank 0 tells.
absl::Status WorkerWatches::OpenStalls(const WorkerSpec& spec, const JobLogs& logs,
                                       const RoundLogs& round_logs) {
  if (spec.heartbeat_timeout == Duration::zero() && !HearsBoundaries(spec)) {
    return absl::OkStatus();
  }
  StackFiles files{{}, logs.losses};
  for (int i = 0; i < spec.nproc; ++i) files.paths.push_back(round_logs.StacksFile(i));
  StallWatch::Events on;
  on.on_stall = [this, action = spec.stall_action](const StalledWorker& stalled) {
    events_.on_stall(stalled, action);
  };
  on.on_step = events_.on_step;
  on.on_boundary = [this](int local_rank) {
    if (assignment_.first_rank + local_rank == 0) events_.on_boundary();
  };
  HLAUNCH_ASSIGN_OR_RETURN(stalls_, StallWatch::Open(loop_, spec, assignment_.first_rank,
                                                     std::move(files), std::move(on)));
  return absl::OkStatus();
}

// The watch by the rules for lines.
void WorkerWatches::OpenLines(const WorkerSpec& spec) {
  LogWatch::Events on;
  on.on_failure = [this](int local_rank, std::string reason) {
    events_.on_stall(
        {.local_rank = local_rank, .kind = FailureKind::kWroteLine, .reason = std::move(reason)},
        StallAction::kFail);
  };
  on.on_silence = [this, action = spec.stall_action](int local_rank, std::string reason) {
    LogWarning(absl::StrCat("rank ", assignment_.first_rank + local_rank, " ", reason));
    LogStandstill();
    events_.on_stall(
        {.local_rank = local_rank, .kind = FailureKind::kSilent, .reason = std::move(reason)},
        action);
  };
  on.on_value = events_.on_value;
  on.on_step = events_.on_step;
  lines_ = LogWatch::Open(loop_, spec, assignment_.first_rank, std::move(on));
}

void WorkerWatches::Tell(const WorkerSpec& spec, int local_rank, NodeFacts& facts) const {
  if (spec.heartbeat_timeout > Duration::zero()) facts.heartbeat = stalls_->address(local_rank);
  if (HearsBoundaries(spec) && local_rank == 0) facts.boundary = stalls_->address(local_rank);
}

std::function<void(absl::string_view)> WorkerWatches::Reader(int local_rank) {
  return lines_ ? lines_->Reader(local_rank) : std::function<void(absl::string_view)>();
}

void WorkerWatches::Started(int local_rank, pid_t pid) {
  if (stalls_) stalls_->Started(local_rank, pid);
  if (hangs_) hangs_->Started(local_rank, pid);
  if (kernel_waits_) kernel_waits_->Started(local_rank, pid);
  if (answers_) answers_->Started(local_rank, pid);
}

void WorkerWatches::Ended(int local_rank, bool succeeded) {
  if (stalls_) stalls_->Ended(local_rank);
  if (lines_) lines_->Ended(local_rank);
  if (kernel_waits_) kernel_waits_->Ended(local_rank);
  if (hangs_) hangs_->Ended(local_rank, succeeded);
  if (answers_) answers_->Ended(local_rank, succeeded);
}

void WorkerWatches::LogStandstill() const {
  const std::string standstill = hangs_ ? hangs_->standstill() : "";
  if (!standstill.empty()) LogWarning(absl::StrCat("before that, ", standstill));
}

void WorkerWatches::Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done) {
  if (answers_) return answers_->Answer(question, std::move(done));
  done({question.number, "", "is stopping its workers"});
}

void WorkerWatches::Hear(const RoundWord& word) {
  if (hangs_ && word.round == assignment_.round) hangs_->Hear(word.node_rank, word.text);
}

std::vector<pid_t> WorkerWatches::tools() const {
  std::vector<pid_t> pids;
  if (stalls_ && stalls_->tool() != 0) pids.push_back(stalls_->tool());
  const auto add = [&pids](const std::vector<pid_t>& tools) {
    pids.insert(pids.end(), tools.begin(), tools.end());
  };
  if (hangs_) add(hangs_->tools());
  if (answers_) add(answers_->tools());
  return pids;
}

void WorkerWatches::Stop() {
  stalls_.reset();
  hangs_.reset();
  lines_.reset();
  kernel_waits_.reset();
  answers_.reset();
}

}  // namespace hlaunch
