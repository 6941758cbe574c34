// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/node_metrics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace hlaunch {
namespace {

using absl::string_view;

std::string LabelValue(string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

// Formats a value as Prometheus reads it.
std::string ValueText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrCat(value);
}

// The lines before a metric's values.
void Head(std::string* out, string_view name, string_view type, string_view help) {
  absl::StrAppend(out, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

template <typename Number>
void Metric(std::string* out, string_view name, string_view type, string_view help, Number value) {
  Head(out, name, type, help);
  absl::StrAppend(out, name, " ", value, "\n");
}

}  // namespace

NodeMetrics::NodeMetrics(std::string job_id, std::string host)
    : job_id_(std::move(job_id)), host_(std::move(host)) {}

void NodeMetrics::Count(const NodeEvent& event, Instant now) {
  std::visit([&](const auto& e) { Take(e, now); }, event);
}

void NodeMetrics::Take(const NodeJoined&, Instant) { connected_ = true; }

void NodeMetrics::Take(const NodeWaiting&, Instant) { state_ = "forming"; }

void NodeMetrics::Take(const JobRestarted& e, Instant) { restarts_ = e.restart_count; }

void NodeMetrics::Take(const RoundStarted& e, Instant) {
  state_ = "running";
  round_ = e.assignment.round;
  restarts_ = e.assignment.restart_count;
  node_rank_ = e.assignment.node_rank;
  world_size_ = e.assignment.world_size;
  log_values_.clear();
  slow_ranks_ = 0;
  lost_ = {};
}

void NodeMetrics::Take(const WorkerStarted&, Instant) {
  ++workers_running_;
  ++workers_started_;
}

void NodeMetrics::Take(const WorkerEnded& e, Instant) {
  workers_running_ = std::max(workers_running_ - 1, 0);
  if (!e.stopped && (e.exit_code != 0 || e.signal != 0)) ++failures_;
}

void NodeMetrics::Take(const WorkerStalled&, Instant) { ++stalls_; }

void NodeMetrics::Take(const LogValue& e, Instant) { log_values_[{e.name, e.rank}] = e.value; }

void NodeMetrics::Take(const HealthChanged& e, Instant) { health_warnings_ += e.worse ? 1 : 0; }

void NodeMetrics::Take(const SlowRanksFound& e, Instant) {
  slow_ranks_ = e.lost > 0 ? e.ranks.size() : 0;
}

void NodeMetrics::Take(const TimeLost& e, Instant) { lost_ = e; }

void NodeMetrics::Take(const RoundStopped&, Instant) { state_ = "stopping"; }

void NodeMetrics::Take(const ContactChanged& e, Instant now) {
  connected_ = e.connected;
  if (e.connected) {
    silent_since_.reset();
  } else if (!silent_since_) {
    silent_since_ = now;
  }
}

void NodeMetrics::Take(const NodeFinished&, Instant) { state_ = "finished"; }

std::string NodeMetrics::Text(uint64_t output_bytes, Instant now) const {
  std::string out;
  Metric(&out, "hlaunch_up", "gauge", "1 while this agent lives.", 1);
  Head(&out, "hlaunch_info", "gauge", "Whose metrics these are.");
  absl::StrAppend(&out, "hlaunch_info{job_id=\"", LabelValue(job_id_), "\",host=\"",
                  LabelValue(host_), "\",node_rank=\"",
                  node_rank_ < 0 ? "" : absl::StrCat(node_rank_), "\"} 1\n");
  Head(&out, "hlaunch_state", "gauge", "1 for where this node stands.");
  for (const string_view state : {"forming", "running", "stopping", "finished"}) {
    absl::StrAppend(&out, "hlaunch_state{state=\"", state, "\"} ", state == state_ ? 1 : 0, "\n");
  }
  Metric(&out, "hlaunch_round", "gauge", "The latest round; 0 before the first.", round_);
  Metric(&out, "hlaunch_world_size", "gauge", "Workers of the whole job in that round.",
         world_size_);
  Metric(&out, "hlaunch_restarts_total", "counter", "Restarts of the job that were used.",
         restarts_);
  Metric(&out, "hlaunch_workers_running", "gauge", "Workers that live on this node.",
         workers_running_);
  Metric(&out, "hlaunch_workers_started_total", "counter", "Workers started on this node.",
         workers_started_);
  Metric(&out, "hlaunch_worker_failures_total", "counter",
         "Workers of this node that failed by themselves.", failures_);
  Metric(&out, "hlaunch_worker_stalls_total", "counter",
         "Workers of this node that stalled, hung or wrote what fails.", stalls_);
  Metric(&out, "hlaunch_health_warnings_total", "counter",
         "What became worse while workers ran; on node rank 0 of all nodes.", health_warnings_);
  Metric(&out, "hlaunch_slow_ranks", "gauge",
         "On node rank 0: ranks that hold up the others in each step.", slow_ranks_);
  Head(&out, "hlaunch_lost_seconds", "gauge",
       "On node rank 0: time that the ranks have lost in this round, by cause.");
  absl::StrAppend(
      &out, "hlaunch_lost_seconds{cause=\"slowest_rank\"} ", ValueText(InSeconds(lost_.waiting)),
      "\nhlaunch_lost_seconds{cause=\"checkpoints\"} ", ValueText(InSeconds(lost_.saving)), "\n");
  Metric(&out, "hlaunch_output_bytes_total", "counter",
         "What workers of this node wrote to stdout and stderr.", output_bytes);
  if (!log_values_.empty()) {
    Head(&out, "hlaunch_log_value", "gauge", "The last value of each group of --watch-log.");
  }
  for (const auto& [key, value] : log_values_) {
    absl::StrAppend(&out, "hlaunch_log_value{name=\"", LabelValue(key.first), "\",rank=\"",
                    key.second, "\"} ", ValueText(value), "\n");
  }
  Metric(&out, "hlaunch_rendezvous_connected", "gauge", "1 while the rendezvous is heard.",
         connected_ ? 1 : 0);
  const double silent =
      silent_since_ ? std::chrono::duration<double>(now - *silent_since_).count() : 0;
  Metric(&out, "hlaunch_rendezvous_silence_seconds", "gauge",
         "How long contact with the rendezvous has been lost; 0 while it is heard.", silent);
  return out;
}

}  // namespace hlaunch
