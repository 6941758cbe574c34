// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// For listeners, event loops, gRPC and some short connections.
constexpr uint64_t kOwn = 64;
constexpr uint64_t kOwnWorker = 4;        // Two pipes, a pidfd and its copy in the loop.
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

Ceiling DecideCeiling(const DescriptorNeed& need, uint64_t limit) {
  const auto nproc = static_cast<uint64_t>(need.nproc);
  const uint64_t own = kOwn + kOwnWorker * nproc;
  const uint64_t spares = static_cast<uint64_t>(need.spares);  // They run no workers.
  const uint64_t each = 1 + (need.store_here ? nproc : 0);
  Ceiling ceiling;
  ceiling.needed = own + spares + each * static_cast<uint64_t>(need.max_nodes);
  const uint64_t left = limit - std::min(limit, own + spares);
  ceiling.nodes = static_cast<int64_t>(std::min<uint64_t>(left / each, INT64_MAX));
  ceiling.reason =
      absl::StrCat("of ", limit == RLIM_INFINITY ? "unlimited" : absl::StrCat(limit),
                   " descriptors this node takes ", own, " and each node ", each,
                   need.store_here ? ": its agent's connection and its workers' to the store"
                                   : ": its agent's connection");
  return ceiling;
}

}  // namespace hlaunch
