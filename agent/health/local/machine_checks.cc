// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/machine_checks.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/health/local/kernel_log.h"
#include "agent/machine/devices/find_devices.h"
#include "agent/machine/devices/pci_function.h"

namespace hlaunch {
namespace {

constexpr char kPciFolder[] = "/sys/bus/pci/devices";
constexpr size_t kNamed = 3;  // The number of names in a list.
constexpr int kSeveral = 4;   // This many cards of a kind define what is normal.
constexpr int64_t kManyCorrected = 1000;
constexpr double kLittleMemory = 0.05;  // Part of all memory.

// "a, b, c and 5 more"
std::string Some(const std::vector<std::string>& what) {
  const size_t shown = std::min(what.size(), kNamed);
  const size_t more = what.size() - shown;
  return absl::StrCat(
      absl::StrJoin(what.begin(), what.begin() + static_cast<ptrdiff_t>(shown), ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string DeviceName(const Device& device) {
  const std::string id = device.id >= 0 ? absl::StrCat(" ", device.id) : "";
  return absl::StrCat(
      KindName(device.kind), id,
      device.pci_address.empty() ? "" : absl::StrCat(" (", device.pci_address, ")"));
}

// A card that fell off its bus reads as all ones. A sleeping card is not read, because reading
// wakes it.
bool IsOffTheBus(const DeviceFiles& files, const std::string& address) {
  if (address.empty()) return false;
  const std::string folder = absl::StrCat(kPciFolder, "/", address);
  if (files.Read(folder + "/power/runtime_status") == "suspended") return false;
  return absl::StartsWith(files.Read(folder + "/config"), "\xff\xff\xff\xff");
}

int64_t ReadCount(const DeviceFiles& files, const std::string& path) {
  int64_t count = 0;
  return absl::SimpleAtoi(files.Read(path), &count) ? count : -1;
}

// Accelerators and network cards: display controllers that compute, network controllers and
// processing accelerators.
std::vector<PciFunction> CardsOf(const DeviceFiles& files) {
  std::vector<PciFunction> cards;
  for (const std::string& name : files.List(kPciFolder)) {
    const int kind = files.ReadInt(absl::StrCat(kPciFolder, "/", name, "/class"), 0) >> 8;
    const bool network = (kind >> 8) == 0x02;
    if (!network && kind != 0x0302 && kind != 0x0380 && kind != 0x1200 && kind != 0x0300) continue;
    PciFunction function = ReadPci(files, name);
    if (!function.address.empty()) cards.push_back(std::move(function));
  }
  return cards;
}

struct Link {
  std::string address;
  int width = 0;
  int possible = 0;  // By card and slot together.
  int peers_at_best = 0;
  int best_of_kind = 0;
  std::string speed;
};

// The lanes of the port above the card; 0 if unknown.
int SlotWidth(const DeviceFiles& files, const std::string& address) {
  const std::vector<std::string> path =
      absl::StrSplit(files.Link(absl::StrCat(kPciFolder, "/", address)), '/');
  if (path.size() < 2) return 0;
  const std::string above = NormalPciAddress(path[path.size() - 2]);
  if (above.empty()) return 0;
  return files.ReadInt(absl::StrCat(kPciFolder, "/", above, "/max_link_width"), 0);
}

std::vector<Link> ReadLinks(const DeviceFiles& files) {
  std::vector<Link> links;
  std::map<std::pair<int, int>, std::vector<size_t>> kinds;
  for (const PciFunction& card : CardsOf(files)) {
    const std::string folder = absl::StrCat(kPciFolder, "/", card.address);
    Link link{card.address,
              files.ReadInt(folder + "/current_link_width", 0),
              files.ReadInt(folder + "/max_link_width", 0),
              0,
              0,
              files.Read(folder + "/current_link_speed")};
    // 255 and 63 mean that there is no link or no such register, as in virtual machines.
    if (link.width < 1 || link.width > 32 || link.possible < 1 || link.possible > 32) continue;
    const int slot = SlotWidth(files, card.address);
    if (slot > 0) link.possible = std::min(link.possible, slot);
    kinds[{card.vendor, card.device}].push_back(links.size());
    links.push_back(std::move(link));
  }
  for (const auto& [kind, indexes] : kinds) {
    int best = 0;
    for (const size_t i : indexes) best = std::max(best, links[i].width);
    const auto at_best = std::count_if(indexes.begin(), indexes.end(),
                                       [&](size_t i) { return links[i].width == best; });
    for (const size_t i : indexes) {
      links[i].best_of_kind = best;
      links[i].peers_at_best = static_cast<int>(at_best);
    }
  }
  return links;
}

}  // namespace

CheckResult CheckDevices(const DeviceFiles& files, const DevicesWanted& wanted) {
  CheckResult result{"devices", {}, "", CheckState::kOk, "", ""};
  const std::vector<Device> devices = FindDevices(files);
  std::vector<std::string> lost, faulty, held;
  std::set<std::string> models;
  int working = 0;
  for (const Device& device : devices) {
    if (wanted.kind && device.kind != *wanted.kind) continue;
    models.insert(device.model);
    if (IsOffTheBus(files, device.pci_address)) {
      lost.push_back(DeviceName(device));
    } else if (!device.fault.empty()) {
      faulty.push_back(absl::StrCat(DeviceName(device), ": ", device.fault));
    } else {
      ++working;
      if (!wanted.in_use && !device.holders.empty() && IsExclusive(device.kind)) {
        held.push_back(absl::StrCat(DeviceName(device), " by ", device.holders[0].command, " (pid ",
                                    device.holders[0].pid, ")"));
      }
    }
  }
  result.value = working;
  result.reason = models.empty() ? "no accelerators" : absl::StrJoin(models, ", ");
  if (!held.empty()) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrCat("held: ", Some(held));
    result.advice = "end that process if no job owns it any more: hlaunch devices shows all";
  }
  if (!faulty.empty()) {
    // Only a warning: a container may show just some of the host's devices.
    result.state = CheckState::kWarn;
    result.reason = Some(faulty);
    result.advice = "hlaunch devices shows all; a reset or a reboot may bring it back";
  }
  if (working < wanted.count) {
    result.state = CheckState::kFail;
    const std::string kind =
        wanted.kind ? absl::StrCat(KindName(*wanted.kind), " devices") : "devices";
    result.reason = absl::StrCat(working, " of the ", wanted.count, " ", kind, " asked for work",
                                 faulty.empty() ? "" : absl::StrCat("; ", Some(faulty)));
    result.advice = "hlaunch devices shows what the kernel sees; check driver and container";
  }
  if (!lost.empty()) {
    result.state = CheckState::kFail;
    result.reason = absl::StrCat("fell off the PCI bus: ", Some(lost));
    result.advice = "reboot the node; if it happens again, have the card replaced";
  }
  return result;
}

CheckResult CheckPcieLinks(const DeviceFiles& files) {
  CheckResult result{"pcie links", {}, "lanes", CheckState::kOk, "", ""};
  const std::vector<Link> links = ReadLinks(files);
  if (links.empty()) {
    result.state = CheckState::kUnknown;
    result.reason = "the kernel shows no link of an accelerator or network card";
    return result;
  }
  std::vector<std::string> narrow, odd;
  std::map<std::string, int> speeds;
  int lanes = 0;
  for (const Link& link : links) {
    lanes += link.width;
    ++speeds[absl::StrCat("x", link.width, " ", link.speed)];
    const bool others_agree = link.peers_at_best >= kSeveral - 1;
    if (link.width < link.best_of_kind && others_agree) {
      odd.push_back(absl::StrCat(link.address, " has x", link.width, ", its likes have x",
                                 link.best_of_kind));
    } else if (link.width * 4 <= link.possible && link.width == link.best_of_kind) {
      narrow.push_back(absl::StrCat(link.address, " has x", link.width, " of x", link.possible));
    }
  }
  result.value = lanes;
  std::vector<std::string> words;
  for (const auto& [speed, count] : speeds) words.push_back(absl::StrCat(count, " at ", speed));
  result.reason = Some(words);
  if (odd.empty() && narrow.empty()) return result;
  result.state = odd.empty() ? CheckState::kWarn : CheckState::kFail;
  result.reason = Some(odd.empty() ? narrow : odd);
  result.advice = "reseat the card or its riser, then reboot";
  return result;
}

CheckResult CheckPcieErrors(const DeviceFiles& files) {
  CheckResult result{"pcie errors", {}, "", CheckState::kOk, "", ""};
  std::vector<std::string> bad;
  int64_t uncorrected = 0;
  int64_t corrected = 0;
  bool seen = false;
  const auto total = [&](const std::string& path) -> int64_t {
    for (absl::string_view line : absl::StrSplit(files.Read(path), '\n')) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
      int64_t count = 0;
      if (words.size() == 2 && absl::StartsWith(words[0], "TOTAL_ERR") &&
          absl::SimpleAtoi(words[1], &count)) {
        seen = true;
        return count;
      }
    }
    return 0;
  };
  for (const PciFunction& card : CardsOf(files)) {
    const std::string folder = absl::StrCat(kPciFolder, "/", card.address, "/aer_dev_");
    const int64_t here = total(folder + "fatal") + total(folder + "nonfatal");
    corrected += total(folder + "correctable");
    uncorrected += here;
    if (here > 0) bad.push_back(absl::StrCat(card.address, ": ", here));
  }
  if (!seen) {
    result.state = CheckState::kUnknown;
    result.reason = "the kernel counts none here";
    return result;
  }
  result.value = static_cast<double>(uncorrected);
  if (corrected > 0) result.reason = absl::StrCat(corrected, " more were corrected");
  if (bad.empty()) return result;
  result.state = CheckState::kWarn;
  result.reason = absl::StrCat("not corrected since boot: ", Some(bad));
  result.advice = "the card or what it is plugged into is failing; see dmesg for AER";
  return result;
}

CheckResult CheckMemoryErrors(const DeviceFiles& files) {
  CheckResult result{"memory errors", {}, "", CheckState::kOk, "", ""};
  constexpr char kFolder[] = "/sys/devices/system/edac/mc";
  int64_t corrected = -1;
  std::vector<std::string> lost;
  for (const std::string& name : files.List(kFolder)) {
    if (NumberAfter(name, "mc") < 0) continue;
    const int64_t here = ReadCount(files, absl::StrCat(kFolder, "/", name, "/ce_count"));
    const int64_t uncorrected = ReadCount(files, absl::StrCat(kFolder, "/", name, "/ue_count"));
    if (here < 0 && uncorrected < 0) continue;
    corrected = std::max<int64_t>(corrected, 0) + std::max<int64_t>(here, 0);
    if (uncorrected > 0) lost.push_back(absl::StrCat(name, ": ", uncorrected));
  }
  if (corrected < 0) {
    result.state = CheckState::kUnknown;
    result.reason = "the kernel counts none here";
    return result;
  }
  result.value = static_cast<double>(corrected);
  result.reason = "corrected since boot";
  if (corrected >= kManyCorrected) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrCat(corrected, " corrected since boot: a module is about to fail");
    result.advice = "have the memory module replaced";
  }
  if (!lost.empty()) {
    result.state = CheckState::kFail;
    result.reason = absl::StrCat("not corrected since boot: ", Some(lost));
    result.advice = "have the memory module replaced; what was computed here may be wrong";
  }
  return result;
}

CheckResult CheckHeat(const DeviceFiles& files) {
  CheckResult result{"heat", {}, "degC", CheckState::kOk, "", ""};
  constexpr char kFolder[] = "/sys/class/hwmon";
  std::vector<std::string> critical;
  for (const std::string& chip : files.List(kFolder)) {
    const std::string folder = absl::StrCat(kFolder, "/", chip, "/");
    for (int sensor = 1; sensor <= 32; ++sensor) {
      const std::string name = absl::StrCat(folder, "temp", sensor);
      const int milli = files.ReadInt(name + "_input", 0);
      if (milli == 0 && !files.Exists(name + "_input")) break;
      if (milli < 1000 || milli > 200000) continue;  // Nothing is connected to the sensor.
      const double degrees = milli / 1000.0;
      if (!result.value || degrees > *result.value) {
        result.value = degrees;
        result.reason = files.Read(folder + "name");
      }
      const int limit = files.ReadInt(name + "_crit", 0);
      if (limit < 40000 || limit > 150000 || milli < limit) continue;
      critical.push_back(absl::StrCat(files.Read(folder + "name"), " has ", degrees, " of ",
                                      limit / 1000, " degC"));
    }
  }
  if (!result.value) {
    result.state = CheckState::kUnknown;
    result.reason = "the kernel shows no sensor";
  } else if (!critical.empty()) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrCat("at the critical limit: ", Some(critical));
    result.advice = "look after fans and air flow: the device slows down, or switches itself off";
  }
  return result;
}

std::optional<int64_t> ThrottleCount(const DeviceFiles& files) {
  constexpr char kFolder[] = "/sys/devices/system/cpu";
  std::optional<int64_t> total;
  for (const std::string& name : files.List(kFolder)) {
    if (NumberAfter(name, "cpu") < 0) continue;
    for (const char* of : {"core", "package"}) {
      const int64_t count = ReadCount(
          files, absl::StrCat(kFolder, "/", name, "/thermal_throttle/", of, "_throttle_count"));
      if (count >= 0) total = total.value_or(0) + count;
    }
  }
  return total;
}

CheckResult CheckKernelLog(const DeviceFiles& files) {
  CheckResult result{"kernel log", {}, "", CheckState::kOk, "", ""};
  const absl::StatusOr<std::string> log = ReadKernelLog(files);
  const std::string uptime = files.Read("/proc/uptime");
  double seconds = 0;
  if (!log.ok() || !absl::SimpleAtod(uptime.substr(0, uptime.find(' ')), &seconds)) {
    result.state = CheckState::kUnknown;
    result.reason = log.ok() ? "/proc/uptime is missing" : std::string(log.status().message());
    return result;
  }
  constexpr Duration kRecent = std::chrono::hours(1);
  constexpr Duration kJustNow = std::chrono::minutes(10);
  const auto now = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  std::map<std::string, int> kinds;
  const KernelFault* shown = nullptr;
  int recent = 0;
  int older = 0;
  const std::vector<KernelFault> faults = FindKernelFaults(*log);
  for (const KernelFault& fault : faults) {
    if (now - fault.since_boot > kRecent) {
      ++older;
      continue;
    }
    ++recent;
    ++kinds[fault.what];
    const bool fatal =
        fault.weight == KernelFault::Weight::kFatal && now - fault.since_boot <= kJustNow;
    if (fatal) result.state = CheckState::kFail;
    if (fatal || shown == nullptr || result.state != CheckState::kFail) shown = &fault;
  }
  result.value = static_cast<double>(faults.size());
  result.reason = older > 0 ? absl::StrCat("none for an hour, ", older, " before") : "";
  if (recent == 0) return result;
  std::vector<std::string> words;
  for (const auto& [what, count] : kinds) {
    words.push_back(count == 1 ? what : absl::StrCat(count, " × ", what));
  }
  result.state = std::max(result.state, CheckState::kWarn);
  result.reason = absl::StrCat(Some(words), " within the hour: ", shown->line);
  result.advice = "see dmesg; a device that is lost needs a reset or a reboot";
  return result;
}

CheckResult CheckMemory(const DeviceFiles& files) {
  CheckResult result{"memory", {}, "GiB", CheckState::kOk, "", ""};
  int64_t total = 0;
  int64_t available = 0;
  for (absl::string_view line : absl::StrSplit(files.Read("/proc/meminfo"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 2) continue;
    if (words[0] == "MemTotal:") (void)absl::SimpleAtoi(words[1], &total);
    if (words[0] == "MemAvailable:") (void)absl::SimpleAtoi(words[1], &available);
  }
  if (total <= 0) {
    result.state = CheckState::kUnknown;
    result.reason = "/proc/meminfo says nothing";
    return result;
  }
  constexpr double kKibInGib = 1 << 20;
  result.value = static_cast<double>(available) / kKibInGib;
  result.reason =
      absl::StrFormat("of %.1f are free for programs", static_cast<double>(total) / kKibInGib);
  if (static_cast<double>(available) < kLittleMemory * static_cast<double>(total)) {
    result.state = CheckState::kWarn;
    result.advice = "see who takes the memory; left-over processes or files in /dev/shm?";
  }
  return result;
}

}  // namespace hlaunch
