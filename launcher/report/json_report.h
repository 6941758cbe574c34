// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What the report says beside the outcome. A value.
struct ReportFacts {
  std::string job_id;
  std::string host;  // That writes it.
  int max_restarts = 0;
  uint16_t store_port = 0;  // The last round's MASTER_PORT if hlaunch served it, else 0.
  int64_t wall_ms = 0;      // When it was written.
  // Of the host that writes it: how long workers ran, of how long, and what each restart took.
  Duration ran = {}, whole = {};
  std::vector<Duration> restarts = {};
};

// The final report for programs: one JSON object, its members as manual/report.md lists them. Pure;
// text that is no UTF-8 has replacement characters.
std::string JsonReport(const ReportFacts& facts, const Outcome& outcome);

// Puts `text` into `path`, whole or not at all: a file beside it is renamed over it.
//
// Errors:
//   Unavailable - it cannot be written; the message names it and says why.
absl::Status WriteReport(const std::string& path, const std::string& text);

}  // namespace hlaunch
