// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// A few threads that call many jobs, each when its deadline has come: as many jobs as one likes
// cost no thread more. A call that takes long (a slow disk) holds up one of the threads.
//
// Thread-safe.
class DeadlineThreads {
 public:
  using Id = uint64_t;

  // Starts no thread yet. `clock` must outlive it, and run.
  DeadlineThreads(const Clock& clock, int threads);
  // Joins the threads. Requires: all that was added is removed, and this is none of the threads.
  ~DeadlineThreads();
  DeadlineThreads(const DeadlineThreads&) = delete;
  DeadlineThreads& operator=(const DeadlineThreads&) = delete;

  // Starts those threads that do not run yet.
  //
  // Errors:
  //   ResourceExhausted - not one of them could be started; the next Start or Set tries again.
  absl::Status Start();

  // `call` is made on one of the threads when its deadline has come, with no lock held, and never
  // twice at the same time. It has no deadline yet.
  Id Add(std::function<void()> call);
  // The next call of `id` is due `at` that time, whatever was set before. Starts the threads if
  // they do not run.
  //
  // Errors: as Start. The deadline is set all the same, and holds once a thread runs.
  absl::Status Set(Id id, Instant at);
  // Waits for a call of `id` that is being made; afterwards there is none. Not within its call.
  void Remove(Id id);

 private:
  struct Entry {
    std::function<void()> call;
    std::optional<Instant> at;
    bool busy = false;  // It is being called: its deadline counts after that.
  };

  absl::Status StartLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();
  void InsertLocked(Id id, Instant at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CallLocked(Id id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  const size_t wanted_;

  Mutex mu_;
  CondVar turn_;     // For the threads that have nothing to do: one of them is to watch or call.
  CondVar changed_;  // For the one that watches: another deadline is the first now.
  CondVar idle_;     // For Remove: a call has ended.
  // One thread waits for the first deadline; a thousand jobs would wake them all each time.
  bool watched_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Id, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<Instant, Id>> due_ ABSL_GUARDED_BY(mu_);  // Of those that are not busy.
  Id last_id_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
