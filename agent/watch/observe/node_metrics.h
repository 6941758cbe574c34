// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/watch/observe/node_event.h"
#include "proto/base/clock.h"

namespace hlaunch {

// The metrics of one node of a job. A value: events change it, and Text prints it.
class NodeMetrics {
 public:
  NodeMetrics(std::string job_id, std::string host);

  // Takes `event`, which happened at `now`, into account.
  void Count(const NodeEvent& event, Instant now);

  // Returns the metrics in Prometheus' text format 0.0.4. `output_bytes` is what workers have
  // written.
  std::string Text(uint64_t output_bytes, Instant now) const;

  // "forming", "running", "stopping" or "finished".
  const char* state() const { return state_; }

 private:
  void Take(const NodeJoined& e, Instant now);
  void Take(const NodeWaiting& e, Instant now);
  void Take(const JobRestarted& e, Instant now);
  void Take(const RoundStarted& e, Instant now);
  void Take(const WorkerStarted& e, Instant now);
  void Take(const WorkerEnded& e, Instant now);
  void Take(const WorkerStalled& e, Instant now);
  void Take(const LogValue& e, Instant now);
  void Take(const HealthChanged& e, Instant now);
  void Take(const SlowRanksFound& e, Instant now);
  void Take(const TimeLost& e, Instant now);
  void Take(const RoundStopped& e, Instant now);
  void Take(const ContactChanged& e, Instant now);
  void Take(const NodeFinished& e, Instant now);

  const std::string job_id_;
  const std::string host_;
  const char* state_ = "forming";
  int node_rank_ = -1;
  Round round_ = 0;
  int world_size_ = 0;
  int restarts_ = 0;
  int workers_running_ = 0;
  uint64_t workers_started_ = 0;
  uint64_t failures_ = 0;
  uint64_t stalls_ = 0;
  uint64_t health_warnings_ = 0;
  size_t slow_ranks_ = 0;
  TimeLost lost_;                                              // In this round.
  std::map<std::pair<std::string, Rank>, double> log_values_;  // The last of each name and rank.
  bool connected_ = false;
  std::optional<Instant> silent_since_;  // Set while contact with the rendezvous is lost.
};

}  // namespace hlaunch
