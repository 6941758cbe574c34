// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/spawns.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/thread.h"

namespace hlaunch {

void Spawns::Ask(int world, Rank rank, SpawnRequest request, PmixWork::Done done) {
  int number = 0;
  {
    MutexLock lock(&mu_);
    number = request.pmix_world = ++count_;
    waiting_[number] = std::move(done);
  }
  // Registering a world waits for libpmix's thread, on which this runs.
  const absl::Status started = StartUnawaited(
      "hl-pmix-spawn", [this, world, rank, request] { Prepare(world, rank, request); });
  if (!started.ok()) Finish(number, started);
}

void Spawns::Prepare(int world, Rank rank, SpawnRequest request) {
  const PmixHost::Place& job = host_->place();
  const std::string& job_name = job.map.name_space();
  const int number = request.pmix_world;
  const int ranks = RanksOf(request);
  std::vector<int> programs;
  for (const OtherProgram& program : request.programs) programs.push_back(program.ranks);
  const JobMap map({{ranks, PmixWorldName(job_name, number), job.map.host(job.node_rank)}});
  auto environments =
      host_->Spawn({map, 0, 0, ranks, job.directory, std::move(programs), job.oversubscribed},
                   PmixWorldName(job_name, world), rank);
  if (!environments.ok()) return Finish(number, environments.status());
  request.environments = *std::move(environments);
  PmixNews news{PmixNews::Kind::kSpawn, rank};
  news.world = world;
  news.spawn = std::move(request);
  tell_(news);
}

void Spawns::Answered(absl::string_view line) {
  const bool started = absl::ConsumePrefix(&line, kPmixSpawned);
  if (!started && !absl::ConsumePrefix(&line, kPmixRefused)) return;
  const std::pair<absl::string_view, absl::string_view> words =
      absl::StrSplit(line, absl::MaxSplits(' ', 1));
  int number = 0;
  if (!absl::SimpleAtoi(words.first, &number)) return;
  if (!started) return Finish(number, absl::UnavailableError(words.second));
  Finish(number, PmixWorldName(host_->place().map.name_space(), number));
}

void Spawns::Finish(int number, const PmixWork::Data& name) {
  PmixWork::Done done;
  {
    MutexLock lock(&mu_);
    const auto found = waiting_.find(number);
    if (found == waiting_.end()) return;
    done = std::move(found->second);
    waiting_.erase(found);
  }
  done(name);
}

}  // namespace hlaunch
