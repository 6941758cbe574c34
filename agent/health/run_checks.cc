// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/run_checks.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/health/host_checks.h"
#include "proto/base/mutex.h"

namespace hlaunch {
namespace {

constexpr size_t kFullLogBytes = 32 << 20;

struct Check {
  std::string name;  // As its result's.
  std::function<CheckResult()> run;
};

// Heat that slows the CPUs down shows in counters that grow while they work.
CheckResult CheckHeatSince(const DeviceFiles& files, std::optional<int64_t> throttled_before) {
  CheckResult result = CheckHeat(files);
  const std::optional<int64_t> throttled = ThrottleCount(files);
  if (throttled && throttled_before && *throttled > *throttled_before) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrCat("CPUs were slowed down ", *throttled - *throttled_before,
                                 " times while they were checked");
    result.advice = "look after fans, air flow and power limits";
  }
  return result;
}

std::vector<Check> ChecksOf(const CheckPlan& plan) {
  const DeviceFiles files(plan.sysroot);
  std::vector<Check> checks = {
      {"devices", [=] { return CheckDevices(files, plan.devices); }},
      {"pcie links", [=] { return CheckPcieLinks(files); }},
      {"pcie errors", [=] { return CheckPcieErrors(files); }},
      {"memory errors", [=] { return CheckMemoryErrors(files); }},
      {"kernel log", [=] { return CheckKernelLog(files); }},
      {"network", [=] { return CheckNetwork(files); }},
      {"fabric", [=] { return CheckFabric(files); }},
      {"memory", [=] { return CheckMemory(files); }},
  };
  if (!files.is_this_machine()) {
    checks.push_back({"heat", [=] { return CheckHeat(files); }});
    return checks;
  }
  checks.push_back({"shared memory", [] { return CheckSharedMemory(); }});
  checks.push_back({"limits", [=] { return CheckLimits(files); }});
  checks.push_back({"clock", [] { return CheckClock(); }});
  if (!plan.log_directory.empty()) {
    checks.push_back({"log directory", [=] {
                        return CheckLogDirectory(plan.log_directory, plan.full ? kFullLogBytes : 0);
                      }});
  }
  if (!plan.master.empty()) checks.push_back({"name", [=] { return CheckName(plan.master); }});
  checks.push_back(
      {"heat", [files, before = ThrottleCount(files)] { return CheckHeatSince(files, before); }});
  return checks;
}

}  // namespace

std::vector<std::string> CheckNames(const CheckPlan& plan) {
  std::vector<std::string> names;
  for (const Check& check : ChecksOf(plan)) names.push_back(check.name);
  if (DeviceFiles(plan.sysroot).is_this_machine()) {
    names.push_back("processor");
    if (plan.full) names.push_back("memory speed");
  }
  return names;
}

void RunChecks(const CheckPlan& plan, const std::function<void(const CheckResult&)>& tell) {
  const std::vector<Check> checks = ChecksOf(plan);
  if (DeviceFiles(plan.sysroot).is_this_machine()) {
    tell(CheckProcessor(plan.full));  // Alone: it measures.
    if (plan.full) tell(CheckMemorySpeed());
  }
  Mutex mu;
  std::vector<std::thread> threads;
  for (const Check& check : checks) {
    threads.emplace_back([&mu, &tell, &check] {
      const CheckResult result = check.run();
      const MutexLock lock(&mu);
      tell(result);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hlaunch
