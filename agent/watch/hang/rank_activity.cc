// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/rank_activity.h"

#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/descendants.h"

namespace hlaunch {
namespace {

constexpr uint64_t kMovedAtWork = 1 << 13;  // Bytes per second: a slow disk or line moves more.
constexpr size_t kMaxBelow = 256;
constexpr int kPartAtWork = 50;    // A fiftieth of one CPU: threads that only wake up need less.
constexpr int kPartSpinning = 10;  // A tenth: those that serve a device need less.

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

constexpr size_t kUserTime = 11, kTimes = 4;  // In stat, counted from the state field.

// The fields of stat from the state on; empty if there is no such process.
std::vector<std::string> StatFields(pid_t pid) {
  const std::string stat = ReadSmallFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(") ");
  if (name_end == stat.npos) return {};
  std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  if (fields.size() < kUserTime + kTimes || fields[0].size() != 1) return {};
  return fields;
}

Duration ComputedBy(const std::vector<std::string>& fields) {
  uint64_t ticks = 0;
  for (size_t i = kUserTime; i < kUserTime + kTimes && i < fields.size(); ++i) {
    uint64_t part = 0;
    if (absl::SimpleAtoi(fields[i], &part)) ticks += part;
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
      static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK))));
}

}  // namespace

uint64_t BytesMoved(pid_t pid) {
  const std::string io = ReadSmallFile(absl::StrCat("/proc/", pid, "/io"));
  return NumberAfter(io, "rchar: ") + NumberAfter(io, "wchar: ");
}

RankActivity ReadActivity(pid_t pid, const HostConnections& connections) {
  RankActivity activity;
  const std::string directory = absl::StrCat("/proc/", pid);
  const std::vector<std::string> fields = StatFields(pid);
  if (fields.empty()) return activity;
  activity.state = fields[0][0];
  activity.computed = ComputedBy(fields);
  activity.kernel = ReadSmallFile(directory + "/wchan");
  if (activity.kernel == "0") activity.kernel.clear();
  activity.traced = NumberAfter(ReadSmallFile(directory + "/status"), "TracerPid:\t") != 0;
  activity.moved = BytesMoved(pid);
  SocketUse sockets = connections.Of({pid});
  activity.transferred = sockets.bytes;
  activity.addresses = std::move(sockets.addresses);
  activity.unheard = std::move(sockets.unheard);
  return activity;
}

std::vector<pid_t> ProcessesBelow(pid_t pid) {
  std::vector<pid_t> below;
  std::vector<pid_t> next = {pid};
  while (!next.empty()) {
    const std::string tasks = absl::StrCat("/proc/", next.back(), "/task");
    next.pop_back();
    std::error_code error;
    for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
         task.increment(error)) {
      const std::string children = ReadSmallFile(task->path().string() + "/children");
      for (const absl::string_view word : absl::StrSplit(children, ' ', absl::SkipEmpty())) {
        pid_t child = 0;
        if (!absl::SimpleAtoi(word, &child)) continue;
        if (below.size() >= kMaxBelow) return below;
        below.push_back(child);
        next.push_back(child);
      }
    }
  }
  return below;
}

RankActivity ReadActivityOf(const std::vector<pid_t>& pids, const HostConnections& connections) {
  RankActivity sum;
  for (const pid_t pid : pids) {
    sum.computed += ComputedBy(StatFields(pid));
    sum.moved += BytesMoved(pid);
  }
  sum.transferred = connections.Of(pids).bytes;
  return sum;
}

bool WasBusy(const RankActivity& before, const RankActivity& now, Duration apart) {
  return MovedMuch(before, now, apart) ||
         (apart > Duration::zero() && (now.computed - before.computed) * kPartAtWork > apart);
}

bool MovedMuch(const RankActivity& before, const RankActivity& now, Duration apart) {
  if (apart <= Duration::zero()) return false;
  const double seconds = std::chrono::duration<double>(apart).count();
  return Growth(before.transferred, now.transferred) > seconds * kMovedAtWork ||
         Growth(before.moved, now.moved) > seconds * kMovedAtWork;
}

bool Spun(const RankActivity& before, const RankActivity& now, Duration apart) {
  if (apart <= Duration::zero()) return false;
  const bool would = before.state == 'R' && now.state == 'R';  // Others may leave it little.
  return would || (now.computed - before.computed) * kPartSpinning > apart;
}

bool BytesFlowed(const RankActivity& before, const RankActivity& now, Duration apart) {
  return apart > Duration::zero() &&
         Growth(before.transferred, now.transferred) >
             std::chrono::duration<double>(apart).count() * kMovedAtWork;
}

}  // namespace hlaunch
