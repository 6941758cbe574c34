// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/named_job.h"

#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/commands/cluster_words.h"
#include "launcher/command/own_jobs/own_job_commands.h"
#include "launcher/remote/detached/known_jobs.h"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"
#include "proto/cluster/job_id.h"

namespace hlaunch {

LocalClient ClientOfDaemon() { return LocalClient(SocketOfDaemon(Environment::OfThisProcess())); }

std::vector<DetachedJob> JobsKeptHere() {
  const std::string directory = JobsDirectory(Environment::OfThisProcess());
  return directory.empty() ? std::vector<DetachedJob>() : KnownJobs(directory);
}

std::optional<uint64_t> JobOfCluster(const std::string& word) {
  const std::optional<uint64_t> number = JobNumber(word);
  if (!number.has_value()) return std::nullopt;
  for (const DetachedJob& job : JobsKeptHere()) {
    if (job.id == word) return std::nullopt;
  }
  // A part of the job of a cluster has the id that the cluster gave it.
  if (!ClusterJobNumber(word).has_value() && RunsHere(word)) return std::nullopt;
  // Without a daemon there is no cluster, and the number is meant for another kind of job.
  const absl::Status here = ClientOfDaemon().Connect(MonotonicClock().Now() + kAnswerPatience);
  if (absl::IsNotFound(here)) return std::nullopt;
  return number;
}

}  // namespace hlaunch
