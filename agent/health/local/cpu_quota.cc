// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/cpu_quota.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

constexpr double kLittleQuota = 0.5;  // CPUs; with less, hlaunch itself and one worker are slow.

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// The quota that one group's directory sets, in CPUs; 0 if it sets none.
double QuotaOf(const std::string& directory, bool v2) {
  double quota = 0;
  double period = 0;
  if (v2) {
    // "max 100000" or "150000 100000"
    const std::vector<std::string> words = absl::StrSplit(FirstLine(directory + "/cpu.max"), ' ');
    if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) ||
        !absl::SimpleAtod(words[1], &period)) {
      return 0;
    }
  } else if (!absl::SimpleAtod(FirstLine(directory + "/cpu.cfs_quota_us"), &quota) ||
             !absl::SimpleAtod(FirstLine(directory + "/cpu.cfs_period_us"), &period)) {
    return 0;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

// Where the hierarchy of `controllers`, as in /proc/self/cgroup, is mounted. The list is empty for
// version 2. In version 1 the folder is named after the controllers, usually with a link `cpu` to
// it.
std::string MountOf(const std::string& root, const std::string& controllers) {
  const std::string cgroup = root + "/sys/fs/cgroup";
  if (controllers.empty()) return cgroup;
  const std::string link = cgroup + "/cpu";
  return ::access(link.c_str(), F_OK) == 0 ? link : absl::StrCat(cgroup, "/", controllers);
}

// The smallest quota of `group` and all groups above it below `mount`. In a container the path may
// be the host's, while the mount shows only the container's groups; then the mount itself has the
// limit.
double LeastQuota(const std::string& mount, std::string group, bool v2) {
  double least = 0;
  while (true) {
    const double quota = QuotaOf(mount + group, v2);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (group.empty()) return least;
    const size_t parent = group.rfind('/');
    group.resize(parent == std::string::npos ? 0 : parent);
  }
}

}  // namespace

double CpusAllowed(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  double least = 0;
  for (std::string line; std::getline(groups, line);) {
    // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const bool v2 = fields[1].empty();
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (!v2 && std::find(controllers.begin(), controllers.end(), "cpu") == controllers.end()) {
      continue;
    }
    const std::string mount = MountOf(root, fields[1]);
    const double quota = LeastQuota(mount, fields[2] == "/" ? "" : fields[2], v2);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  }
  return least;
}

CheckResult CheckCpuQuota(const std::string& root) {
  CheckResult result{"cpu quota", {}, "CPUs", CheckState::kOk, "", ""};
  const double allowed = CpusAllowed(root);
  if (allowed == 0) {
    result.reason = "none";
    return result;
  }
  result.value = allowed;
  if (allowed < kLittleQuota) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrFormat("its control group allows %.0f %% of one CPU", 100 * allowed);
    result.advice =
        "raise cpu.max (podman, docker: --cpus; Kubernetes: resources.limits.cpu; "
        "systemd: CPUQuota)";
  }
  return result;
}

}  // namespace hlaunch
