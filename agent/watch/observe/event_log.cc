// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/event_log.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/wall_time.h"

namespace hlaunch {
namespace {

constexpr Duration kLastWords = std::chrono::seconds(1);

// Adds the fields of an event, besides its source and time.
struct Fields {
  nlohmann::ordered_json& line;

  void operator()(const NodeJoined&) const { line["event"] = "joined"; }
  void operator()(const NodeWaiting& e) const {
    line["event"] = "waiting";
    line["reason"] = e.reason;
  }
  void operator()(const JobRestarted& e) const {
    line["event"] = "restarted";
    line["round"] = e.round;
    line["restart_count"] = e.restart_count;
  }
  void operator()(const RoundStarted& e) const {
    line["event"] = "round_started";
    line["round"] = e.assignment.round;
    line["restart_count"] = e.assignment.restart_count;
    line["first_rank"] = e.assignment.first_rank;
    line["last_rank"] = e.assignment.first_rank + e.nproc - 1;
    line["world_size"] = e.assignment.world_size;
    line["num_nodes"] = e.assignment.num_nodes;
    line["master_addr"] = e.assignment.master_addr;
    line["master_port"] = e.assignment.master_port;
  }
  void operator()(const WorkerStarted& e) const {
    line["event"] = "worker_started";
    Worker(e);
  }
  void operator()(const WorkerEnded& e) const {
    line["event"] = "worker_ended";
    Worker(e);
    if (e.signal != 0) {
      line["signal"] = e.signal;
    } else {
      line["exit_code"] = e.exit_code;
    }
    line["stopped"] = e.stopped;
  }
  void operator()(const WorkerStalled& e) const {
    line["event"] = "worker_stalled";
    Worker(e);
    line["reason"] = e.reason;
  }
  void operator()(const LogValue& e) const {
    line["event"] = "log_value";
    line["round"] = e.round;
    line["rank"] = e.rank;
    line["name"] = e.name;
    line["value"] = e.value;  // JSON has only null for NaN and infinity.
  }
  void operator()(const HealthChanged& e) const {
    line["event"] = e.worse ? "health_worse" : "health_better";
    line["round"] = e.round;
    line["check"] = e.check;
    line["reason"] = e.reason;
  }
  void operator()(const SlowRanksFound& e) const {
    line["event"] = e.lost > 0 ? "slow_ranks" : "slow_ranks_over";
    line["round"] = e.round;
    line["ranks"] = e.ranks;
    line["lost"] = e.lost;
    line["reason"] = e.reason;
  }
  void operator()(const TimeLost& e) const {
    line["event"] = "time_lost";
    line["round"] = e.round;
    line["waiting_seconds"] = InSeconds(e.waiting);
    line["checkpoint_seconds"] = InSeconds(e.saving);
  }
  void operator()(const RoundStopped& e) const {
    line["event"] = "round_stopped";
    line["round"] = e.round;
    line["reason"] = e.reason;
  }
  void operator()(const ContactChanged& e) const {
    line["event"] = e.connected ? "contact_found" : "contact_lost";
    line["reason"] = e.detail;
  }
  void operator()(const NodeFinished& e) const {
    line["event"] = "finished";
    line["exit_code"] = e.exit_code;
    line["reason"] = e.reason;
  }

  template <typename Event>
  void Worker(const Event& e) const {
    line["round"] = e.round;
    line["rank"] = e.rank;
    line["local_rank"] = e.local_rank;
    line["pid"] = e.pid;
  }
};

}  // namespace

std::string EventLine(const NodeEvent& event, const EventSource& source, const EventTime& time) {
  nlohmann::ordered_json line;
  line["time"] = WallTime(time.wall_ms);
  line["monotonic_ms"] = time.monotonic_ms;
  line["job_id"] = source.job_id;
  line["host"] = source.host;
  if (source.node_rank >= 0) line["node_rank"] = source.node_rank;
  std::visit(Fields{line}, event);
  // Reasons may hold bytes from others: invalid UTF-8 is replaced, not refused.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

EventTime EventTimeNow() {
  const auto since_boot = std::chrono::duration_cast<std::chrono::milliseconds>(
      MonotonicClock().Now().time_since_epoch());
  return {WallMillis(), since_boot.count()};
}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write events to ", path, ": ", std::strerror(errno)));
  }
  HLAUNCH_ASSIGN_OR_RETURN(auto writer, OutputWriter::Make());
  return std::unique_ptr<EventLog>(new EventLog(std::move(file), std::move(writer)));
}

EventLog::EventLog(UniqueFd file, std::unique_ptr<OutputWriter> writer)
    : file_(std::move(file)), writer_(std::move(writer)) {}

EventLog::~EventLog() {
  if (!writer_->WaitEmpty(MonotonicClock().Now() + kLastWords)) file_.Release();
}

void EventLog::Write(std::string line) {
  if (!writer_->full()) writer_->Push(file_.get(), std::move(line));
}

}  // namespace hlaunch
