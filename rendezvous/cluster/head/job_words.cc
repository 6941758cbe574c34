// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/job_words.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/wall_time.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

const char* PartStateName(PartState state) {
  switch (state) {
    case PartState::kStarting:
      return "starting";
    case PartState::kRunning:
      return "running";
    case PartState::kEnded:
      return "ended";
    case PartState::kLost:
      return "lost";
    case PartState::kFailed:
      return "failed";
  }
  return "";
}

std::string AwaySince(const HostBook& hosts, const std::string& name) {
  const HeadHost* host = hosts.Find(name);
  if (host == nullptr || host->connected) return "";
  return absl::StrCat("away since ", WallTime(host->seen_ms));
}

PartView ViewOfPart(const HeadPart& part, const HostBook& hosts) {
  PartView view;
  view.node_rank = part.node_rank;
  view.host = part.host;
  view.state = PartStateName(part.state);
  if (!part.trouble.empty()) absl::StrAppend(&view.state, ": ", part.trouble);
  const std::string away = part.closed() ? "" : AwaySince(hosts, part.host);
  if (!away.empty()) absl::StrAppend(&view.state, ", ", away);
  view.devices = part.devices;
  view.exit_code = part.exit_code;
  return view;
}

// Names the hosts of living parts that are away; empty if there are none.
std::string WhoIsAway(const HeadJob& job, const HostBook& hosts) {
  std::vector<std::string> names;
  for (const HeadPart& part : job.parts) {
    if (!part.closed() && !AwaySince(hosts, part.host).empty()) names.push_back(part.host);
  }
  if (names.empty()) return "";
  return absl::StrCat(NameSome(names), names.size() == 1 ? " is away" : " are away");
}

// Adds to `job.why` why the job before it waits, and which hosts are away.
std::string WhyNow(const HeadJob& job, const JobBook& jobs, const HostBook& hosts) {
  std::string why = job.why;
  const HeadJob* before = job.behind == 0 ? nullptr : jobs.Find(job.behind);
  if (before != nullptr) absl::StrAppend(&why, ", which ", before->why);
  const std::string away = WhoIsAway(job, hosts);
  if (!away.empty()) absl::StrAppend(&why, why.empty() ? "" : "; ", away);
  return why;
}

}  // namespace

std::string NameOf(const HeadJob& job, const HeadPart& part) {
  if (!job.meets()) return part.host;
  return absl::StrCat("node ", part.node_rank, " (", part.host, ")");
}

std::string WhyStarting(const HeadJob& job) {
  if (job.meets() && job.meeting.empty()) {
    return absl::StrCat("waits for ", NameOf(job, job.parts.front()), " to host its rendezvous");
  }
  std::vector<std::string> names;
  for (const HeadPart& part : job.parts) {
    if (part.state == PartState::kStarting) names.push_back(part.host);
  }
  return absl::StrCat("waits for ", NameSome(names), " to start");
}

std::optional<int> ExitCodeOf(const HeadJob& job) {
  const auto part = std::find_if(job.parts.begin(), job.parts.end(),
                                 [](const HeadPart& one) { return one.exit_code.has_value(); });
  const bool failed = std::any_of(job.parts.begin(), job.parts.end(), [](const HeadPart& one) {
    return one.state == PartState::kFailed;
  });
  // The other parts were only told to end.
  const bool ended_for_it = job.signal != 0 || part == job.parts.end();
  if (failed && job.started_ms == 0 && ended_for_it) return kExitNotStarted;
  if (part == job.parts.end()) return std::nullopt;
  // A part may learn of the end of another part before its own signal arrives.
  const bool other = part->exit_code == kExitNodeStopped || part->exit_code == kExitNodeLost ||
                     part->exit_code == kExitRendezvousLost;
  return job.signal != 0 && other ? kExitSignalBase + job.signal : part->exit_code;
}

std::string HowItEnded(const HeadJob& job) {
  if (!job.told_to_end.empty()) return job.told_to_end;
  for (const HeadPart& part : job.parts) {
    if (part.state == PartState::kEnded || part.trouble.empty()) continue;
    return absl::StrCat(NameOf(job, part), ": ", part.trouble);
  }
  const std::optional<int> code = ExitCodeOf(job);
  return code ? absl::StrCat("ended with exit code ", *code) : "ended";
}

JobView ViewOf(const HeadJob& job, const JobBook& jobs, const HostBook& hosts, bool words) {
  JobView view;
  view.number = job.number;
  view.version = job.version;
  view.user = job.user;
  view.name = job.request.name;
  view.state = job.state;
  view.why = WhyNow(job, jobs, hosts);
  view.min_nodes = job.request.min_nodes;
  view.max_nodes = job.request.max_nodes;
  view.workers = job.parts.empty() ? job.request.workers : job.parts.front().workers;
  view.device_kind = job.device_kind;
  for (const HeadPart& part : job.parts) view.parts.push_back(ViewOfPart(part, hosts));
  view.submitted_ms = job.submitted_ms;
  view.started_ms = job.started_ms;
  view.ended_ms = job.ended_ms;
  view.exit_code = job.exit_code;
  view.round = job.round;
  view.restarts = job.restarts;
  view.goodput = job.goodput;
  if (!words) return view;
  view.words = job.request.options;
  view.words.insert(view.words.end(), job.request.script.begin(), job.request.script.end());
  return view;
}

}  // namespace hlaunch
