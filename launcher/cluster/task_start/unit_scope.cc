// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/unit_scope.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/tool_run.h"
#include "launcher/cluster/task_start/own_group.h"
#include "proto/cluster/job_id.h"

namespace hlaunch {
namespace {

// This exists if systemd runs; see sd_booted(3).
constexpr char kSystemdRuns[] = "/run/systemd/system";
// The unified hierarchy, alone or beside the hierarchies of version 1.
constexpr const char* kMounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
constexpr int kStepMs = 5;

bool IsUnified(const std::string& mount) {
  return ::access(absl::StrCat(mount, "/cgroup.controllers").c_str(), F_OK) == 0;
}

bool AwaitScope(uint64_t job, Instant until) {
  // Any hierarchy counts: systemd may still use those of version 1.
  while (!absl::StrContains(ReadSmallFile("/proc/self/cgroup"), ScopeName(job))) {
    if (MonotonicClock().Now() >= until) return false;
    ::poll(nullptr, 0, kStepMs);
  }
  return true;
}

std::string EnterOwnGroup(uint64_t job) {
  for (const char* mount : kMounts) {
    if (!IsUnified(mount)) continue;
    const std::string group = OwnGroup(mount, job);
    ::mkdir(absl::StrCat(mount, "/hlaunch").c_str(), 0755);
    ::mkdir(group.c_str(), 0755);
    if (WriteGroupFile(absl::StrCat(group, "/cgroup.procs"), "0")) return group;
    ::rmdir(group.c_str());
  }
  return "";
}

}  // namespace

std::string ScopeName(uint64_t job) { return absl::StrCat(ClusterJobId(job), ".scope"); }

std::vector<std::string> ScopeCommand(uint64_t job, pid_t pid, const PartLimits& limits) {
  constexpr size_t kOwn = 5;  // How many properties stand below.
  const std::vector<std::string> limiting = ScopeProperties(limits);
  std::vector<std::string> words = {"busctl",
                                    "--system",
                                    "--quiet",
                                    "call",
                                    "org.freedesktop.systemd1",
                                    "/org/freedesktop/systemd1",
                                    "org.freedesktop.systemd1.Manager",
                                    "StartTransientUnit",
                                    "ssa(sv)a(sa(sv))",
                                    ScopeName(job),
                                    "fail",
                                    absl::StrCat(kOwn + limiting.size() / 3),
                                    "PIDs",
                                    "au",
                                    "1",
                                    absl::StrCat(pid),
                                    "Slice",
                                    "s",
                                    "hlaunch.slice",
                                    "Delegate",
                                    "b",
                                    "true",
                                    "CollectMode",
                                    "s",
                                    "inactive-or-failed",
                                    "Description",
                                    "s",
                                    absl::StrCat("Part of hlaunch's job ", job)};
  words.insert(words.end(), limiting.begin(), limiting.end());
  words.emplace_back("0");  // No auxiliary units.
  return words;
}

std::string EnterScope(uint64_t job, const PartLimits& limits, Duration patience) {
  const Instant until = MonotonicClock().Now() + patience;
  if (::access(kSystemdRuns, F_OK) == 0) {
    const ToolAnswer asked = RunTool(ScopeCommand(job, ::getpid(), limits), patience);
    if (asked.exit_code == 0 && AwaitScope(job, until)) return ScopeName(job);
  }
  return EnterOwnGroup(job);
}

bool KillScope(uint64_t job) {
  bool killed = false;
  for (const char* mount : kMounts) {
    for (const std::string& group :
         {absl::StrCat(mount, "/hlaunch.slice/", ScopeName(job)), OwnGroup(mount, job)}) {
      killed = WriteGroupFile(absl::StrCat(group, "/cgroup.kill"), "1") || killed;
    }
  }
  return killed;
}

bool RemoveScope(uint64_t job) {
  bool gone = RemoveLimits(job);
  for (const char* mount : kMounts) {
    gone = (::rmdir(OwnGroup(mount, job).c_str()) == 0 || errno != EBUSY) && gone;
  }
  return gone;
}

}  // namespace hlaunch
