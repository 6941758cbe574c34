// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/host_memory.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/workers/process/descendants.h"

namespace hlaunch {
namespace {

// A waiting fork has page tables and the pages that it has written to: 3 to 5 MiB with torch.
constexpr int64_t kForOneFork = int64_t{32} << 20;
constexpr int64_t kLeftOver = 20;  // A twentieth of the memory is not for them.

}  // namespace

HostMemory ReadMemory(const std::string& root) {
  HostMemory memory;
  const std::string text = ReadSmallFile(absl::StrCat(root, "/proc/meminfo"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kilobytes = 0;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &kilobytes)) continue;
    if (words[0] == "MemTotal:") memory.whole = kilobytes << 10;
    if (words[0] == "MemAvailable:") memory.available = kilobytes << 10;
  }
  return memory;
}

std::string WhyNoSpares(int forks, const HostMemory& memory) {
  if (!memory.whole || !memory.available) return "";
  if (*memory.available - forks * kForOneFork >= *memory.whole / kLeftOver) return "";
  return absl::StrCat("of the host's ", *memory.whole >> 20, " MiB of memory only ",
                      *memory.available >> 20, " MiB are free");
}

}  // namespace hlaunch
