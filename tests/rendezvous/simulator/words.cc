// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/simulator/words.h"

#include "absl/strings/str_cat.h"

namespace hlaunch {

const char* KindName(Directive::Kind kind) {
  constexpr const char* kNames[] = {"wait", "prepare", "run", "stop", "finish"};
  return kNames[static_cast<size_t>(kind)];
}

const char* StateName(JobState state) {
  constexpr const char* kNames[] = {"forming", "preflight", "running", "stopping", "over"};
  return kNames[static_cast<size_t>(state)];
}

std::string Words(const NodeUpdate& update) {
  constexpr const char* kNames[] = {"ready",  "prepared", "running", "succeeded",
                                    "failed", "left",     "finished"};
  return absl::StrCat("round ", update.round, " ", kNames[static_cast<size_t>(update.phase)],
                      update.unfit.empty() ? "" : ", unfit");
}

std::string Words(const Outcome& outcome) {
  std::string words = absl::StrCat("exit code ", outcome.exit_code, " ", outcome.reason, " ",
                                   outcome.cause_reason, ", failed", outcome.worker_failed);
  absl::StrAppend(&words, ", ", outcome.restart_count, " restarts, ", outcome.total_failures,
                  " failures", outcome.report ? ", reports" : "");
  for (const WorkerFailure& failure : outcome.failures) absl::StrAppend(&words, " ", failure.rank);
  for (const WorkerPlace& worker : outcome.awaited) absl::StrAppend(&words, " ?", worker.rank);
  for (const PastRound& past : outcome.history) absl::StrAppend(&words, "; ", past.reason);
  for (const std::string& one : outcome.excluded) absl::StrAppend(&words, "; ", one);
  return words;
}

std::string Words(const JobRecord& record) {
  std::string words =
      absl::StrCat(StateName(record.state), " round ", record.round, " of ", record.round_nodes,
                   ", ", record.succeeded, " succeeded, ", record.stopped, " stopped, world size ",
                   record.world_size, ", ", record.restarts, " restarts, of which ",
                   record.restart_log.charged.size(), " are charged, ", record.total_failures,
                   " failures, ", record.total_excluded, " excluded, master ", record.master_addr);
  absl::StrAppend(&words, " ", record.master_port, " ", record.coordinator_port, " ",
                  record.worker_store, ", cause: ", record.cause, "; members");
  for (const MemberRecord& member : record.members) {
    absl::StrAppend(&words, " ", member.info.node_id, "/", member.info.incarnation, ":",
                    member.told, ":", member.node_rank, ":", member.first_rank, ":",
                    member.succeeded, member.stopped);
  }
  for (const Ghost& ghost : record.ghosts) absl::StrAppend(&words, ", ghost ", ghost.incarnation);
  absl::StrAppend(&words, ", given up");
  for (const Incarnation one : record.given_up) absl::StrAppend(&words, " ", one);
  absl::StrAppend(&words, ", ranks");
  for (const auto& [id, rank] : record.held_ranks) absl::StrAppend(&words, " ", id, "=", rank);
  for (const WorkerFailure& failure : record.failures) absl::StrAppend(&words, " !", failure.rank);
  for (const PastRound& past : record.history) absl::StrAppend(&words, "; ", past.reason);
  for (const std::string& one : record.excluded) absl::StrAppend(&words, "; ", one);
  return absl::StrCat(words, "; ", Words(record.outcome));
}

std::string Words(const JobStatus& status) {
  std::string words = status.explanation;
  for (const NodeStatus& node : status.nodes) {
    absl::StrAppend(&words, " | ", node.host, " ", node.node_rank, " ", node.state);
  }
  return words;
}

}  // namespace hlaunch
