// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/single_copy.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

template <typename Copy>
Duration TimeOf(const Copy& copy) {
  Duration best = Duration::max();
  for (int i = 0; i < 3; ++i) {  // Takes the shortest time, so that an interruption does not count.
    const Instant begin = MonotonicClock().Now();
    copy();
    best = std::min(best, Duration(MonotonicClock().Now() - begin));
  }
  return best;
}

// Returns whether the kernel needs more than four times as long as memcpy. Usually it needs 1.3 to
// 2.2 times as long and is faster nevertheless: the two copies through the ring move the bytes from
// core to core twice. The measurement reads this process itself, which is as much work as reading
// another process, and takes less than a millisecond.
bool PullIsSlow() {
  constexpr size_t kSize = 512 << 10;
  std::vector<std::byte> from(kSize, std::byte{1}), into(kSize, std::byte{2});
  const Duration by_memcpy = TimeOf([&] { std::memcpy(into.data(), from.data(), kSize); });
  bool allowed = true;
  const Duration by_kernel = TimeOf([&] {
    const iovec local{into.data(), kSize}, remote{from.data(), kSize};
    allowed &= ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == ssize_t{kSize};
  });
  return !allowed || by_kernel > 4 * by_memcpy;
}

}  // namespace

absl::StatusOr<SingleCopy> SingleCopyFromEnvironment() {
  const char* const value = std::getenv(kEnvSingleCopy);
  const absl::string_view text = value == nullptr ? "" : value;
  if (text.empty() || text == "auto") return SingleCopy::kUnlessSlow;
  if (text == "always") return SingleCopy::kAlways;
  if (text == "never") return SingleCopy::kNever;
  return absl::InvalidArgumentError(
      absl::StrCat(kEnvSingleCopy, "=", text, ": it must be auto, always or never"));
}

bool ShouldPull(SingleCopy single_copy) {
  if (single_copy != SingleCopy::kUnlessSlow) return single_copy == SingleCopy::kAlways;
  static const bool slow = PullIsSlow();
  return !slow;
}

PullProof OwnPullProof() {
  static const uint64_t value = NewIncarnation();
  return {reinterpret_cast<uint64_t>(&value), value};
}

bool PullFrom(pid_t pid, const PullProof& proof, std::span<std::byte> into, uint64_t address) {
  size_t offset = 0;
  do {
    const size_t size = std::min<size_t>(into.size() - offset, 1 << 30);
    uint64_t seen = 0;
    iovec local[2] = {{into.data() + offset, size}, {&seen, sizeof seen}};
    iovec remote[2] = {{reinterpret_cast<void*>(address + offset), size},
                       {reinterpret_cast<void*>(proof.address), sizeof seen}};
    const bool empty = size == 0;
    const ssize_t got =
        ::process_vm_readv(pid, local + empty, 2 - empty, remote + empty, 2 - empty, 0);
    if (got != static_cast<ssize_t>(size + sizeof seen) || seen != proof.value) return false;
    offset += size;
  } while (offset < into.size());
  return true;
}

}  // namespace hlaunch
