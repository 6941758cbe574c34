// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/thread_room.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/mutex.h"
#include "proto/base/thread.h"

namespace hlaunch {
namespace {

// What an agent and its checks have, besides gRPC's pool with one thread for each processor.
constexpr int kOthers = 24;
constexpr long kLeastPool = 2, kMostPool = 16;
constexpr size_t kSpace =
    14 << 20;  // Of addresses, for a thread's stack and its share of the heap.

void* PassGate(void* gate) {
  const MutexLock lock(static_cast<Mutex*>(gate));
  return nullptr;
}

}  // namespace

absl::Status CheckThreads(int count) {
  Mutex gate;  // Held until all threads exist.
  std::vector<pthread_t> threads;
  int error = 0;
  {
    const MutexLock lock(&gate);
    while (static_cast<int>(threads.size()) < count && error == 0) {
      pthread_t thread;
      error = ::pthread_create(&thread, nullptr, PassGate, &gate);
      if (error == 0) threads.push_back(thread);
    }
  }
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  if (error == 0) return absl::OkStatus();
  const std::string what = threads.empty() ? "cannot start a thread"
                                           : absl::StrCat("can start only ", threads.size(), " of ",
                                                          count, " threads that are needed");
  return absl::ResourceExhaustedError(absl::StrCat(what, ": ", NoThreadWords(error)));
}

absl::Status CheckThreadsOfAgent() {
  const long pool = std::clamp(::sysconf(_SC_NPROCESSORS_CONF), kLeastPool, kMostPool);
  const int count = kOthers + static_cast<int>(pool);
  const size_t space = kSpace * static_cast<size_t>(count);
  void* const all =
      ::mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no address space of ", space >> 20, " MiB for ", count,
                     " threads: ", std::strerror(errno), "; raise the limit (ulimit -v)"));
  }
  ::munmap(all, space);
  return CheckThreads(count);
}

}  // namespace hlaunch
