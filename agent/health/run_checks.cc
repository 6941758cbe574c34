// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/run_checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/health/local/cpu_quota.h"
#include "agent/health/local/host_checks.h"
#include "agent/health/node_health.h"
#include "proto/base/mutex.h"
#include "proto/base/thread.h"

namespace hlaunch {
namespace {

constexpr size_t kFullLogBytes = 32 << 20;
constexpr Duration kQuickLimit = std::chrono::seconds(3);
constexpr Duration kFullLimit = std::chrono::seconds(20);
// How long the other checks may run before pairs are measured: they write files and read devices.
constexpr Duration kQuietTime = std::chrono::seconds(3);

struct Check {
  std::string name;  // The name of its result.
  std::function<CheckResult()> run;
};

// Heat that slows the CPUs down shows in counters that grow while the CPUs work.
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
  DevicesWanted devices = plan.devices;
  devices.in_use = plan.watch > Duration::zero();
  std::vector<Check> checks = {
      {"devices", [=] { return CheckDevices(files, devices); }},
      {"pcie links", [=] { return CheckPcieLinks(files); }},
      {"pcie errors", [=] { return CheckPcieErrors(files); }},
      {"memory errors", [=] { return CheckMemoryErrors(files); }},
      {"kernel log", [=] { return CheckKernelLog(files); }},
      {"network", [=] { return CheckNetwork(files); }},
      {"link losses", [=] { return CheckLinkLosses(files); }},
      {"fabric", [=] { return CheckFabric(files); }},
      {"memory", [=] { return CheckMemory(files); }},
  };
  if (!files.is_this_machine()) {
    checks.push_back({"heat", [=] { return CheckHeat(files); }});
    return checks;
  }
  checks.push_back({"shared memory", [] { return CheckSharedMemory(); }});
  checks.push_back({"cpu quota", [] { return CheckCpuQuota(); }});
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

// Collects the results of the checks and reports them one at a time. Thread-safe.
class Findings {
 public:
  Findings(size_t open, const std::function<void(const CheckResult&)>& tell)
      : tell_(tell), open_(open) {}

  void Add(const CheckResult& result) {
    const MutexLock lock(&mu_);
    tell_(result);
    found_.push_back(result);
    if (found_.size() >= open_) all_.SignalAll();
  }
  void AwaitAll(Instant deadline) {
    const MutexLock lock(&mu_);
    while (found_.size() < open_ && all_.WaitUntil(&mu_, deadline)) {
    }
  }
  std::vector<CheckResult> found() const {
    const MutexLock lock(&mu_);
    return found_;
  }

 private:
  const std::function<void(const CheckResult&)>& tell_;
  const size_t open_;
  mutable Mutex mu_;
  CondVar all_;
  std::vector<CheckResult> found_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::vector<AwaitedCheck> ChecksToAwait(const CheckPlan& plan) {
  const Duration limit = plan.full ? kFullLimit : kQuickLimit;
  std::vector<AwaitedCheck> awaited;
  for (const Check& check : ChecksOf(plan)) awaited.push_back({check.name, limit});
  if (DeviceFiles(plan.sysroot).is_this_machine()) {
    awaited.push_back({"processor", limit});
    if (plan.full) awaited.push_back({"memory speed", limit});
  }
  if (plan.joint)
    awaited.push_back({kJointCheck, JointLimit(plan.full) +
                                        (plan.full ? 2 * kQuietTime : std::chrono::seconds(1))});
  return awaited;
}

void RunChecks(const CheckPlan& plan, const std::function<void(const CheckResult&)>& tell) {
  const std::vector<Check> checks = ChecksOf(plan);
  const bool here = DeviceFiles(plan.sysroot).is_this_machine();
  Findings findings(checks.size() + (here ? 1 : 0) + (here && plan.full ? 1 : 0), tell);
  if (here) {
    findings.Add(CheckProcessor(plan.full));  // Runs alone because it measures.
    if (plan.full) findings.Add(CheckMemorySpeed());
  }
  std::vector<Thread> threads;
  for (const Check& check : checks) {
    const auto run = [&findings, &check] { findings.Add(check.run()); };
    absl::StatusOr<Thread> thread = Thread::Start("hl-check", run);
    if (thread.ok()) {
      threads.push_back(*std::move(thread));
    } else {
      run();  // Slower than all at once, but the node is checked.
    }
  }
  if (plan.joint) {
    JointPlan joint = *plan.joint;
    if (plan.full) findings.AwaitAll(MonotonicClock().Now() + kQuietTime);
    joint.figures = NodeHealthOf(findings.found(), "").figures;
    findings.Add(ToResult(CheckTogether(joint)));
  }
  for (Thread& thread : threads) thread.Join();
}

namespace {

CheckResult NotRun(const std::string& name, const absl::Status& why) {
  return {name, {}, "", CheckState::kWarn, absl::StrCat("it could not be run: ", why.message()),
          ""};
}

}  // namespace

struct RepeatedChecks::State {
  struct Turn {
    Check check;
    std::optional<Instant> begun;  // Set while the check runs.
    std::optional<CheckResult> result;
  };
  bool AllEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return std::none_of(turns.begin(), turns.end(), [](const Turn& turn) { return turn.begun; });
  }

  Mutex mu;
  CondVar ended;
  std::vector<Turn> turns ABSL_GUARDED_BY(mu);
};

RepeatedChecks::RepeatedChecks(const CheckPlan& plan) : state_(std::make_shared<State>()) {
  const MutexLock lock(&state_->mu);
  for (Check& check : ChecksOf(plan)) state_->turns.push_back({std::move(check), {}, {}});
  if (DeviceFiles(plan.sysroot).is_this_machine()) {
    state_->turns.push_back({{"processor", [] { return CheckProcessor(/*full=*/false); }}, {}, {}});
  }
}

std::vector<CheckResult> RepeatedChecks::Take(Duration limit) {
  const Instant begin = MonotonicClock().Now();
  std::vector<CheckResult> results;
  const MutexLock lock(&state_->mu);
  for (State::Turn& turn : state_->turns) {
    if (turn.begun) continue;
    turn.begun = begin;
    const auto check = [state = state_, &turn, run = turn.check.run] {
      CheckResult result = run();
      const MutexLock done(&state->mu);
      turn.result = std::move(result);
      turn.begun.reset();
      state->ended.SignalAll();
    };
    if (const absl::Status started = StartUnawaited("hl-check", check); !started.ok()) {
      turn.begun.reset();
      turn.result = NotRun(turn.check.name, started);
    }
  }
  while (!state_->AllEnded() && state_->ended.WaitUntil(&state_->mu, begin + limit)) {
  }
  for (State::Turn& turn : state_->turns) {
    if (auto result = std::exchange(turn.result, std::nullopt)) {
      results.push_back(*std::move(result));
    } else if (turn.begun) {
      const auto waited =
          std::chrono::duration_cast<std::chrono::seconds>(MonotonicClock().Now() - *turn.begun);
      results.push_back({turn.check.name,
                         {},
                         "",
                         CheckState::kWarn,
                         absl::StrCat("it has not ended for ", waited.count(), " s"),
                         "a driver or a file server does not answer; see dmesg"});
    }
  }
  return results;
}

}  // namespace hlaunch
