// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/time_line.h"

#include "rendezvous/round/values/limits.h"

namespace hlaunch {

void TimeLine::NodeCame() {
  if (!began_) began_ = now_;
}

void TimeLine::Add(const JobRecord& record) {
  if (rounds_.size() == kMaxRoundsShown) rounds_.pop_front();
  Stage stage;
  stage.round.round = record.round;
  stage.round.nodes = record.round_nodes;
  stage.round.world_size = record.world_size;
  stage.round.restarts = record.restarts;
  rounds_.push_back(stage);
}

void TimeLine::Resume(const JobRecord& record) {
  NodeCame();
  if (record.round == 0 || record.state == JobState::kForming) return;
  Add(record);
  Stage& stage = rounds_.back();
  if (record.state == JobState::kRunning) stage.ran = now_;
  if (record.state == JobState::kStopping) RoundStops(record.cause, record.failures);
  if (record.state == JobState::kOver) RoundStops(record.outcome.reason, record.failures);
}

void TimeLine::RoundBegins(const JobRecord& record) {
  Add(record);
  rounds_.back().began = now_;
  if (record.state == JobState::kRunning) rounds_.back().ran = now_;
}

void TimeLine::RoundRuns() { rounds_.back().ran = now_; }

void TimeLine::RoundStops(const std::string& reason, const std::vector<WorkerFailure>& failures) {
  if (rounds_.empty() || rounds_.back().stopping) return;
  Stage& stage = rounds_.back();
  stage.stopping = now_;
  stage.round.reason = reason;
  if (!failures.empty()) {
    failure_ = failures.front();
    failed_round_ = stage.round.round;
  }
  if (stage.ran) ran_before_ += now_ - *stage.ran;
}

void TimeLine::RoundStopped() {
  if (!rounds_.empty() && !rounds_.back().stopped) rounds_.back().stopped = now_;
}

void TimeLine::Tell(JobStatus& status, Instant now, int64_t wall_ms) const {
  const auto wall = [&](const std::optional<Instant>& t) -> int64_t {
    if (!t) return 0;
    return wall_ms - std::chrono::duration_cast<std::chrono::milliseconds>(now - *t).count();
  };
  status.told_ms = wall_ms;
  status.began_ms = wall(began_);
  status.ran_for = ran_before_;
  status.failure = failure_;
  status.failed_round = failed_round_;
  for (const Stage& stage : rounds_) {
    RoundStatus round = stage.round;
    round.began_ms = wall(stage.began);
    round.ran_ms = wall(stage.ran);
    round.stopping_ms = wall(stage.stopping);
    round.stopped_ms = wall(stage.stopped);
    status.rounds.push_back(std::move(round));
  }
  if (rounds_.empty()) return;
  const Stage& last = rounds_.back();
  if (last.ran && !last.stopping) status.ran_for += now - *last.ran;
}

}  // namespace hlaunch
