// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/node_health.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/health/joint/joint_report.h"
#include "agent/machine/devices/find_devices.h"
#include "rendezvous/round/values/figures.h"

namespace hlaunch {

namespace {

// Copies what the nodes found together.
void TakeOver(const JointReport& joint, NodeHealth* health) {
  health->joined = joint.joined;
  health->peers = joint.peers;
  health->links = joint.links;
  health->note = joint.note;
  if (const auto latency = BestLatency(joint.pairs, joint.node_rank)) {
    health->figures[Figure::kLatency] = *latency;
    health->figures[Figure::kBandwidth] = *BestSpeed(joint.pairs, joint.node_rank);
  }
}

}  // namespace

NodeHealth NodeHealthOf(const std::vector<CheckResult>& results, const std::string& hardware) {
  NodeHealth health;
  health.hardware = hardware;
  int faults = 0;
  for (const CheckResult& result : results) {
    if (const auto joint = JointReportOf(result)) TakeOver(*joint, &health);
    if (result.state == CheckState::kFail && ++faults == 1) {
      health.fault = absl::StrReplaceAll(absl::StrCat(result.name, ": ", result.reason),
                                         {{"\n", " "}, {"\r", " "}});
    }
    for (size_t f = 0; f < kFigures; ++f) {
      const auto figure = static_cast<Figure>(f);
      if (result.name == RuleOf(figure).name && result.value)
        health.figures[figure] = *result.value;
    }
  }
  if (faults > 1) absl::StrAppend(&health.fault, " (and ", faults - 1, " more)");
  return health;
}

std::string HardwareName(const DeviceFiles& files, int nproc) {
  std::string processor = "processors";
  for (absl::string_view line : absl::StrSplit(files.Read("/proc/cpuinfo"), '\n')) {
    // x86 gives a name, arm64 the number of a design.
    if (!absl::StartsWith(line, "model name") && !absl::StartsWith(line, "CPU part")) continue;
    processor = std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
    break;
  }
  std::set<std::string> models;
  for (const Device& device : FindDevices(files)) models.insert(device.model);
  std::string name = absl::StrCat(FindProcessors(files).threads, " × ", processor);
  for (const std::string& model : models) absl::StrAppend(&name, ", ", model);
  return absl::StrCat(name, ", ", nproc, nproc == 1 ? " worker" : " workers").substr(0, 256);
}

}  // namespace hlaunch
