// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_metrics.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hlaunch {
namespace {

std::string Head(absl::string_view name, absl::string_view type, absl::string_view help) {
  return absl::StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

std::string Quoted(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

std::string Jobs(const HeadTable& table) {
  std::map<ClusterJobState, int> counts;
  for (const auto& [number, job] : table.jobs().all()) ++counts[job.state];
  std::string text = Head("hlaunch_head_jobs", "gauge", "Jobs that are kept, by state.");
  for (const ClusterJobState state :
       {ClusterJobState::kWaiting, ClusterJobState::kStarting, ClusterJobState::kRunning,
        ClusterJobState::kEnding, ClusterJobState::kEnded}) {
    absl::StrAppend(&text, "hlaunch_head_jobs{state=\"", ClusterJobStateName(state), "\"} ",
                    counts[state], "\n");
  }
  return text;
}

std::string LongestWait(const HeadTable& table, int64_t wall_ms) {
  int64_t longest = 0;
  for (const auto& [number, job] : table.jobs().all()) {
    if (job.state != ClusterJobState::kWaiting) continue;
    longest = std::max(longest, wall_ms - job.submitted_ms);
  }
  return absl::StrCat(Head("hlaunch_head_longest_wait_seconds", "gauge",
                           "Of the jobs that wait now, since submission; 0: none waits."),
                      "hlaunch_head_longest_wait_seconds ", static_cast<double>(longest) / 1000,
                      "\n");
}

// Connected hosts renew their certificates, so the first to expire belongs to a host that is away.
std::string CertificateExpiry(const CertificateEnds& ends) {
  constexpr char kName[] = "hlaunch_head_certificate_expires_seconds";
  std::string text = absl::StrCat(
      Head(kName, "gauge", "When a certificate runs out, since 1970: the head's, a host's first."),
      kName, "{whose=\"head\"} ", ends.head, "\n");
  if (ends.first_host) absl::StrAppend(&text, kName, "{whose=\"host\"} ", *ends.first_host, "\n");
  return text;
}

std::string Hosts(const HeadTable& table) {
  std::map<std::string, int> counts;
  for (const HostView& view : table.hosts().Views()) ++counts[view.state];
  std::string text = Head("hlaunch_head_hosts", "gauge", "Hosts, by state.");
  for (const char* state : {"free", "busy", "full", "drained", "away", "unfit"}) {
    absl::StrAppend(&text, "hlaunch_head_hosts{state=\"", state, "\"} ", counts[state], "\n");
  }
  return text;
}

// Counts the devices of hosts that take jobs.
std::string Devices(const HeadTable& table) {
  std::map<std::string, KindRoom> kinds;
  std::map<std::string, int> free;
  for (const HostRoom& room : table.hosts().Rooms()) {
    if (!room.closed.empty()) continue;
    for (const auto& [name, kind] : room.kinds) {
      kinds[name].all += kind.all;
      free[name] += static_cast<int>(kind.free.size());
    }
  }
  std::string text = Head("hlaunch_head_devices", "gauge",
                          "Devices that are well, of hosts that take jobs, by kind.");
  for (const auto& [name, kind] : kinds) {
    absl::StrAppend(&text, "hlaunch_head_devices{kind=\"", Quoted(name), "\"} ", kind.all, "\n");
  }
  absl::StrAppend(&text, Head("hlaunch_head_devices_free", "gauge", "Those that no job holds."));
  for (const auto& [name, count] : free) {
    absl::StrAppend(&text, "hlaunch_head_devices_free{kind=\"", Quoted(name), "\"} ", count, "\n");
  }
  return text;
}

}  // namespace

void PlaceTimes::Add(const std::vector<int64_t>& waits_ms) {
  for (const int64_t wait : waits_ms) sum_ms_ += std::max<int64_t>(wait, 0);
  count_ += waits_ms.size();
}

std::string PlaceTimes::Text() const {
  return absl::StrCat(
      Head("hlaunch_head_place_seconds", "summary", "From a job's submission until it was placed."),
      "hlaunch_head_place_seconds_sum ", static_cast<double>(sum_ms_) / 1000,
      "\nhlaunch_head_place_seconds_count ", count_, "\n");
}

std::string HeadMetrics(const HeadTable& table, const PlaceTimes& times,
                        const CertificateEnds& ends, int64_t wall_ms) {
  return absl::StrCat(Head("hlaunch_head_up", "gauge", "1 while the head lives."),
                      "hlaunch_head_up 1\n", Jobs(table), LongestWait(table, wall_ms), Hosts(table),
                      Devices(table), times.Text(), CertificateExpiry(ends));
}

std::string HeadStatus(const HeadTable& table) {
  const auto& hosts = table.hosts().all();
  const auto there = std::count_if(hosts.begin(), hosts.end(),
                                   [](const auto& host) { return host.second.connected; });
  return absl::StrCat(there, " of ", hosts.size(), hosts.size() == 1 ? " host" : " hosts",
                      " there; jobs: ", table.jobs().placed().size(), " placed, ",
                      table.jobs().waiting().size(), " waiting");
}

}  // namespace hlaunch
