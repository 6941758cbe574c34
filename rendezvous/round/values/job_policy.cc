// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/job_policy.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

std::string OrNone(const std::string& text) { return text.empty() ? "none" : text; }

}  // namespace

const char* PreflightName(Preflight preflight) {
  switch (preflight) {
    case Preflight::kOff:
      return "off";
    case Preflight::kQuick:
      return "quick";
    case Preflight::kFull:
      return "full";
  }
  return "";
}

const char* ActionName(PreflightAction action) {
  switch (action) {
    case PreflightAction::kWarn:
      return "warn";
    case PreflightAction::kExclude:
      return "exclude";
    case PreflightAction::kFail:
      return "fail";
  }
  return "";
}

const char* HostLossName(HostLoss loss) {
  switch (loss) {
    case HostLoss::kEnd:
      return "end";
    case HostLoss::kWait:
      return "wait";
    case HostLoss::kContinue:
      return "continue";
  }
  return "";
}

const char* OnJoinName(OnJoin on_join) {
  switch (on_join) {
    case OnJoin::kRestart:
      return "restart";
    case OnJoin::kNextRound:
      return "next-round";
    case OnJoin::kIgnore:
      return "ignore";
  }
  return "";
}

const char* OnLossName(OnLoss on_loss) {
  switch (on_loss) {
    case OnLoss::kShrink:
      return "shrink";
    case OnLoss::kWait:
      return "wait";
    case OnLoss::kFail:
      return "fail";
  }
  return "";
}

std::string DescribeDifferences(const JobPolicy& holds, const JobPolicy& here) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* option, const auto& a, const auto& b) {
    if (a != b) differences.push_back(absl::StrCat(option, " ", a, " (here ", b, ")"));
  };
  compare("--max-restarts", holds.max_restarts, here.max_restarts);
  compare("--max-stuck-restarts", holds.max_stuck_restarts, here.max_stuck_restarts);
  compare("--restart-window", InSeconds(holds.restart_window), InSeconds(here.restart_window));
  compare("--restart-pause", InSeconds(holds.restart_pause), InSeconds(here.restart_pause));
  compare("--restart-on", OrNone(holds.restart_on), OrNone(here.restart_on));
  compare("--end-on", OrNone(holds.end_on), OrNone(here.end_on));
  compare("--free-on", OrNone(holds.free_on), OrNone(here.free_on));
  compare("--spares", holds.spares, here.spares);
  compare("--join-timeout", InSeconds(holds.join_timeout), InSeconds(here.join_timeout));
  compare("--last-call", InSeconds(holds.last_call), InSeconds(here.last_call));
  compare("--on-join", OnJoinName(holds.on_join), OnJoinName(here.on_join));
  compare("--on-loss", OnLossName(holds.on_loss), OnLossName(here.on_loss));
  compare("--grow-interval", InSeconds(holds.grow_interval), InSeconds(here.grow_interval));
  compare("--boundary-limit", InSeconds(holds.boundary_limit), InSeconds(here.boundary_limit));
  compare("--node-multiple", holds.node_multiple, here.node_multiple);
  compare("--loss-limit", InSeconds(holds.lease.loss_limit), InSeconds(here.lease.loss_limit));
  compare("--preflight", PreflightName(holds.preflight), PreflightName(here.preflight));
  compare("--preflight-action", ActionName(holds.preflight_action),
          ActionName(here.preflight_action));
  compare("--preflight-share", holds.preflight_share, here.preflight_share);
  compare("--on-partition", ActionName(holds.on_partition), ActionName(here.on_partition));
  compare("--on-host-loss", HostLossName(holds.on_host_loss), HostLossName(here.on_host_loss));
  return absl::StrJoin(differences, ", ");
}

}  // namespace hlaunch
