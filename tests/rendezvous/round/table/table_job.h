// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rendezvous/round/table/round_table.h"
#include "tests/rendezvous/rounds.h"

// A job for the tests of the table's parts.

namespace hlaunch {

// A table and its clock: lease 5 s, loss limit 30 s, margin 10 s, join time-out 600 s.
class TableJob {
 public:
  TableJob(int min_nodes, int max_nodes, int max_restarts = 0)
      : TableJob(Policy(min_nodes, max_nodes, max_restarts)) {}
  explicit TableJob(const JobPolicy& policy) : rules(RulesOf(policy)), table(rules) {}
  // The job after a restart of its rendezvous, which comes back after `later`.
  TableJob(const TableJob& before, Duration later)
      : now(before.now + later), rules(before.rules), table(rules, before.table.Record(), now) {}

  NodeInfo Info(int i) const {
    NodeInfo info = Node(i, rules.policy.min_nodes, rules.policy.max_nodes);
    info.policy = rules.policy;
    return info;
  }
  absl::Status Join(const NodeInfo& info, bool local = false) {
    return table.Join(info, Says(0, NodePhase::kReady), local, now);
  }
  absl::Status Join(int i) { return Join(Info(i)); }
  // Nodes 0 … n - 1 join and run round 1.
  void Run(int n) {
    for (int i = 0; i < n; ++i) ASSERT_TRUE(Join(i).ok());
    for (int i = 0; i < n; ++i) ASSERT_TRUE(Say(i, Says(1, NodePhase::kRunning)).ok());
  }
  absl::Status Say(int i, const NodeUpdate& update) {
    return table.Update(absl::StrCat("id", i), i + 1, update, now);
  }
  void Beat(int i) { table.Heard(absl::StrCat("id", i), i + 1, now); }
  void Detach(int i) { table.Disconnected(absl::StrCat("id", i), i + 1, now); }
  Directive Told(int i) const { return table.DirectiveFor(absl::StrCat("id", i)); }
  // `duration` passes; the `beating` nodes are heard every second.
  void Pass(Duration duration, const std::vector<int>& beating = {}) {
    for (const Instant end = now + duration; now < end;) {
      now = std::min(end, now + std::chrono::seconds(1));
      for (int i : beating) Beat(i);
      table.Tick(now);
    }
  }

  Instant now = Instant{} + std::chrono::hours(1);
  const JobRules rules;
  RoundTable table;

 private:
  static JobRules RulesOf(const JobPolicy& policy) {
    JobRules rules;
    rules.job_id = "job";
    rules.policy = policy;
    rules.set_by = "node0 (pid 100)";
    return rules;
  }
};

inline JobPolicy WithPreflight(int min_nodes, int max_nodes) {
  JobPolicy policy = Policy(min_nodes, max_nodes);
  policy.preflight = Preflight::kQuick;
  return policy;
}

inline WorkerFailure Saying(WorkerFailure failure, const std::string& exception) {
  failure.message = exception;
  return failure;
}

}  // namespace hlaunch
