// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/round/values/round.h"

// Jobs as a rendezvous reports them, for the tests of the code that shows them.

namespace hlaunch {

inline constexpr int64_t kNoon = 1'800'000'000'000;  // 2027-01-15 08:00:00 UTC.

inline void Stand(NodeStatus& node, NodeStanding standing) {
  node.standing = standing;
  node.state = kStandingWords[static_cast<size_t>(standing)];
}

// The first round of this job ended when rank 3 failed after 100 s. Its second has run for 180 s.
inline JobStatus RestartedJob() {
  JobStatus job;
  job.job_id = "train-17";
  job.state = JobState::kRunning;
  job.explanation = "round 2 runs with 2 nodes and 4 workers";
  job.round = 2;
  job.min_nodes = job.max_nodes = job.total_nodes = 2;
  job.restarts = 1;
  job.max_restarts = 3;
  job.world_size = 4;
  job.nodes = {{"node0", "10.0.0.1", 77, 0, 2, "", 0}, {"node1", "10.0.0.2", 78, 1, 2, "", 2}};
  for (NodeStatus& node : job.nodes) Stand(node, NodeStanding::kRunning);
  const std::string why = "worker rank 3 on node1 (pid 4242) exited with 7";
  job.rounds = {{1, kNoon + 5000, kNoon + 7000, kNoon + 107000, kNoon + 110000, 2, 4, 0, why},
                {2, kNoon + 111000, kNoon + 120000, 0, 0, 2, 4, 1, ""}};
  job.began_ms = kNoon;
  job.told_ms = kNoon + 300000;
  job.ran_for = std::chrono::seconds(280);
  job.failed_round = 1;
  WorkerFailure& failure = job.failure.emplace();
  failure.rank = 3;
  failure.local_rank = 1;
  failure.node_rank = 1;
  failure.host = "node1";
  failure.pid = 4242;
  failure.exit_code = 7;
  failure.log_tail = "step 41 loss 2.17\nRuntimeError: HBM is gone\n";
  failure.log_file = "/logs/train-17/rank3/stderr.log";
  return job;
}

inline JobStatus WaitingJob() {
  JobStatus job;
  job.job_id = "train-18";
  job.explanation = "waiting 12 s for 1 of 2 nodes: node rank 1 has not joined";
  job.min_nodes = job.max_nodes = 2;
  job.total_nodes = 1;
  job.nodes = {{"node0", "10.0.0.1", 77, -1, 8}};
  Stand(job.nodes[0], NodeStanding::kReady);
  job.began_ms = kNoon;
  job.told_ms = kNoon + 12000;
  return job;
}

// 2,048 nodes with 8 workers each: one is silent, one is drained.
inline JobStatus HugeJob() {
  JobStatus job = RestartedJob();
  job.job_id = "llama-405b";
  job.explanation = "round 2 runs with 2048 nodes and 16384 workers; not heard of: gpu1024";
  job.min_nodes = job.max_nodes = job.total_nodes = 2048;
  job.world_size = 16384;
  job.nodes.clear();
  for (int i = 0; i < 2048; ++i) {
    job.nodes.push_back({"gpu" + std::to_string(i), "10.1.0.1", 100 + i, i, 8, "", 8 * i});
    Stand(job.nodes.back(), NodeStanding::kRunning);
    job.nodes.back().figures[Figure::kMemorySpeed] = i == 77 ? 4.1 : 11.8 + 0.01 * (i % 40);
  }
  Stand(job.nodes[1024], NodeStanding::kSilent);
  job.nodes[1024].state = "silent for 7 s";
  job.nodes[3].state = "running, drained";
  job.nodes[3].drain_reason = "ECC errors in HBM 2";
  for (RoundStatus& round : job.rounds) {
    round.nodes = 2048;
    round.world_size = 16384;
  }
  job.notice = "gpu77 copies memory at 4.1 GB/s, a third of the median";
  return job;
}

// A job with `text` in every field that a stranger may write.
inline JobStatus HostileJob(const std::string& text) {
  JobStatus job = RestartedJob();
  job.job_id = job.explanation = job.notice = text;
  job.excluded = {text};
  for (NodeStatus& node : job.nodes) node.host = node.state = node.drain_reason = text;
  for (RoundStatus& round : job.rounds) round.reason = text;
  job.failure->host = job.failure->log_tail = job.failure->log_file = text;
  return job;
}

}  // namespace hlaunch
