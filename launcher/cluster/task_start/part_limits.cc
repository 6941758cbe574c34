// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/part_limits.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/workers/process/descendants.h"
#include "launcher/cluster/task_start/own_group.h"

namespace hlaunch {
namespace {

constexpr char kMount[] = "/sys/fs/cgroup";
constexpr uint64_t kCpuPeriod = 100'000;  // Microseconds.
// Version 1 shows "unlimited" as a number of this size or more, rounded to pages.
constexpr uint64_t kUnlimitedBytes = uint64_t{1} << 60;

// One kind of limit, with its file in both versions of control groups.
struct Row {
  const char* name;  // The name in hlaunchd.conf.
  std::optional<uint64_t> PartLimits::*limit;
  const char* property;  // systemd's name; one of our units is `scale` of systemd's.
  uint64_t scale;
  const char* controller;
  const char* file;      // In version 2.
  const char* old_file;  // In version 1.
};
constexpr Row kRows[] = {
    {"memory-max", &PartLimits::memory_max, "MemoryMax", 1, "memory", "memory.max",
     "memory.limit_in_bytes"},
    {"tasks-max", &PartLimits::tasks_max, "TasksMax", 1, "pids", "pids.max", "pids.max"},
    // 1 % of a second in microseconds.
    {"cpu-quota", &PartLimits::cpu_quota, "CPUQuotaPerSecUSec", 10'000, "cpu", "cpu.max",
     "cpu.cfs_quota_us"}};

// The group of this process in the hierarchy that has a controller.
struct Group {
  std::string folder;
  std::string path;  // The path in /proc/self/cgroup.
  bool unified = false;
};

std::optional<Group> FindGroup(const std::string& controller) {
  std::optional<Group> unified;
  const std::string all = ReadSmallFile("/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(all, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
    if (std::count(names.begin(), names.end(), controller) > 0) {
      return Group{absl::StrCat(kMount, "/", controller, parts[2]), parts[2], false};
    }
    if (parts[0] == "0") unified = Group{absl::StrCat(kMount, parts[2]), parts[2], true};
  }
  return unified;
}

bool IsLimited(const std::string& file) {
  const std::string text(absl::StripAsciiWhitespace(ReadSmallFile(file)));
  if (text.empty() || absl::StartsWith(text, "max") || absl::StartsWith(text, "-1")) return false;
  uint64_t number = 0;
  return !absl::SimpleAtoi(text, &number) || number < kUnlimitedBytes;
}

// Returns true if the scope that systemd has made has this limit.
bool IsLimitedBySystemd(const Row& row, const std::string& scope) {
  const std::optional<Group> group = FindGroup(row.controller);
  if (!group || !absl::StrContains(group->path, scope)) return false;
  return IsLimited(absl::StrCat(group->folder, "/", group->unified ? row.file : row.old_file));
}

std::string TextOf(const Row& row, uint64_t value, bool unified) {
  if (std::string(row.controller) != "cpu") return absl::StrCat(value);
  const std::string quota = absl::StrCat(value * kCpuPeriod / 100);
  return unified ? absl::StrCat(quota, " ", kCpuPeriod) : quota;
}

bool LimitUnified(const Row& row, uint64_t job, uint64_t value) {
  for (const char* folder : {"", "/hlaunch"}) {
    WriteGroupFile(absl::StrCat(kMount, folder, "/cgroup.subtree_control"),
                   absl::StrCat("+", row.controller));
  }
  return WriteGroupFile(absl::StrCat(OwnGroup(kMount, job), "/", row.file),
                        TextOf(row, value, true));
}

bool LimitOld(const Row& row, uint64_t job, uint64_t value) {
  const std::string mount = absl::StrCat(kMount, "/", row.controller);
  const std::string group = OwnGroup(mount, job);
  ::mkdir(absl::StrCat(mount, "/hlaunch").c_str(), 0755);
  ::mkdir(group.c_str(), 0755);
  return WriteGroupFile(absl::StrCat(group, "/", row.old_file), TextOf(row, value, false)) &&
         WriteGroupFile(absl::StrCat(group, "/cgroup.procs"), "0");
}

}  // namespace

std::vector<std::string> ScopeProperties(const PartLimits& limits) {
  std::vector<std::string> words;
  for (const Row& row : kRows) {
    if (const auto& limit = limits.*row.limit; limit.has_value()) {
      words.insert(words.end(), {row.property, "t", absl::StrCat(*limit * row.scale)});
    }
  }
  return words;
}

absl::Status HoldToLimits(uint64_t job, const std::string& scope, const PartLimits& limits) {
  for (const Row& row : kRows) {
    const std::optional<uint64_t>& limit = limits.*row.limit;
    if (!limit.has_value() || IsLimitedBySystemd(row, scope)) continue;
    const std::optional<Group> group = FindGroup(row.controller);
    errno = ENOENT;
    const bool held =
        group && (group->unified ? LimitUnified(row, job, *limit) : LimitOld(row, job, *limit));
    if (held) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("a part of a job cannot be held to ", row.name,
                     " of hlaunchd.conf: no control group of its own has the controller ",
                     row.controller, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

bool RemoveLimits(uint64_t job) {
  bool gone = true;
  for (const Row& row : kRows) {
    const std::string group = OwnGroup(absl::StrCat(kMount, "/", row.controller), job);
    gone = (::rmdir(group.c_str()) == 0 || errno != EBUSY) && gone;
  }
  return gone;
}

}  // namespace hlaunch
