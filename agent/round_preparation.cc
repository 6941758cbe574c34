// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/round_preparation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/health/joint/joint_report.h"
#include "agent/health/node_health.h"
#include "proto/base/address.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

// How long the master store of a proposed round may take to answer; the rendezvous waits longer.
constexpr Duration kCheckLimit = std::chrono::seconds(8);

void LogResults(const std::vector<CheckResult>& results) {
  for (const CheckResult& result : results) {
    if (const auto joint = JointReportOf(result); joint && joint->node_rank == 0) {
      for (const std::string& line : DescribeFigures(*joint)) LogInfo(line);
    }
    if (result.state == CheckState::kOk) continue;
    LogDebug(
        absl::StrCat("check of ", result.name, ": ", StateName(result.state), ": ", result.reason));
  }
}

}  // namespace

void RoundPreparation::Start(const Assignment& assignment) {
  if (assignment.round <= round_) return;  // A repeated directive.
  Cancel();
  waiting_.Stop();
  round_ = assignment.round;
  CheckNode(assignment);
  if (assignment.node_rank == 0) {
    unfit_ = std::string(store_.Open(assignment).message());
    TellIfDone();
  } else if (const absl::Status connected = store_.Connect(assignment); !connected.ok()) {
    unfit_ = std::string(connected.message());
    TellIfDone();
  } else {
    AskStore(assignment);
  }
}

void RoundPreparation::Cancel() {
  store_check_.reset();
  node_checks_.reset();
  unfit_.reset();
  health_.reset();
}

void RoundPreparation::CheckNode(const Assignment& assignment) {
  const double clock = static_cast<double>(WallMillis()) / 1000;
  if (!options_.check_command) return OnChecked({}, clock);
  if (hardware_.empty()) {
    hardware_ = HardwareName(DeviceFiles(options_.checks.sysroot), options_.spec.nproc);
  }
  const CheckPlan plan = PlanChecksBefore(options_, assignment);
  node_checks_.emplace(loop_, options_.check_command(plan), ChecksToAwait(plan),
                       [this, clock](const std::vector<CheckResult>& results) {
                         OnChecked(results, clock);
                         TellIfDone();
                       });
}

void RoundPreparation::OnChecked(const std::vector<CheckResult>& results, double clock) {
  LogResults(results);
  if (options_.on_checks) options_.on_checks(results);
  health_ = NodeHealthOf(results, hardware_);
  health_->figures[Figure::kClock] = clock;
}

void RoundPreparation::AskStore(const Assignment& assignment) {
  waiting_.Wait(absl::StrCat("waiting for the master store at ",
                             HostPort(assignment.master_addr, assignment.master_port),
                             " to answer"));
  store_check_.emplace(
      loop_, assignment.master_addr, assignment.master_port,
      assignment.worker_store ? MasterCheck::Expect::kHost : MasterCheck::Expect::kStore,
      kCheckLimit, [this](std::string unfit) {
        unfit_ = std::move(unfit);
        TellIfDone();
      });
}

void RoundPreparation::TellIfDone() {
  if (!unfit_) return;
  waiting_.Stop();
  waiting_.Wait(
      absl::StrCat("waiting for the other nodes to reach the master store of round ", round_));
  if (health_) on_prepared_(round_, *unfit_, *health_);
}

}  // namespace hlaunch
