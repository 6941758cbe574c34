// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/observe/node_event.h"
#include "agent/output/output_writer.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Whose events they are. A value.
struct EventSource {
  std::string job_id;
  std::string host;
  int node_rank = -1;  // -1: none yet.
};

// When an event happened. A value.
struct EventTime {
  int64_t wall_ms = 0;       // Since 1970, for people and other hosts.
  int64_t monotonic_ms = 0;  // Of this host since its boot: what lies between two events.
};

// Now, by both clocks.
EventTime EventTimeNow();

// One event as a JSON object on a line of its own; the manual says what it holds (logs.md). Pure.
std::string EventLine(const NodeEvent& event, const EventSource& source, const EventTime& time);

// The file of a node's events, one line each, as they happen.
//
// Belongs to one thread, which a slow or full disk never holds up: what cannot be written is lost.
class EventLog {
 public:
  // Appends to `path`.
  //
  // Errors:
  //   FailedPrecondition - the file cannot be opened; the message names it.
  //   ResourceExhausted - no thread or descriptor.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path);
  // Waits for the disk, for a second at most.
  ~EventLog();

  // Requires: `line` is an EventLine.
  void Write(std::string line);

 private:
  EventLog(UniqueFd file, std::unique_ptr<OutputWriter> writer);

  UniqueFd file_;  // Left open where the writer's thread still has it.
  const std::unique_ptr<OutputWriter> writer_;
};

}  // namespace hlaunch
