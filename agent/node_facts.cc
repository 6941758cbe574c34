// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/node_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// The quota that one group's directory sets, in CPUs; 0 if none.
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

// Where the hierarchy of `controllers`, as in /proc/self/cgroup, is mounted; v2's has none. Version
// one's is named after them, usually with a link `cpu` to it.
std::string MountOf(const std::string& root, const std::string& controllers) {
  const std::string cgroup = root + "/sys/fs/cgroup";
  if (controllers.empty()) return cgroup;
  const std::string link = cgroup + "/cpu";
  return ::access(link.c_str(), F_OK) == 0 ? link : absl::StrCat(cgroup, "/", controllers);
}

// The least quota of `group` and all above it below `mount`. A container may see the host's
// path here but only its own groups at the mount: then the mount itself has the limit.
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

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// The bytes that tell two addresses of one family apart.
std::string AddressBytes(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return std::string(reinterpret_cast<const char*>(&v4->sin_addr), sizeof(v4->sin_addr));
  }
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    return std::string(reinterpret_cast<const char*>(&v6->sin6_addr), sizeof(v6->sin6_addr));
  }
  return "";
}

// Our address on the route to `literal`: connecting a datagram socket sends nothing.
std::string SourceAddress(absl::string_view literal) {
  SocketAddress to = {};
  const std::string text(literal);
  socklen_t size = 0;
  if (::inet_pton(AF_INET, text.c_str(), &to.v4.sin_addr) == 1) {
    to.any.sa_family = AF_INET;
    size = sizeof(to.v4);
  } else if (::inet_pton(AF_INET6, text.c_str(), &to.v6.sin6_addr) == 1) {
    to.any.sa_family = AF_INET6;
    size = sizeof(to.v6);
  } else {
    return "";
  }
  to.v4.sin_port = htons(9);  // sin_port and sin6_port share a place; 0 is refused by some.
  const UniqueFd socket(::socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress from = {};
  socklen_t from_size = sizeof(from);
  if (!socket.valid() || ::connect(socket.get(), &to.any, size) != 0 ||
      ::getsockname(socket.get(), &from.any, &from_size) != 0) {
    return "";
  }
  return AddressBytes(&from.any);
}

}  // namespace

std::vector<int> AllowedCpus() {
  // The kernel refuses a set smaller than its own; nobody has more than this.
  constexpr int kMaxCpus = 1 << 16;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(kMaxCpus),
                                                             [](cpu_set_t* s) { CPU_FREE(s); });
  const size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(size, set.get());
  std::vector<int> cpus;
  if (::sched_getaffinity(0, size, set.get()) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<size_t>(cpu), size, set.get())) cpus.push_back(cpu);
  }
  return cpus;
}

int PhysicalCores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    // The same line, "0,64", in both threads of a core.
    const std::string siblings = FirstLine(
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    cores.insert(siblings.empty() ? absl::StrCat("cpu", cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

int CpuQuota(const std::string& root) {
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
  return least == 0 ? 0 : std::max(1, static_cast<int>(least));
}

int UsableCores() { return UsableCores(AllowedCpus()); }

int UsableCores(const std::vector<int>& cpus, const std::string& root) {
  const int cores = std::max(1, PhysicalCores(cpus, root));
  const int quota = CpuQuota(root);
  return quota == 0 ? cores : std::min(cores, quota);
}

std::string InterfaceTowards(absl::string_view address) {
  const std::string ours = SourceAddress(address);
  ifaddrs* list = nullptr;
  if (ours.empty() || ::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && AddressBytes(entry->ifa_addr) == ours) {
      return entry->ifa_name;
    }
  }
  return "";
}

}  // namespace hlaunch
