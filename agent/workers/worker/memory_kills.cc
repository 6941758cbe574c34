// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/memory_kills.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

// Version 1 says "no limit" with the largest multiple of a page.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

std::string ReadFile(const std::string& path) { return ReadWholeFile(path).value_or(""); }

std::optional<uint64_t> Number(absl::string_view text) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// Returns the number from the line "name number".
std::optional<uint64_t> Counter(const std::string& content, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(content, '\n')) {
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ")) return Number(line);
  }
  return std::nullopt;
}

// The cgroup that accounts for this process' memory.
struct Place {
  std::string mount;  // The mount point that `path` is relative to; empty if there is none.
  std::string path;   // "/a/b", or "/" as a container sees it.
  bool v2 = false;
};

Place FindPlace(const std::string& root) {
  Place unified;
  for (const absl::string_view line :
       absl::StrSplit(ReadFile(root + "/proc/self/cgroup"), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) {
      return {root + "/sys/fs/cgroup/memory", parts[2], false};
    }
    if (parts[0] == "0") unified = {root + "/sys/fs/cgroup", parts[2], true};
  }
  return unified;
}

void Tighten(std::optional<uint64_t> limit, std::optional<uint64_t>& tightest) {
  if (limit && *limit < kNoLimit) tightest = std::min(limit, tightest ? tightest : limit);
}

MemoryKills Read(const std::string& root, bool with_limits) {
  MemoryKills kills;
  kills.host = Counter(ReadFile(root + "/proc/vmstat"), "oom_kill");
  const Place place = FindPlace(root);
  if (place.mount.empty()) return kills;
  for (std::string path = place.path;; path = path.substr(0, path.rfind('/'))) {
    if (path == "/") path.clear();
    const std::string folder = place.mount + path;
    if (!kills.cgroup) {
      kills.cgroup = Counter(
          ReadFile(folder + (place.v2 ? "/memory.events" : "/memory.oom_control")), "oom_kill");
    }
    if (with_limits) {
      const std::string limit =
          ReadFile(folder + (place.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
      Tighten(Number(limit), kills.limit_bytes);
    }
    if (path.empty() || (kills.cgroup && !with_limits)) return kills;
  }
}

}  // namespace

MemoryKills CountMemoryKills(const std::string& root) { return Read(root, false); }

MemoryKills ReadMemoryKills(const std::string& root) { return Read(root, true); }

KillVerdict ExplainKill(const MemoryKills& before, const MemoryKills& after) {
  const auto grew = [](std::optional<uint64_t> b, std::optional<uint64_t> a) {
    return a && b && *a > *b;
  };
  if (grew(before.cgroup, after.cgroup)) {
    const std::string limit =
        after.limit_bytes ? absl::StrFormat("the cgroup's limit is %.1f GiB",
                                            static_cast<double>(*after.limit_bytes) / (1 << 30))
                          : "in its cgroup";
    return {true, absl::StrCat("the kernel killed it for lack of memory (", limit, ")")};
  }
  if (grew(before.host, after.host)) {
    return {true, "the kernel has killed for lack of memory on this host meanwhile"};
  }
  if (before.host || before.cgroup) {
    return {false, "sent from outside, neither by hlaunch nor by the kernel for lack of memory"};
  }
  return {false, "sent from outside, not by hlaunch"};
}

}  // namespace hlaunch
