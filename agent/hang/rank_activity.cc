// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/hang/rank_activity.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/hang/socket_bytes.h"
#include "agent/process/descendants.h"

namespace hlaunch {
namespace {

constexpr uint64_t kMovedAtWork = 1 << 16;  // Bytes per second.
constexpr int kPartAtWork = 50;  // A fiftieth of one CPU: threads that only wake up need less.

uint64_t NumberAfter(absl::string_view text, absl::string_view word) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    uint64_t number = 0;
    if (absl::ConsumePrefix(&line, word) && absl::SimpleAtoi(line, &number)) return number;
  }
  return 0;
}

// A process that is gone, or another one, may have less.
double Growth(uint64_t before, uint64_t now) {
  return now > before ? static_cast<double>(now - before) : 0;
}

}  // namespace

uint64_t BytesMoved(pid_t pid) {
  const std::string io = ReadSmallFile(absl::StrCat("/proc/", pid, "/io"));
  return NumberAfter(io, "rchar: ") + NumberAfter(io, "wchar: ");
}

RankActivity ReadActivity(pid_t pid) {
  RankActivity activity;
  const std::string directory = absl::StrCat("/proc/", pid);
  const std::string stat = ReadSmallFile(directory + "/stat");
  const size_t name_end = stat.rfind(") ");
  if (name_end == stat.npos) return activity;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(name_end + 2), ' ');
  constexpr size_t kUserTime = 11, kTimes = 4;  // Counted from the state field.
  if (fields.size() < kUserTime + kTimes || fields[0].size() != 1) return activity;
  activity.state = fields[0][0];
  uint64_t ticks = 0;
  for (size_t i = kUserTime; i < kUserTime + kTimes; ++i) {
    uint64_t part = 0;
    if (absl::SimpleAtoi(fields[i], &part)) ticks += part;
  }
  activity.computed = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
      static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK))));
  activity.kernel = ReadSmallFile(directory + "/wchan");
  if (activity.kernel == "0") activity.kernel.clear();
  activity.traced = NumberAfter(ReadSmallFile(directory + "/status"), "TracerPid:\t") != 0;
  activity.moved = BytesMoved(pid);
  activity.transferred = SocketBytes(pid);
  return activity;
}

bool WasBusy(const RankActivity& before, const RankActivity& now, Duration apart) {
  if (apart <= Duration::zero()) return false;
  const double seconds = std::chrono::duration<double>(apart).count();
  return (now.computed - before.computed) * kPartAtWork > apart ||
         Growth(before.transferred, now.transferred) > seconds * kMovedAtWork ||
         Growth(before.moved, now.moved) > seconds * kMovedAtWork;
}

}  // namespace hlaunch
