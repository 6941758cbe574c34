// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/deadline_threads.h"

#include <pthread.h>

#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

DeadlineThreads::DeadlineThreads(const Clock& clock, int threads)
    : clock_(clock), wanted_(static_cast<size_t>(threads)) {}

DeadlineThreads::~DeadlineThreads() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mu_);
    HLAUNCH_CHECK(entries_.empty());
    stop_ = true;
    threads.swap(threads_);
    turn_.SignalAll();
    changed_.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
}

absl::Status DeadlineThreads::Start() {
  MutexLock lock(&mu_);
  return StartLocked();
}

absl::Status DeadlineThreads::StartLocked() {
  try {
    while (threads_.size() < wanted_) {
      threads_.emplace_back([this] { Run(); });
      ::pthread_setname_np(threads_.back().native_handle(), "hl-rdzv-timer");
    }
  } catch (const std::system_error& error) {
    if (threads_.empty()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot start a thread for the jobs' deadlines: ", error.code().message()));
    }
  }
  return absl::OkStatus();
}

DeadlineThreads::Id DeadlineThreads::Add(std::function<void()> call) {
  MutexLock lock(&mu_);
  entries_[++last_id_].call = std::move(call);
  return last_id_;
}

absl::Status DeadlineThreads::Set(Id id, Instant at) {
  MutexLock lock(&mu_);
  Entry& entry = entries_.at(id);
  if (!entry.busy) {
    if (entry.at.has_value()) due_.erase({*entry.at, id});
    InsertLocked(id, at);
  }
  entry.at = at;
  return StartLocked();
}

void DeadlineThreads::Remove(Id id) {
  MutexLock lock(&mu_);
  const auto it = entries_.find(id);
  while (it->second.busy) idle_.Wait(&mu_);
  if (it->second.at.has_value()) due_.erase({*it->second.at, id});
  entries_.erase(it);
}

void DeadlineThreads::InsertLocked(Id id, Instant at) {
  const auto inserted = due_.insert({at, id}).first;  // Must precede begin().
  if (inserted != due_.begin()) return;
  if (watched_) {
    changed_.Signal();
  } else {
    turn_.Signal();
  }
}

void DeadlineThreads::Run() {
  MutexLock lock(&mu_);
  while (!stop_) {
    if (due_.empty() || watched_) {
      turn_.Wait(&mu_);
    } else if (const Instant first = due_.begin()->first; clock_.Now() < first) {
      watched_ = true;
      changed_.WaitUntil(&mu_, first);
      watched_ = false;
    } else {
      CallLocked(due_.begin()->second);
    }
  }
}

// Drops the lock during the call. The entry stays, because Remove waits while it is busy.
void DeadlineThreads::CallLocked(Id id) {
  due_.erase(due_.begin());
  if (!due_.empty()) turn_.Signal();  // Another thread must watch meanwhile.
  Entry& entry = entries_.at(id);
  entry.at.reset();
  entry.busy = true;
  mu_.Unlock();
  entry.call();
  mu_.Lock();
  entry.busy = false;
  if (entry.at.has_value()) InsertLocked(id, *entry.at);
  idle_.SignalAll();
}

}  // namespace hlaunch
