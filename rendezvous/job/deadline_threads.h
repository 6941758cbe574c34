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

// A few threads that call many jobs, each when its deadline has come: more jobs need no more
// threads. A call that takes long (a slow disk) holds up one of the threads.
//
// Thread-safe.
class DeadlineThreads {
 public:
  using Id = uint64_t;

  // Starts no thread yet. `clock` must outlive it, and run.
  DeadlineThreads(const Clock& clock, int threads);
  // Joins the threads. Requires: everything that was added is removed, and the caller is none of
  // the threads.
  ~DeadlineThreads();
  DeadlineThreads(const DeadlineThreads&) = delete;
  DeadlineThreads& operator=(const DeadlineThreads&) = delete;

  // Starts those threads that do not run yet.
  //
  // Errors:
  //   ResourceExhausted - no thread could be started; the next Start or Set tries again.
  absl::Status Start();

  // Adds `call`. One of the threads makes it when its deadline has come, with no lock held, and
  // never twice at the same time. It has no deadline yet.
  Id Add(std::function<void()> call);
  // The next call of `id` is due at `at`, whatever was set before. Starts the threads if they do
  // not run.
  //
  // Errors: as Start. The deadline is set all the same, and holds once a thread runs.
  absl::Status Set(Id id, Instant at);
  // Removes `id`. Waits for a call of it that is being made; no call follows. Must not be called
  // within that call.
  void Remove(Id id);

 private:
  struct Entry {
    std::function<void()> call;
    std::optional<Instant> at;
    bool busy = false;  // It is being called; its deadline counts after that.
  };

  absl::Status StartLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();
  void InsertLocked(Id id, Instant at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CallLocked(Id id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  const size_t wanted_;

  Mutex mu_;
  CondVar turn_;     // For idle threads: one of them must watch or call.
  CondVar changed_;  // For the thread that watches: another deadline is the first now.
  CondVar idle_;     // For Remove: a call has ended.
  // Only one thread waits for the first deadline; otherwise a thousand jobs would wake all threads
  // each time.
  bool watched_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Id, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<Instant, Id>> due_ ABSL_GUARDED_BY(mu_);  // Of entries that are not busy.
  Id last_id_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
