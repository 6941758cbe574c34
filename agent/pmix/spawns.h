// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "agent/mpi/pmix_words.h"
#include "agent/pmix/pmix_calls.h"
#include "agent/pmix/pmix_host.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// What ranks ask to be spawned by PMIx: libpmix is told of the new world, then the agent starts its
// processes, and the rank hears of it.
//
// Thread-safe. It must live as long as the process.
class Spawns {
 public:
  // `tell` has the agent know.
  explicit Spawns(std::function<void(const PmixNews&)> tell) : tell_(std::move(tell)) {}

  // Before any Ask.
  void Serve(const PmixHost& host) { host_ = &host; }

  // As PmixWork says; does not block.
  void Ask(int world, Rank rank, SpawnRequest request, PmixWork::Done done);

  // What the agent has said, if it answers a spawn.
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
