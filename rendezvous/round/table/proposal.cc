// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/proposal.h"

#include <algorithm>

namespace hlaunch {

Proposal::Proposal(const DurableRecord& record, const Membership& membership)
    : record_(record), membership_(membership) {}

void Proposal::Begin(Instant t) {
  answers_ = 0;
  ends_ = t + TimeToAnswer();
}

void Proposal::Resume(Instant t) {
  ends_ = t + record_->policy.lease.loss_limit + record_->policy.lease.margin + TimeToAnswer();
}

Duration Proposal::TimeToAnswer() const {
  return record_->policy.preflight == Preflight::kFull ? kFullPreflightTime : kPreflightTime;
}

void Proposal::Answer(Seat& seat, const NodeUpdate& update) {
  if (seat.prepared) return;
  seat.prepared = true;
  seat.unfit = update.unfit.substr(0, kMaxTextBytes);
  seat.health = update.health;
  ++answers_;
}

PreflightVerdict Proposal::Judge(const std::vector<Seat*>& nodes, Instant t) const {
  std::vector<PreflightReport> reports;
  for (const Seat* seat : nodes) {
    const bool suspected = suspicious_ > 0 && seat->suspected == suspicious_;
    reports.push_back(
        {seat->info.host, seat->prepared, seat->unfit, &seat->health, suspected, seat->local});
  }
  const JobPolicy& policy = record_->policy;
  PreflightRule rule;
  rule.min_nodes = policy.min_nodes;
  rule.action = policy.preflight_action;
  rule.may_exclude =
      std::max(1, record_->round_nodes * policy.preflight_share / 100) - record_->total_excluded;
  rule.measured_again = suspicious_ > 0 && suspicious_ == record_->round - 1;
  for (const auto& [id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat) && !seat.left && !membership_.Suspect(seat, t)) ++rule.standing_by;
  }
  return DecidePreflight(reports, rule);
}

void Proposal::MeasureAgain(const PreflightVerdict& verdict, const std::vector<Seat*>& nodes) {
  suspicious_ = record_->round;
  for (const size_t index : verdict.nodes) nodes[index]->suspected = suspicious_;
}

}  // namespace hlaunch
