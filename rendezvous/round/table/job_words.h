// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/decide/growth_view.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/round.h"

// Describes the state of a job in words for people. Pure: depends only on the record, the seats and
// what else the table knows.

namespace hlaunch {

// All data that words and directives are made of. A view: use it at once, do not keep it.
struct TableView {
  const JobRecord& record;
  const Membership& membership;
  absl::string_view reason;    // kForming: what is awaited; kStopping: why the round stops.
  GrowthView growth;           // kRunning: which nodes join with the next round.
  absl::string_view notice;    // What the preflight of the round found worth reporting.
  absl::string_view reporter;  // kOver: the id of the node that prints the whole report.
  const std::vector<News>& news;
  std::optional<Instant> begins_at;  // kForming: the end of the pause before the round.
};

// "1 node", "2 nodes"
std::string Nodes(int n);

// Returns whether the job is over and every node that is still here has said so.
bool AllFinished(const JobRecord& record, const Membership& membership);
// Returns the hosts of the nodes that have not finished.
std::vector<std::string> Unfinished(const Membership& membership);

// Returns what a waiting node is told: why it waits, in one line.
std::string WaitReason(const TableView& job, const Seat& seat);

// Returns why the job is in its state, in one line. `t` is an instant on the table's clock.
std::string Explain(const TableView& job, Instant t);

// Returns the same with the nodes: suspect ones first, then by rank. O(n log n).
JobStatus StatusOf(const TableView& job, Instant t);

}  // namespace hlaunch
