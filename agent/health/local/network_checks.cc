// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/health/local/machine_checks.h"

namespace hlaunch {
namespace {

constexpr int64_t kManyErrors = 1000;
constexpr int64_t kErrorsPerPacket = 1000;  // One error in this many packets is too much.

int64_t ReadCountOrZero(const DeviceFiles& files, const std::string& path) {
  int64_t count = 0;
  return absl::SimpleAtoi(files.Read(path), &count) ? count : 0;
}

// The word behind the number in a port's `state`, such as "4: ACTIVE".
std::string Word(const std::string& state) {
  const size_t colon = state.find(": ");
  return colon == std::string::npos ? state : state.substr(colon + 2);
}

}  // namespace

CheckResult CheckNetwork(const DeviceFiles& files) {
  CheckResult result{"network", {}, "Gbit/s", CheckState::kOk, "", ""};
  std::vector<std::string> up, sick;
  int cards = 0;
  double speed = 0;
  constexpr char kFolder[] = "/sys/class/net";
  for (const std::string& name : files.List(kFolder)) {
    const std::string folder = absl::StrCat(kFolder, "/", name, "/");
    if (!files.Exists(folder + "device")) continue;  // Loopback, bridges, container interfaces.
    ++cards;
    if (files.Read(folder + "operstate") != "up") continue;
    up.push_back(name);
    speed += std::max(0, files.ReadInt(folder + "speed", 0)) / 1000.0;
    const std::string counters = folder + "statistics/";
    const int64_t errors = ReadCountOrZero(files, counters + "rx_errors") +
                           ReadCountOrZero(files, counters + "tx_errors");
    const int64_t packets = ReadCountOrZero(files, counters + "rx_packets") +
                            ReadCountOrZero(files, counters + "tx_packets");
    if (errors >= kManyErrors && errors * kErrorsPerPacket >= packets) {
      sick.push_back(absl::StrCat(name, ": ", errors, " errors in ", packets, " packets"));
    }
  }
  if (cards == 0) {
    result.state = CheckState::kUnknown;
    result.reason = "the kernel shows no network card here";
    return result;
  }
  if (speed > 0) result.value = speed;
  result.reason = absl::StrCat("up: ", up.empty() ? "none" : absl::StrJoin(up, ", "));
  if (up.empty()) {
    result.state = CheckState::kWarn;
    result.advice = "no network card has a link: look after the cable";
  } else if (!sick.empty()) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrJoin(sick, ", ");
    result.advice = "look after cable and switch port";
  }
  return result;
}

CheckResult CheckLinkLosses(const DeviceFiles& files) {
  CheckResult result{"link losses", {}, "", CheckState::kUnknown, "", ""};
  std::vector<std::string> lost;
  const auto count = [&](const std::string& name, const std::string& path) {
    if (!files.Exists(path)) return;
    const int64_t losses = ReadCountOrZero(files, path);
    result.state = CheckState::kOk;
    result.value = result.value.value_or(0) + static_cast<double>(losses);
    if (losses > 0) lost.push_back(absl::StrCat(name, ": ", losses));
  };
  constexpr char kNet[] = "/sys/class/net";
  for (const std::string& name : files.List(kNet)) {
    const std::string folder = absl::StrCat(kNet, "/", name, "/");
    if (files.Exists(folder + "device")) count(name, folder + "carrier_down_count");
  }
  constexpr char kFabric[] = "/sys/class/infiniband";
  for (const std::string& device : files.List(kFabric)) {
    for (const std::string& port : files.List(absl::StrCat(kFabric, "/", device, "/ports"))) {
      count(absl::StrCat(device, "/", port),
            absl::StrCat(kFabric, "/", device, "/ports/", port, "/counters/link_downed"));
    }
  }
  if (result.state == CheckState::kUnknown) {
    result.reason = "the kernel counts none here";
  } else if (!lost.empty()) {
    result.reason = absl::StrCat("since boot: ", absl::StrJoin(lost, ", "));
  }
  return result;
}

CheckResult CheckFabric(const DeviceFiles& files) {
  CheckResult result{"fabric", {}, "Gbit/s", CheckState::kOk, "", ""};
  constexpr char kFolder[] = "/sys/class/infiniband";
  std::vector<std::string> active, trouble;
  int ports = 0;
  int64_t downed = 0;
  double rate = 0;
  for (const std::string& device : files.List(kFolder)) {
    for (const std::string& number : files.List(absl::StrCat(kFolder, "/", device, "/ports"))) {
      const std::string port = absl::StrCat(kFolder, "/", device, "/ports/", number, "/");
      const std::string name = absl::StrCat(device, "/", number);
      const std::string state = Word(files.Read(port + "state"));
      const std::string physical = Word(files.Read(port + "phys_state"));
      ++ports;
      downed += ReadCountOrZero(files, port + "counters/link_downed");
      if (state == "ACTIVE") {
        double gbit = 0;
        const std::string text = files.Read(port + "rate");  // "400 Gb/sec (4X NDR)"
        if (absl::SimpleAtod(text.substr(0, text.find(' ')), &gbit)) rate += gbit;
        active.push_back(name);
      } else if (state == "INIT" || state == "ARMED" || physical == "LinkErrorRecovery") {
        // A cable is plugged in. A port that is down or polls may have none, and may not be needed.
        trouble.push_back(absl::StrCat(name, " is ", state, ", ", physical));
      }
    }
  }
  if (ports == 0) {
    result.reason = "no InfiniBand or RoCE port";
    return result;
  }
  result.value = rate;
  result.reason =
      absl::StrCat(active.size(), " of ", ports, " ports are active",
                   downed > 0 ? absl::StrCat(", links went down ", downed, " times") : "");
  if (!trouble.empty()) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrJoin(trouble, "; ");
    result.advice = "a link without a subnet manager, or a bad cable: see ibstat";
  } else if (active.empty()) {
    result.state = CheckState::kWarn;
    result.advice = "no port is active: see ibstat, or rdma link";
  }
  return result;
}

}  // namespace hlaunch
