// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/job_words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/round/decide/restart_policy.h"
#include "rendezvous/round/table/draining.h"
#include "rendezvous/round/values/job_policy.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

// Returns what a node outside the round is told.
std::string StandingBy(const TableView& job, const Seat& seat) {
  const JobRecord& record = job.record;
  const std::string runs =
      absl::StrCat("round ", record.round, " runs with ", Nodes(record.round_nodes));
  if (record.round_nodes < record.policy.max_nodes) {
    if (record.succeeded > 0) return absl::StrCat(runs, ", of which some are done");
    if (record.policy.on_join == OnJoin::kRestart) {
      return absl::StrCat(runs, "; this node waits for the next");
    }
    return absl::StrCat(runs, "; this node waits until it ends (--on-join ",
                        OnJoinName(record.policy.on_join), ")");
  }
  const std::string spare = absl::StrCat("this node stands by as a spare: ", runs);
  const bool expected = job.membership.here() - record.round_nodes <= record.policy.spares;
  if (seat.told > 0 || expected) return spare;
  return absl::StrCat(spare,
                      ", as --nnodes says; if this is another job, give it its own "
                      "--rdzv-id and port");
}

std::string PreflightReason(const TableView& job) {
  std::vector<std::string> awaited;
  for (const auto& [id, seat] : job.membership.seats()) {
    if (InRound(job.record, seat) && !seat.prepared) awaited.push_back(seat.info.host);
  }
  std::sort(awaited.begin(), awaited.end(), NaturalLess);
  return absl::StrCat("round ", job.record.round, " with ", Nodes(job.record.round_nodes),
                      " is being checked", awaited.empty() ? "" : "; waiting for ",
                      NameSome(awaited));
}

// " with the next round, in 25 s: more may come"; " with the next round" if that begins at once.
std::string WhenItGrows(const GrowthView& growth, Instant t) {
  if (!growth.at) return growth.hold.empty() ? "" : absl::StrCat(", ", growth.hold);
  const int64_t seconds = std::max<int64_t>(0, WholeSeconds(*growth.at - t));
  if (growth.wants_boundary) {
    return absl::StrCat(" with the next round, at the next checkpoint, within ", seconds, " s");
  }
  if (growth.hold.empty()) return " with the next round";
  return absl::StrCat(" with the next round, in ", seconds, " s: ", growth.hold);
}

// "; node1 joined: from 1 to 2 nodes with the next round".
std::string Growth(const TableView& job, Instant t) {
  if (!job.growth.who.empty()) {
    return absl::StrCat("; ", job.growth.who, WhenItGrows(job.growth, t));
  }
  const JobRecord& record = job.record;
  const int waiting = job.membership.here() - record.round_nodes;
  const bool room = record.round_nodes < record.policy.max_nodes && record.succeeded == 0;
  if (record.policy.on_join == OnJoin::kRestart || waiting <= 0 || !room) return "";
  return absl::StrCat("; ", Nodes(waiting), waiting == 1 ? " waits" : " wait",
                      " until it ends (--on-join ", OnJoinName(record.policy.on_join), ")");
}

std::string RunningReason(const TableView& job, Instant t) {
  const JobRecord& record = job.record;
  return absl::StrCat("round ", record.round, " runs with ", Nodes(record.round_nodes), " and ",
                      record.world_size, record.world_size == 1 ? " worker" : " workers",
                      Growth(job, t), DrainedWords(record, job.membership));
}

std::string StoppingReason(const TableView& job) {
  std::vector<std::string> running;
  for (const auto& [id, seat] : job.membership.seats()) {
    if (!seat.left && InRound(job.record, seat) && !seat.stopped) running.push_back(seat.info.host);
  }
  return absl::StrCat("round ", job.record.round, " stops: ", job.reason,
                      "; still running: ", NameSome(running));
}

std::string OverReason(const TableView& job) {
  const std::string& reason = job.record.outcome.reason;
  return absl::StrCat(
      "the job is over", reason.empty() ? "" : ": ", reason,
      AllFinished(job.record, job.membership)
          ? ""
          : absl::StrCat("; not yet finished: ", NameSome(Unfinished(job.membership))));
}

// "; not heard of: node1 (silent for 7 s)", or nothing.
std::string Suspects(const Membership& membership, Instant t) {
  std::vector<std::string> silent;
  for (const auto& [id, seat] : membership.seats()) {
    if (seat.left || !membership.Suspect(seat, t)) continue;
    silent.push_back(
        absl::StrCat(seat.info.host, " (silent for ", WholeSeconds(t - seat.heard), " s)"));
  }
  return silent.empty() ? "" : absl::StrCat("; not heard of: ", NameSome(silent));
}

NodeStanding StandingOf(const TableView& job, const Seat& seat, Instant t) {
  const JobRecord& record = job.record;
  if (seat.left) return NodeStanding::kLeft;
  if (!InRound(record, seat) && FindDrained(record, seat.info) != nullptr) {
    return NodeStanding::kDrained;
  }
  if (job.membership.Suspect(seat, t)) {
    return seat.attached ? NodeStanding::kSilent : NodeStanding::kNotConnected;
  }
  if (seat.finished) return NodeStanding::kFinished;
  if (!InRound(record, seat)) {
    const bool full =
        record.state != JobState::kForming && record.round_nodes >= record.policy.max_nodes;
    return full ? NodeStanding::kSpare : NodeStanding::kReady;
  }
  if (record.state == JobState::kPreflight) {
    if (!seat.prepared) return NodeStanding::kChecking;
    return seat.unfit.empty() ? NodeStanding::kFit : NodeStanding::kUnfit;
  }
  if (seat.stopped) return NodeStanding::kReady;
  if (record.state == JobState::kStopping) return NodeStanding::kStopping;
  return seat.succeeded ? NodeStanding::kSucceeded : NodeStanding::kRunning;
}

// Describes `standing`, which is that of `seat`, for people.
std::string StateText(NodeStanding standing, const TableView& job, const Seat& seat, Instant t) {
  std::string text = kStandingWords[static_cast<size_t>(standing)];
  if (standing == NodeStanding::kLeft) return absl::StrCat(text, ": ", seat.left_reason);
  if (standing == NodeStanding::kDrained) return text;
  if (standing == NodeStanding::kUnfit) text = seat.unfit;
  if (standing == NodeStanding::kSilent || standing == NodeStanding::kNotConnected) {
    absl::StrAppend(&text, " for ", WholeSeconds(t - seat.heard), " s");
  }
  const bool drained = FindDrained(job.record, seat.info) != nullptr;
  return drained ? absl::StrCat(text, ", drained") : text;
}

// Returns at most kMaxNodesShown seats: suspect ones first, then by rank and host.
std::vector<const Seat*> SeatsToShow(const TableView& job, Instant t) {
  std::vector<std::pair<bool, const Seat*>> order;
  for (const auto& [id, seat] : job.membership.seats()) {
    order.emplace_back(!job.membership.Suspect(seat, t), &seat);
  }
  const auto key = [&](const std::pair<bool, const Seat*>& entry) {
    const bool member = InRound(job.record, *entry.second);
    return std::pair(entry.first, member ? entry.second->node_rank : kMaxNodes);
  };
  const size_t shown = std::min(order.size(), kMaxNodesShown);
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](const auto& a, const auto& b) {
                      if (key(a) != key(b)) return key(a) < key(b);
                      return NaturalLess(a.second->info.host, b.second->info.host);
                    });
  std::vector<const Seat*> seats;
  for (size_t i = 0; i < shown; ++i) seats.push_back(order[i].second);
  return seats;
}

}  // namespace

std::string Nodes(int n) { return absl::StrCat(n, n == 1 ? " node" : " nodes"); }

bool AllFinished(const JobRecord& record, const Membership& membership) {
  return record.state == JobState::kOver && membership.finished() == membership.here();
}

std::vector<std::string> Unfinished(const Membership& membership) {
  std::vector<std::string> hosts;
  for (const auto& [id, seat] : membership.seats()) {
    if (!seat.finished && !seat.left) hosts.push_back(seat.info.host);
  }
  return hosts;
}

std::string WaitReason(const TableView& job, const Seat& seat) {
  if (const DrainedNode* drained = FindDrained(job.record, seat.info)) {
    return absl::StrCat("this node is drained, and takes no part: ", drained->reason);
  }
  const JobState state = job.record.state;
  if (state == JobState::kPreflight || state == JobState::kRunning) return StandingBy(job, seat);
  if (state != JobState::kStopping) return std::string(job.reason);
  return absl::StrCat("waiting for ", job.record.round_nodes - job.record.stopped, " of ",
                      Nodes(job.record.round_nodes), " to stop: ", job.reason);
}

std::string Explain(const TableView& job, Instant t) {
  switch (job.record.state) {
    case JobState::kForming:
      if (job.begins_at && t < *job.begins_at) {
        return DescribePause(job.record.policy, job.record.restart_log, *job.begins_at - t);
      }
      return job.membership.here() == 0 && job.record.round == 0 ? "no node has joined yet"
                                                                 : std::string(job.reason);
    case JobState::kPreflight:
      return absl::StrCat(PreflightReason(job), Suspects(job.membership, t));
    case JobState::kRunning:
      return absl::StrCat(RunningReason(job, t), Suspects(job.membership, t));
    case JobState::kStopping:
      return absl::StrCat(StoppingReason(job), Suspects(job.membership, t));
    case JobState::kOver:
      return OverReason(job);
  }
  return "";
}

JobStatus StatusOf(const TableView& job, Instant t) {
  const JobRecord& record = job.record;
  JobStatus status;
  status.job_id = record.job_id;
  status.state = record.state;
  status.explanation = Explain(job, t);
  status.round = record.round;
  status.min_nodes = record.policy.min_nodes;
  status.max_nodes = record.policy.max_nodes;
  status.restarts = record.restarts;
  status.uncounted = record.restarts - CountedRestarts(record.policy, record.restart_log, t);
  status.max_restarts = record.policy.max_restarts;
  status.exit_code = record.outcome.exit_code;
  status.total_nodes = job.membership.here();
  status.world_size = record.world_size;
  status.notice = std::string(job.notice);
  status.excluded = record.excluded;
  for (const Seat* seat : SeatsToShow(job, t)) {
    NodeStatus node = {seat->info.host, seat->info.address, seat->info.pid, -1, seat->info.nproc};
    node.standing = StandingOf(job, *seat, t);
    node.state = StateText(node.standing, job, *seat, t);
    node.silent_for = seat->local ? Duration::zero() : t - seat->heard;
    if (InRound(record, *seat)) {
      node.node_rank = seat->node_rank;
      node.first_rank = seat->first_rank;
    }
    const DrainedNode* drained = FindDrained(record, seat->info);
    if (drained != nullptr) node.drain_reason = drained->reason;
    node.figures = seat->health.figures;
    status.nodes.push_back(std::move(node));
  }
  return status;
}

}  // namespace hlaunch
