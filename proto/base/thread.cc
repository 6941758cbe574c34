// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/thread.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/base/mutex.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// A forked child inherits what TSan knows of its parent's threads that have ended, and can join
// none.
extern "C" const char* __tsan_default_suppressions() { return "thread:hlaunch::StartUnawaited\n"; }
#endif
#endif

namespace hlaunch {
namespace {

constexpr size_t kLongestName = 15;

std::thread Named(const std::string& name, std::function<void()> run) {
  return std::thread([name = name.substr(0, kLongestName), run = std::move(run)]() mutable {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    run();
    run = nullptr;  // What it held is gone before the thread can be joined.
  });
}

// Threads that nobody waits for. Thread-safe.
class Unawaited {
 public:
  void Start(const std::string& name, std::function<void()> run) {
    MutexLock lock(&mu_);
    JoinEndedLocked();
    const uint64_t id = ++last_id_;
    // It cannot end, which takes the lock, before it is listed.
    std::thread thread = Named(name, [this, id, run = std::move(run)]() mutable {
      run();
      run = nullptr;
      End(id);
    });
    running_.emplace(id, Listed{name, std::move(thread)});
  }

  std::vector<std::string> names() {
    MutexLock lock(&mu_);
    std::vector<std::string> names;
    for (const auto& [id, listed] : running_) names.push_back(listed.name);
    std::sort(names.begin(), names.end());
    return names;
  }

  void JoinEnded() {
    MutexLock lock(&mu_);
    JoinEndedLocked();
  }

 private:
  struct Listed {
    std::string name;
    std::thread thread;
  };

  void End(uint64_t id) {
    MutexLock lock(&mu_);
    const auto found = running_.find(id);
    ended_.push_back(std::move(found->second.thread));
    running_.erase(found);
  }

  // They hold no lock any more, and have nothing left to do.
  void JoinEndedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (std::thread& thread : ended_) thread.join();
    ended_.clear();
  }

  Mutex mu_;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Listed> running_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> ended_ ABSL_GUARDED_BY(mu_);
};

// The list of a process. A forked child has none of its parent's threads, so it begins a list of
// its own and leaves the other, whose lock may be held for ever there, as it is.
struct OfProcess {
  const pid_t pid = ::getpid();
  Unawaited list;
};
std::atomic<OfProcess*> of_process{nullptr};

// Null unless this process has a list.
Unawaited* ListOfProcess() {
  OfProcess* const found = of_process.load();
  return found != nullptr && found->pid == ::getpid() ? &found->list : nullptr;
}

void JoinEndedAtExit() {
  if (Unawaited* const list = ListOfProcess()) list->JoinEnded();
}

// The list is never freed: threads that run when the process exits still use it.
Unawaited& BegunListOfProcess() {
  OfProcess* known = of_process.load();
  while (known == nullptr || known->pid != ::getpid()) {
    auto* const made = new OfProcess;
    if (of_process.compare_exchange_strong(known, made)) {
      if (known == nullptr) std::atexit(JoinEndedAtExit);  // A child has inherited that.
      return made->list;
    }
    delete made;
  }
  return known->list;
}

absl::Status Refused(const std::system_error& error) {
  return absl::ResourceExhaustedError(NoThreadWords(error.code().value()));
}

}  // namespace

Thread::Thread(std::string name, std::function<void()> run)
    : thread_(Named(name, std::move(run))) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  Join();
  thread_ = std::move(other.thread_);
  return *this;
}

absl::StatusOr<Thread> Thread::Start(std::string name, std::function<void()> run) {
  try {
    return Thread(std::move(name), std::move(run));
  } catch (const std::system_error& error) {
    return Refused(error);
  }
}

void Thread::Join() {
  if (thread_.joinable()) thread_.join();
}

absl::Status StartUnawaited(std::string name, std::function<void()> run) {
  try {
    BegunListOfProcess().Start(name, std::move(run));
  } catch (const std::system_error& error) {
    return Refused(error);
  }
  return absl::OkStatus();
}

std::vector<std::string> UnawaitedThreads() {
  Unawaited* const list = ListOfProcess();
  return list == nullptr ? std::vector<std::string>() : list->names();
}

std::string NoThreadWords(int error) {
  return absl::StrCat(
      std::strerror(error),
      error == EPERM
          ? "; an old container runtime refuses clone3: update it and libseccomp, or run the "
            "container with --security-opt seccomp=unconfined"
          : "; raise the limit of processes (ulimit -u, TasksMax= of the unit, the container's "
            "limit of pids) or of memory (ulimit -v)");
}

}  // namespace hlaunch
