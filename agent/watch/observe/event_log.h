// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/output/output_writer.h"
#include "agent/watch/observe/node_event.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The node that the events are about. A value.
struct EventSource {
  std::string job_id;
  std::string host;
  int node_rank = -1;  // -1 before the node has a rank.
};

// When an event happened. A value.
struct EventTime {
  int64_t wall_ms = 0;       // Since 1970; for people and for other hosts.
  int64_t monotonic_ms = 0;  // Since this host's boot; for the time between two events.
};

// The time now, by both clocks.
EventTime EventTimeNow();

// One event as a JSON object on a line of its own; the manual (logs.md) says what it holds. Pure.
std::string EventLine(const NodeEvent& event, const EventSource& source, const EventTime& time);

// The file of a node's events; each event is one line, written when it happens.
//
// Belongs to one thread, which a slow or full disk never blocks: what cannot be written is lost.
class EventLog {
 public:
  // Appends to `path`.
  //
  // Errors:
  //   FailedPrecondition - the file cannot be opened; the message names it.
  //   ResourceExhausted - no thread or descriptor.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path);
  // Waits up to a second for the disk.
  ~EventLog();

  // Requires: `line` is an EventLine.
  void Write(std::string line);

 private:
  EventLog(UniqueFd file, std::unique_ptr<OutputWriter> writer);

  UniqueFd file_;  // Left open if the writer's thread still uses it.
  const std::unique_ptr<OutputWriter> writer_;
};

}  // namespace hlaunch
