// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "agent/watch/observe/goodput.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The facts in the report besides the outcome. A value.
struct ReportFacts {
  std::string job_id;
  std::string host;  // The host that writes the report.
  int max_restarts = 0;
  uint16_t store_port = 0;  // The last round's MASTER_PORT if hlaunch served it, else 0.
  int64_t wall_ms = 0;      // When the report was written: milliseconds since 1970.
  // Measured on the host that writes the report: how long workers ran, how long the job took, and
  // how long each restart took.
  Duration ran = {}, whole = {};
  std::vector<Duration> restarts = {};
  std::vector<Rank> ranks = {};  // Of the node that writes the report, in its last round.
  LostTime lost = {};            // As this node has seen it.
};

// Returns the final report for programs: one JSON object with the members that manual/report.md
// lists. Pure; bytes that are not UTF-8 become replacement characters.
std::string JsonReport(const ReportFacts& facts, const Outcome& outcome);

// Writes `text` to `path` as WriteWholeFile does.
//
// Errors:
//   Unavailable - the file cannot be written; the message names it and says why.
absl::Status WriteReport(const std::string& path, const std::string& text);

// Likewise for a node that knows less of the end than the one that prints the report. It leaves a
// whole report of the job `job_id` alone that is not older than `since_ms` (milliseconds since
// 1970): that node has written it into a folder that they share.
absl::Status WriteLesserReport(const std::string& path, const std::string& text,
                               const std::string& job_id, int64_t since_ms);

}  // namespace hlaunch
