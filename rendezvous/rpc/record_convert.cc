// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/record_convert.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/rpc/convert.h"

namespace hlaunch {
namespace {

constexpr int kMaxCharged = 1'000'000;  // The most that --max-restarts takes.

v1::MemberRecord ToProto(const MemberRecord& member) {
  v1::MemberRecord out;
  *out.mutable_info() = ToProto(member.info);
  out.mutable_info()->clear_other_addresses();  // The node sends them again when it comes back.
  out.set_route_address(member.info.route_address);
  out.set_told(member.told);
  out.set_node_rank(member.node_rank);
  out.set_first_rank(member.first_rank);
  out.set_succeeded(member.succeeded);
  out.set_stopped(member.stopped);
  return out;
}

absl::StatusOr<MemberRecord> FromProto(const v1::MemberRecord& in) {
  HLAUNCH_RETURN_IF_ERROR(InRange("member.told", in.told(), 0, INT64_MAX));
  HLAUNCH_RETURN_IF_ERROR(InRange("member.node_rank", in.node_rank(), 0, kMaxNodes - 1));
  HLAUNCH_RETURN_IF_ERROR(InRange("member.first_rank", in.first_rank(), 0, INT32_MAX));
  MemberRecord member;
  HLAUNCH_ASSIGN_OR_RETURN(member.info, hlaunch::FromProto(in.info()));
  member.info.route_address = in.route_address();
  member.told = in.told();
  member.node_rank = in.node_rank();
  member.first_rank = in.first_rank();
  member.succeeded = in.succeeded();
  member.stopped = in.stopped();
  return member;
}

v1::GhostRecord ToProto(const Ghost& ghost) {
  v1::GhostRecord out;
  out.set_node_id(ghost.node_id);
  out.set_incarnation(ghost.incarnation);
  out.set_host(ghost.host);
  out.set_pid(ghost.pid);
  return out;
}

v1::DrainedNode ToProto(const DrainedNode& drained) {
  v1::DrainedNode out;
  out.set_node_id(drained.node_id);
  out.set_reason(ToUtf8(drained.reason, kMaxTextBytes));
  out.set_incarnation(drained.incarnation);
  *out.mutable_within() = DurationToProto(drained.within);
  out.set_own(drained.own);
  return out;
}

absl::StatusOr<DrainedNode> FromProto(const v1::DrainedNode& in) {
  DrainedNode out = {in.node_id(), in.incarnation(), in.reason()};
  HLAUNCH_ASSIGN_OR_RETURN(out.within, DurationFromProto("within", in.within()));
  out.own = in.own();
  return out;
}

v1::Progress ToProto(const Progress& progress) {
  v1::Progress out;
  if (progress.best_step) out.set_best_step(*progress.best_step);
  if (progress.judged_step) out.set_judged_step(*progress.judged_step);
  out.set_judged_restarts(progress.judged_restarts);
  out.set_stuck_restarts(progress.stuck_restarts);
  return out;
}

Progress FromProto(const v1::Progress& in) {
  Progress out;
  if (in.has_best_step()) out.best_step = in.best_step();
  if (in.has_judged_step()) out.judged_step = in.judged_step();
  out.judged_restarts = in.judged_restarts();
  out.stuck_restarts = in.stuck_restarts();
  return out;
}

v1::RestartLog ToProto(const RestartLog& log) {
  v1::RestartLog out;
  out.set_charged(static_cast<int32_t>(log.charged.size()));
  out.set_in_a_row(log.in_a_row);
  out.set_free(log.free);
  *out.mutable_pause() = DurationToProto(log.pause);
  return out;
}

absl::StatusOr<RestartLog> RestartLogOf(const v1::JobRecord& in) {
  const v1::RestartLog& said = in.restart_log();
  const int charged = in.has_restart_log() ? said.charged() : in.restarts();
  if (charged < 0 || charged > kMaxCharged) {
    return absl::InvalidArgumentError(absl::StrCat(charged, " restarts are charged"));
  }
  RestartLog out;
  out.charged.resize(static_cast<size_t>(charged));
  out.in_a_row = said.in_a_row();
  out.free = said.free();
  HLAUNCH_ASSIGN_OR_RETURN(out.pause, DurationFromProto("pause", said.pause()));
  return out;
}

absl::Status CheckNumbers(const v1::JobRecord& in) {
  const struct {
    const char* field;
    int64_t value;
    int64_t most;
  } numbers[] = {
      {"round", in.round(), INT64_MAX},
      {"restarts", in.restarts(), INT32_MAX},
      {"round_nodes", in.round_nodes(), kMaxNodes},
      {"succeeded", in.succeeded(), kMaxNodes},
      {"stopped", in.stopped(), kMaxNodes},
      {"world_size", in.world_size(), INT32_MAX},
      {"master_port", in.master_port(), UINT16_MAX},
      {"coordinator_port", in.coordinator_port(), UINT16_MAX},
      {"total_failures", in.total_failures(), INT32_MAX},
      {"total_excluded", in.total_excluded(), INT32_MAX},
      {"judged_restarts", in.progress().judged_restarts(), INT32_MAX},
      {"stuck_restarts", in.progress().stuck_restarts(), INT32_MAX},
      {"in_a_row", in.restart_log().in_a_row(), INT32_MAX},
  };
  for (const auto& [field, value, most] : numbers) {
    HLAUNCH_RETURN_IF_ERROR(InRange(field, value, 0, most));
  }
  for (const v1::GhostRecord& ghost : in.ghosts()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("ghost.pid", ghost.pid(), 0, INT32_MAX));
  }
  for (const v1::HeldRank& held : in.held_ranks()) {
    HLAUNCH_RETURN_IF_ERROR(InRange("held.node_rank", held.node_rank(), 0, kMaxNodes - 1));
  }
  return absl::OkStatus();
}

// The table counts the members of a round by their ranks.
absl::Status CheckRank(const MemberRecord& member, const v1::JobRecord& in) {
  if (member.told != in.round()) return absl::OkStatus();
  return InRange("member.node_rank", member.node_rank, 0, in.round_nodes() - 1);
}

}  // namespace

v1::JobRecord ToProto(const JobRecord& record) {
  v1::JobRecord out;
  out.set_job_id(record.job_id);
  *out.mutable_policy() = ToProto(record.policy);
  out.set_state(static_cast<v1::JobState>(static_cast<int>(record.state) + 1));
  out.set_round(record.round);
  out.set_restarts(record.restarts);
  for (const MemberRecord& member : record.members) *out.add_members() = ToProto(member);
  for (const Ghost& ghost : record.ghosts) *out.add_ghosts() = ToProto(ghost);
  for (const Incarnation incarnation : record.given_up) out.add_given_up(incarnation);
  for (const auto& [node_id, rank] : record.held_ranks) {
    v1::HeldRank& one = *out.add_held_ranks();
    one.set_node_id(node_id);
    one.set_node_rank(rank);
  }
  out.set_round_nodes(record.round_nodes);
  out.set_succeeded(record.succeeded);
  out.set_stopped(record.stopped);
  out.set_world_size(record.world_size);
  out.set_master_addr(record.master_addr);
  out.set_master_port(record.master_port);
  out.set_coordinator_port(record.coordinator_port);
  out.set_worker_store(record.worker_store);
  out.set_comm_secret(record.comm_secret);
  out.set_cause(ToUtf8(record.cause, kMaxTextBytes));
  for (const WorkerFailure& failure : record.failures) *out.add_failures() = ToProto(failure);
  out.set_total_failures(record.total_failures);
  for (const PastRound& past : record.history) *out.add_history() = ToProto(past);
  for (const std::string& one : record.excluded) out.add_excluded(ToUtf8(one, kMaxTextBytes));
  out.set_total_excluded(record.total_excluded);
  *out.mutable_progress() = ToProto(record.progress);
  *out.mutable_restart_log() = ToProto(record.restart_log);
  for (const DrainedNode& one : record.drained) *out.add_drained() = ToProto(one);
  *out.mutable_outcome() = ToProto(record.outcome);
  return out;
}

absl::StatusOr<JobRecord> FromProto(const v1::JobRecord& in) {
  HLAUNCH_RETURN_IF_ERROR(CheckNumbers(in));
  JobRecord record;
  record.job_id = in.job_id();
  HLAUNCH_ASSIGN_OR_RETURN(record.policy, FromProto(in.policy()));
  if (in.state() < v1::JOB_STATE_FORMING || in.state() > v1::JOB_STATE_OVER) {
    return absl::InvalidArgumentError(absl::StrCat("state is ", in.state()));
  }
  record.state = static_cast<JobState>(in.state() - 1);
  record.round = in.round();
  record.restarts = in.restarts();
  std::set<std::string> ids;
  for (const v1::MemberRecord& one : in.members()) {
    HLAUNCH_ASSIGN_OR_RETURN(MemberRecord member, FromProto(one));
    HLAUNCH_RETURN_IF_ERROR(CheckRank(member, in));
    if (!ids.insert(member.info.node_id).second || member.info.job_id != record.job_id) {
      return absl::InvalidArgumentError("a member is there twice, or of another job");
    }
    record.members.push_back(std::move(member));
  }
  for (const v1::GhostRecord& one : in.ghosts()) {
    record.ghosts.push_back({one.node_id(), one.incarnation(), one.host(), one.pid(), {}});
  }
  record.given_up.assign(in.given_up().begin(), in.given_up().end());
  for (const v1::HeldRank& one : in.held_ranks()) {
    record.held_ranks.emplace(one.node_id(), one.node_rank());
  }
  record.round_nodes = in.round_nodes();
  record.succeeded = in.succeeded();
  record.stopped = in.stopped();
  record.world_size = in.world_size();
  record.master_addr = in.master_addr();
  record.master_port = static_cast<uint16_t>(in.master_port());
  record.coordinator_port = static_cast<uint16_t>(in.coordinator_port());
  record.worker_store = in.worker_store();
  record.comm_secret = in.comm_secret();
  record.cause = in.cause();
  for (const v1::WorkerFailure& one : in.failures()) {
    HLAUNCH_ASSIGN_OR_RETURN(WorkerFailure failure, FromProto(one));
    record.failures.push_back(std::move(failure));
  }
  record.total_failures = in.total_failures();
  for (const v1::PastRound& one : in.history()) {
    HLAUNCH_ASSIGN_OR_RETURN(PastRound past, FromProto(one));
    record.history.push_back(std::move(past));
  }
  record.excluded.assign(in.excluded().begin(), in.excluded().end());
  record.total_excluded = in.total_excluded();
  record.progress = FromProto(in.progress());
  HLAUNCH_ASSIGN_OR_RETURN(record.restart_log, RestartLogOf(in));
  for (const v1::DrainedNode& one : in.drained()) {
    HLAUNCH_ASSIGN_OR_RETURN(DrainedNode drained, FromProto(one));
    record.drained.push_back(std::move(drained));
  }
  HLAUNCH_ASSIGN_OR_RETURN(record.outcome, FromProto(in.outcome()));
  return record;
}

}  // namespace hlaunch
