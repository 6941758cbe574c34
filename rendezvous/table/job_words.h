// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/growth/growth_view.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/round.h"
#include "rendezvous/table/membership.h"

// Where a job stands, in words for people. Pure: made of the record, the seats and what the table
// knows besides.

namespace hlaunch {

// All that words and directives are made of. A view: it is used at once, and not kept.
struct TableView {
  const JobRecord& record;
  const Membership& membership;
  absl::string_view reason;    // kForming: who is awaited; kStopping: why the round stops.
  GrowthView growth;           // kRunning: who joins with the next round.
  absl::string_view notice;    // What the preflight of the round found worth a word.
  absl::string_view reporter;  // kOver: the id of the node that prints the whole report.
  const std::vector<News>& news;
  std::optional<Instant> begins_at;  // kForming: after the pause before it.
};

// "1 node", "2 nodes"
std::string Nodes(int n);

// The job is over, and every node that is still here has said so.
bool AllFinished(const JobRecord& record, const Membership& membership);
// Hosts of the nodes that have not finished.
std::vector<std::string> Unfinished(const Membership& membership);

// What a node that is to wait is told: why it waits, in one line.
std::string WaitReason(const TableView& job, const Seat& seat);

// Why the job stands where it stands, in one line. `t` is an instant on the table's clock.
std::string Explain(const TableView& job, Instant t);

// The same with the nodes: those that are awaited first, then by rank. O(n log n).
JobStatus StatusOf(const TableView& job, Instant t);

}  // namespace hlaunch
