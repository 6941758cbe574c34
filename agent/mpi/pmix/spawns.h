// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "agent/mpi/pmix/pmix_calls.h"
#include "agent/mpi/pmix/pmix_host.h"
#include "agent/mpi/serve/pmix_words.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// The spawns that ranks request through PMIx. libpmix is told of the new world, then the agent
// starts its processes, then the rank gets its answer.
//
// Thread-safe. It must live as long as the process.
class Spawns {
 public:
  // `tell` sends news to the agent.
  explicit Spawns(std::function<void(const PmixNews&)> tell) : tell_(std::move(tell)) {}

  // Call this before any Ask.
  void Serve(const PmixHost& host) { host_ = &host; }

  // As in PmixWork; does not block.
  void Ask(int world, Rank rank, SpawnRequest request, PmixWork::Done done);

  // Takes a line from the agent; does nothing if it is no answer to a spawn.
  void Answered(absl::string_view line);

 private:
  void Prepare(int world, Rank rank, SpawnRequest request);
  void Finish(int number, const PmixWork::Data& name);

  const std::function<void(const PmixNews&)> tell_;
  const PmixHost* host_ = nullptr;
  Mutex mu_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int, PmixWork::Done> waiting_ ABSL_GUARDED_BY(mu_);  // By the new world's number.
};

}  // namespace hlaunch
