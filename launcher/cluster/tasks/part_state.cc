// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/part_state.h"

#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "launcher/text/endpoint.h"
#include "proto/base/address.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

// The job tells a port and an address of this host. The address by which the head knows the host is
// better.
std::string MeetingOf(const PartSight& sight) {
  const absl::StatusOr<Endpoint> said = ParseEndpoint(sight.said.meeting, 0);
  if (!said.ok() || said->port == 0 || !IsAddressLiteral(said->host)) return "";
  return HostPort(sight.reachable_at.empty() ? said->host : sight.reachable_at, said->port);
}

// Goodput changes in steps of a hundredth, since each change is told. `now_ms` is 0 if the job has
// ended.
void TellNews(const JobNews& news, int64_t now_ms, PartTold& told) {
  constexpr int64_t kSteps = 100;
  told.round = news.round;
  told.restarts = news.restarts;
  const int64_t since = std::max<int64_t>(now_ms - news.at_ms, 0);
  const int64_t ran = news.ran_ms + (news.runs ? since : 0), whole = news.whole_ms + since;
  if (whole <= 0 || ran > whole) return;
  told.goodput = static_cast<double>(ran * kSteps / whole) / kSteps;
}

void TellEnd(const PartSight& sight, PartTold& told) {
  const auto end = [&](PartState state, const std::string& why) {
    told.state = state;
    if (!why.empty()) told.trouble = absl::StrCat("host ", sight.host, ": ", why);
  };
  if (sight.said.exit_code.has_value()) {
    told.exit_code = sight.said.exit_code;
    return end(PartState::kEnded, "");
  }
  if (sight.record.killed) {
    told.exit_code = kExitSignalBase + SIGKILL;
    return end(PartState::kEnded, "it was killed on request");
  }
  if (!sight.record.trouble.empty()) return end(PartState::kFailed, sight.record.trouble);
  if (sight.record.boot_id != sight.boot_id) {
    return end(PartState::kLost, "the host was started anew");
  }
  if (sight.record.holder == 0) {
    return end(PartState::kFailed, "the node daemon was ended while it started the part");
  }
  if (!sight.said.held) {
    return end(PartState::kFailed, "the part's process ended before it began, without a word");
  }
  end(PartState::kLost, "what holds the part was killed");
}

}  // namespace

PartTold TellPart(const PartSight& sight) {
  PartTold told;
  told.job = sight.record.order.job;
  if (sight.said.news) TellNews(*sight.said.news, sight.lives ? sight.now_ms : 0, told);
  const PartOrder& order = sight.record.order;
  if (order.max_nodes + order.spares > 1) told.meeting = MeetingOf(sight);
  if (!sight.lives) {
    TellEnd(sight, told);
    return told;
  }
  told.state = sight.said.started ? PartState::kRunning : PartState::kStarting;
  return told;
}

}  // namespace hlaunch
