// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/lack.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// For listeners, event loops, gRPC and some short connections.
constexpr uint64_t kOwn = 64;
constexpr uint64_t kOwnWorker = 4;  // Two pipes, a pidfd and its copy in the loop.
// What the smallest jobs were seen to need. With less, what is refused would end the process.
constexpr uint64_t kLeastAlone = 18;
constexpr uint64_t kLeastTogether = 30;
constexpr uint64_t kStartingWorker = 6;
constexpr uint64_t kMaxReserved = 16384;  // They cost 128 KiB of kernel memory.

}  // namespace

std::optional<uint64_t> RaiseDescriptorLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return {};
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return before;
}

void ReserveDescriptors(uint64_t count) {
  const uint64_t room = std::min({count, DescriptorLimit(), kMaxReserved});
  if (room == 0) return;
  const UniqueFd last(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(room) - 1));
}

uint64_t DescriptorLimit() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

uint64_t LeastDescriptors(int nproc, bool meets_others) {
  return (meets_others ? kLeastTogether : kLeastAlone) +
         kStartingWorker * static_cast<uint64_t>(nproc);
}

absl::Status CheckDescriptors(uint64_t count) {
  const uint64_t limit = DescriptorLimit();
  if (limit > kMaxReserved) return absl::OkStatus();
  std::vector<UniqueFd> free;
  while (free.size() < count) {
    free.emplace_back(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!free.back().valid()) {
      const int error = errno;
      return absl::ResourceExhaustedError(
          absl::StrCat("this node needs ", count, " more descriptors to begin and can have ",
                       free.size() - 1, " of ", limit, ": ", NoDescriptorWords(error)));
    }
  }
  return absl::OkStatus();
}

Ceiling DecideCeiling(const DescriptorNeed& need, uint64_t limit) {
  const auto nproc = static_cast<uint64_t>(need.nproc);
  const uint64_t own = kOwn + kOwnWorker * nproc;
  const uint64_t spares = static_cast<uint64_t>(need.spares);  // They run no workers.
  const uint64_t each = 1 + (need.store_here ? nproc + 1 : 0);
  Ceiling ceiling;
  ceiling.needed = own + spares + each * static_cast<uint64_t>(need.max_nodes);
  const uint64_t left = limit - std::min(limit, own + spares);
  ceiling.nodes = static_cast<int64_t>(std::min<uint64_t>(left / each, INT64_MAX));
  ceiling.reason = absl::StrCat(
      "of ", limit == RLIM_INFINITY ? "unlimited" : absl::StrCat(limit),
      " descriptors this node takes ", own, " and each node ", each,
      need.store_here ? ": its agent's connection, and its own and its workers' to the store"
                      : ": its agent's connection");
  return ceiling;
}

}  // namespace hlaunch
