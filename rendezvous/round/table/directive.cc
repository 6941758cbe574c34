// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/directive.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/cause/first_cause.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {
namespace {

// One node is told the whole outcome; the others only the first failure.
Outcome OutcomeFor(const TableView& job, const Seat& seat) {
  Outcome outcome = job.record.outcome;
  outcome.report = seat.info.node_id == job.reporter;
  if (outcome.exit_code == kExitNodeStopped && IsSignalExit(seat.left_exit_code)) {
    outcome.exit_code = seat.left_exit_code;  // This node was stopped itself.
  }
  if (outcome.report) return outcome;
  outcome.history.clear();
  if (!outcome.failures.empty()) {
    outcome.failures.resize(1);
    Shorten(outcome.failures[0]);
  }
  return outcome;
}

Outcome OutcomeOfLeaver(const JobRecord& record, const Seat& seat) {
  Outcome outcome;
  outcome.exit_code = seat.left_exit_code;
  outcome.reason = absl::StrCat("this node left: ", seat.left_reason);
  outcome.restart_count = record.restarts;
  return outcome;
}

}  // namespace

Assignment AssignmentOf(const TableView& job, int node_rank, Rank first_rank) {
  const JobRecord& record = job.record;
  Assignment assignment;
  assignment.round = record.round;
  assignment.restart_count = record.restarts;
  assignment.max_restarts = record.policy.max_restarts;
  assignment.node_rank = node_rank;
  assignment.num_nodes = record.round_nodes;
  assignment.first_rank = first_rank;
  assignment.world_size = record.world_size;
  assignment.master_addr = record.master_addr;
  assignment.master_port = record.master_port;
  assignment.coordinator_port = record.coordinator_port;
  assignment.worker_store = record.worker_store;
  assignment.preflight = record.policy.preflight;
  assignment.comm_secret = record.comm_secret;
  if (node_rank != 0) return assignment;
  assignment.notice = std::string(job.notice);
  std::vector<const NodeInfo*> members;
  for (const auto& [id, seat] : job.membership.seats()) {
    if (InRound(record, seat)) members.push_back(&seat.info);
  }
  assignment.members = MemberAddresses(members);
  return assignment;
}

Directive DirectiveOf(const TableView& job, const Seat& seat) {
  const JobRecord& record = job.record;
  const bool member = InRound(record, seat);
  Directive directive;
  if (record.state != JobState::kOver) directive.news = job.news;  // The job's end says the rest.
  if (record.state == JobState::kOver) {
    directive.kind = Directive::Kind::kFinish;
    directive.outcome = OutcomeFor(job, seat);
  } else if (seat.left) {
    directive.kind = Directive::Kind::kFinish;
    directive.outcome = OutcomeOfLeaver(record, seat);
  } else if (record.state == JobState::kStopping && member && !seat.stopped) {
    directive.kind = Directive::Kind::kStop;
    directive.round = record.round;
    directive.reason = std::string(job.reason);
  } else if ((record.state == JobState::kPreflight || record.state == JobState::kRunning) &&
             member) {
    const bool run = record.state == JobState::kRunning;
    directive.kind = run ? Directive::Kind::kRun : Directive::Kind::kPrepare;
    directive.wants_boundary = run && job.growth.wants_boundary;
    directive.round = record.round;
    directive.assignment = AssignmentOf(job, seat.node_rank, seat.first_rank);
  } else {
    directive.reason = WaitReason(job, seat);
  }
  return directive;
}

}  // namespace hlaunch
