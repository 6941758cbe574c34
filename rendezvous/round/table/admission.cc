// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/decide/restart_policy.h"

namespace hlaunch {
namespace {

std::string Range(int min, int max) {
  return min == max ? absl::StrCat(min) : absl::StrCat(min, ":", max);
}

absl::Status CheckRank(const JobRecord& record, const NodeInfo& info) {
  const JobPolicy& said = info.policy;
  const int ranks = said.max_nodes + std::max(said.spares, record.policy.spares);
  if (!info.node_rank || (0 <= *info.node_rank && *info.node_rank < ranks)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "node rank ", *info.node_rank, " of ", NodeName(info), " is not in 0 to ", ranks - 1,
      " (--nnodes ", Range(said.min_nodes, said.max_nodes),
      ranks > said.max_nodes ? absl::StrCat(" --spares ", ranks - said.max_nodes) : "", ")"));
}

// Returns the error for a node from a round in which this job does not know it.
absl::Status UnknownRound(const JobRecord& record, const NodeInfo& info, Round round) {
  return absl::OutOfRangeError(absl::StrCat(
      NodeName(info), " comes from round ", round, " of ", JobName(record.job_id),
      round > record.round
          ? absl::StrCat(", and this rendezvous knows none after round ", record.round,
                         " (its record is older than the job)")
          : absl::StrCat(", in which this rendezvous does not know it; the job is in round ",
                         record.round, " and goes on without it"),
      ". Start the node again: it joins afresh"));
}

}  // namespace

int PhaseOrder(NodePhase phase) {
  switch (phase) {
    case NodePhase::kPrepared:
      return 1;
    case NodePhase::kRunning:
      return 2;
    case NodePhase::kSucceeded:
    case NodePhase::kFailed:
      return 3;
    case NodePhase::kReady:
      return 4;
    case NodePhase::kLeft:
      return 5;
    case NodePhase::kFinished:
      return 6;
  }
  return 0;
}

bool IsOvertaken(const Seat& seat, const NodeUpdate& update) {
  const auto is = std::pair(update.round, PhaseOrder(update.phase));
  const auto was = std::pair(seat.seen, PhaseOrder(seat.phase));
  if (seat.left || seat.finished) return is.second <= was.second;  // Only kFinished may follow.
  return is < was || (is == was && update.phase != seat.phase);
}

absl::Status CheckInfo(const JobRecord& record, const NodeInfo& info) {
  if (info.node_id.empty() || info.incarnation == 0) {
    return absl::InvalidArgumentError("a node joins with its node id and incarnation");
  }
  for (const std::string* name :
       {&info.node_id, &info.host, &info.address, &info.route_address, &info.seen_address}) {
    if (name->size() > kMaxNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a name of ", name->size(), " bytes in a join; at most ", kMaxNameBytes));
    }
  }
  if (info.other_addresses.size() > kMaxOtherAddresses) {
    return absl::InvalidArgumentError(absl::StrCat("a join with ", info.other_addresses.size(),
                                                   " other addresses; at most ",
                                                   kMaxOtherAddresses));
  }
  if (info.job_id != record.job_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job at this endpoint is '", record.job_id, "', not '", info.job_id,
                     "': give both the same --rdzv-id, or each its own port"));
  }
  const JobPolicy& said = info.policy;
  if (said.min_nodes < 1 || said.max_nodes < said.min_nodes || said.max_nodes > kMaxNodes) {
    return absl::InvalidArgumentError(absl::StrCat(NodeName(info), " says --nnodes ",
                                                   Range(said.min_nodes, said.max_nodes),
                                                   ": it takes N or MIN:MAX of 1 to ", kMaxNodes));
  }
  if (const absl::Status status = CheckRestartPolicy(said); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(NodeName(info), " says ", status.message()));
  }
  if (info.nproc < 1 || info.nproc > kMaxNproc) {
    return absl::InvalidArgumentError(absl::StrCat(NodeName(info), " says --nproc-per-node ",
                                                   info.nproc, ": it takes 1 to ", kMaxNproc));
  }
  return CheckRank(record, info);
}

absl::Status CheckFits(const JobRecord& record, absl::string_view set_by, int here,
                       const NodeInfo& info, const NodeUpdate& update) {
  if (record.state == JobState::kOver) {
    const std::string& reason = record.outcome.reason;
    return absl::FailedPreconditionError(absl::StrCat(
        JobName(record.job_id), " is over", reason.empty() ? "" : absl::StrCat(": ", reason)));
  }
  const bool fresh = update.phase == NodePhase::kReady || update.phase == NodePhase::kLeft;
  if (update.round != 0 || !fresh) {
    return UnknownRound(record, info, update.round);
  }
  Seat newcomer;
  newcomer.info = info;
  HLAUNCH_RETURN_IF_ERROR(CheckPossible(record, newcomer, update));
  const JobPolicy& policy = record.policy;
  if (info.policy.min_nodes != policy.min_nodes || info.policy.max_nodes != policy.max_nodes) {
    return absl::FailedPreconditionError(absl::StrCat(
        JobName(record.job_id), " has --nnodes ", Range(policy.min_nodes, policy.max_nodes),
        set_by.empty() ? "" : absl::StrCat(", set by ", set_by), ", and ", NodeName(info), " says ",
        Range(info.policy.min_nodes, info.policy.max_nodes)));
  }
  if (here >= kMaxNodes) {
    return absl::FailedPreconditionError(
        absl::StrCat(JobName(record.job_id), " has ", here, " nodes; more cannot join"));
  }
  return absl::OkStatus();
}

absl::Status CheckPossible(const JobRecord& record, const Seat& seat, const NodeUpdate& update) {
  const auto nonsense = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(NodeName(seat.info), " says it ", what));
  };
  if (update.round < 0) return nonsense(absl::StrCat("is in round ", update.round));
  if (update.round > seat.told) {
    return absl::AbortedError(absl::StrCat(
        NodeName(seat.info), " says it is in round ", update.round, " of ", JobName(record.job_id),
        ", and this rendezvous has told it none after round ", seat.told,
        " (its record is older than the job). Start the node again: it joins afresh"));
  }
  if (update.round == 0 && PhaseOrder(update.phase) <= PhaseOrder(NodePhase::kFailed)) {
    return nonsense("runs workers and was told no round");
  }
  if (update.phase == NodePhase::kFailed && update.failures.empty()) {
    return nonsense("has failed and names no failure");
  }
  if (update.phase == NodePhase::kReady && update.store_port == 0) {
    return nonsense("is ready and names no port");
  }
  if (update.phase == NodePhase::kFinished && record.state != JobState::kOver && !seat.left) {
    return nonsense("has finished and was not told to");
  }
  if (!InRound(record, seat) || update.round != record.round) return absl::OkStatus();
  const bool preflight = record.state == JobState::kPreflight;
  if (update.phase == NodePhase::kReady && (preflight || record.state == JobState::kRunning)) {
    return nonsense(absl::StrCat("is ready and was not told to stop round ", record.round));
  }
  const bool runs = PhaseOrder(NodePhase::kRunning) <= PhaseOrder(update.phase) &&
                    PhaseOrder(update.phase) <= PhaseOrder(NodePhase::kFailed);
  if (runs && preflight) {
    return nonsense(absl::StrCat("runs round ", record.round, " and was told to prepare it"));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
