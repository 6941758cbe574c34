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

#include "absl/strings/str_cat.h"
#include "agent/health/local/cpu_quota.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// The bytes in which two addresses of one family differ.
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

// Our address on the route to `literal`. Connecting a datagram socket sends nothing.
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
  to.v4.sin_port = htons(9);  // sin_port and sin6_port overlap; some systems refuse 0.
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
  // The kernel refuses a set smaller than its own; no machine has more CPUs than this.
  constexpr int kMaxCpus = 1 << 16;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(kMaxCpus),
                                                             [](cpu_set_t* s) { CPU_FREE(s); });
  const size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(size, set.get());
  std::vector<int> cpus;
  if (::sched_getaffinity(0, size, set.get()) != 0) return cpus;
  const int count = CPU_COUNT_S(size, set.get());
  for (int cpu = 0; static_cast<int>(cpus.size()) < count; ++cpu) {
    if (CPU_ISSET_S(static_cast<size_t>(cpu), size, set.get())) cpus.push_back(cpu);
  }
  return cpus;
}

int PhysicalCores(const std::vector<int>& cpus, const std::string& root) {
  const std::string threads = absl::StrCat(root, "/sys/devices/system/cpu/smt/active");
  if (FirstLine(threads) == "0") return static_cast<int>(cpus.size());
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    // Both threads of a core have the same line, "0,64".
    const std::string siblings = FirstLine(
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    cores.insert(siblings.empty() ? absl::StrCat("cpu", cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

int CpuQuota(const std::string& root) {
  const double quota = CpusAllowed(root);
  return quota == 0 ? 0 : std::max(1, static_cast<int>(quota));
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
