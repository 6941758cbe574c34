// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/kernel_log.h"

#include <sys/klog.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

using Weight = KernelFault::Weight;

constexpr int kReadAll = 3;  // SYSLOG_ACTION_READ_ALL: reads the end of the log; keeps it.
constexpr int kMaxLogBytes = 512 << 10;
constexpr size_t kMaxLine = 200;

// Xids that a program causes by itself; they say nothing about the card.
constexpr int kXidsOfPrograms[] = {13, 31, 43, 45, 68, 109};
// Xids after which the card is of no use until it is reset or replaced.
constexpr int kFatalXids[] = {48, 56, 57, 58, 62, 64, 65, 69, 73, 74, 79, 80, 81, 92, 95, 119, 120};

struct Pattern {
  const char* all_of[2];  // In lower case; the second may be empty.
  Weight weight;
  const char* what;
};

// The first pattern that matches decides.
constexpr Pattern kPatterns[] = {
    {{"out of memory: killed process", ""}, Weight::kNote, "out of memory"},
    {{"i/o error, dev", ""}, Weight::kNote, "I/O error"},
    {{"remounting filesystem read-only", ""}, Weight::kNote, "file system became read-only"},
    {{"ext4-fs error", ""}, Weight::kNote, "file system error"},
    {{"xfs (", "corruption"}, Weight::kNote, "file system error"},
    {{"nvme", "controller is down"}, Weight::kNote, "NVMe controller is down"},
    {{"nfs: server", "not responding"}, Weight::kNote, "NFS server does not respond"},
    {{"blocked for more than", "task"}, Weight::kNote, "hung task"},
    {{"soft lockup", ""}, Weight::kNote, "CPU lockup"},
    {{"hard lockup", ""}, Weight::kNote, "CPU lockup"},
    {{"[hardware error]", ""}, Weight::kNote, "hardware error"},
    {{"gpu reset begin", "amdgpu"}, Weight::kNote, "GPU reset"},
    {{"health compromised", "mlx5"}, Weight::kFatal, "network card failed"},
    {{"gpu has fallen off the bus", ""}, Weight::kFatal, "GPU has fallen off the bus"},
};

template <size_t N>
bool Contains(const int (&codes)[N], int code) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=…"
bool ReadXid(absl::string_view text, KernelFault& fault) {
  const size_t at = text.find("Xid (");
  const size_t end = at == absl::string_view::npos ? at : text.find("): ", at);
  if (end == absl::string_view::npos) return false;
  int code = 0;
  const absl::string_view rest = text.substr(end + 3);
  if (!absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")), &code)) return false;
  if (Contains(kXidsOfPrograms, code)) return false;
  fault.weight = Contains(kFatalXids, code) ? Weight::kFatal : Weight::kNote;
  fault.what = absl::StrCat("Xid ", code);
  return true;
}

// The driver reports resets in many ways. A reset that fails disables the card.
bool ReadHabana(absl::string_view lower, KernelFault& fault) {
  if (!absl::StartsWith(lower, "habanalabs") && !absl::StartsWith(lower, "accel accel")) {
    return false;
  }
  const bool lost = absl::StrContains(lower, "device is disabled") ||
                    absl::StrContains(lower, "is not usable") ||
                    (absl::StrContains(lower, "reset") && absl::StrContains(lower, "failed"));
  if (!lost && !absl::StrContains(lower, "hard-reset") && !absl::StrContains(lower, "hard reset")) {
    return false;
  }
  fault.weight = lost ? Weight::kFatal : Weight::kNote;
  fault.what = lost ? "Gaudi card is lost" : "Gaudi card was reset";
  return true;
}

bool ReadFault(absl::string_view text, KernelFault& fault) {
  if (absl::StrContains(text, "NVRM: Xid")) return ReadXid(text, fault);
  const std::string lower = absl::AsciiStrToLower(text);
  if (ReadHabana(lower, fault)) return true;
  if (absl::StartsWith(lower, "memory cgroup")) return false;  // The limit of a container.
  for (const Pattern& pattern : kPatterns) {
    if (!absl::StrContains(lower, pattern.all_of[0])) continue;
    if (!absl::StrContains(lower, pattern.all_of[1])) continue;
    fault.weight = pattern.weight;
    fault.what = pattern.what;
    return true;
  }
  return false;
}

// Removes the prefix before the text from `line`, and reads the time in it.
bool ReadTime(absl::string_view& line, Duration* since_boot) {
  if (absl::ConsumePrefix(&line, "<")) {
    const size_t open = line.find('[');
    const size_t close = line.find(']');
    double seconds = 0;
    if (open == absl::string_view::npos || close == absl::string_view::npos || close < open ||
        !absl::SimpleAtod(line.substr(open + 1, close - open - 1), &seconds)) {
      return false;
    }
    *since_boot = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    line.remove_prefix(std::min(line.size(), close + 2));
    return true;
  }
  const size_t semicolon = line.find(';');
  if (semicolon == absl::string_view::npos) return false;
  const std::vector<absl::string_view> prefix = absl::StrSplit(line.substr(0, semicolon), ',');
  int64_t microseconds = 0;
  if (prefix.size() < 4 || !absl::SimpleAtoi(prefix[2], &microseconds)) return false;
  *since_boot = std::chrono::microseconds(microseconds);
  line.remove_prefix(semicolon + 1);
  return true;
}

}  // namespace

std::vector<KernelFault> FindKernelFaults(absl::string_view log) {
  std::vector<KernelFault> faults;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    KernelFault fault;
    if (!ReadTime(line, &fault.since_boot) || !ReadFault(line, fault)) continue;
    fault.line = std::string(line.substr(0, kMaxLine));
    faults.push_back(std::move(fault));
  }
  return faults;
}

absl::StatusOr<std::string> ReadKernelLog(const DeviceFiles& files) {
  if (!files.is_this_machine()) {
    if (!files.Exists("/dev/kmsg")) return absl::NotFoundError("there is no /dev/kmsg");
    return files.Read("/dev/kmsg");
  }
  std::string log(kMaxLogBytes, '\0');
  const int length = ::klogctl(kReadAll, log.data(), kMaxLogBytes);
  if (length < 0) {
    return errno == EPERM || errno == EACCES
               ? absl::PermissionDeniedError("the kernel shows its log to root only")
               : absl::NotFoundError("the kernel shows no log");
  }
  log.resize(static_cast<size_t>(length));
  return log;
}

}  // namespace hlaunch
