// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Any text as a hostlist or as counts gives names and numbers within their limits or one line of
// text, never a crash. Slurm's variables give a place or a line.

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/environment/scheduler/hostlist.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMost = 500;

void CheckRefusal(const absl::Status& status) {
  HLAUNCH_CHECK(absl::IsInvalidArgument(status));
  HLAUNCH_CHECK(!status.message().empty() && !absl::StrContains(status.message(), "\n"));
}

void CheckHosts(absl::string_view text) {
  const auto hosts = ExpandHostlist(text, kMost);
  if (!hosts.ok()) return CheckRefusal(hosts.status());
  HLAUNCH_CHECK(hosts->size() <= kMost);
  for (const std::string& host : *hosts) HLAUNCH_CHECK(!host.empty() && host.size() <= 1 << 20);
  // A list without brackets expands to itself.
  const auto again = ExpandHostlist(absl::StrJoin(*hosts, ","), kMost);
  HLAUNCH_CHECK(again.ok() && *again == *hosts);
}

void CheckPlace(const std::string& text) {
  Surroundings surroundings;
  surroundings.environment =
      Environment({"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_NODES=2",
                   "SLURM_NODEID=1", "SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURM_CONF=/nonexistent",
                   absl::StrCat("SLURM_STEP_NODELIST=", text)});
  const ClusterPlace place = FindSlurm(surroundings, /*told=*/true);
  HLAUNCH_CHECK(!place.reason.empty() && !absl::StrContains(place.reason, "\n"));
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckHosts(text);
  if (const auto counts = hlaunch::ExpandCounts(text, hlaunch::kMost); !counts.ok()) {
    hlaunch::CheckRefusal(counts.status());
  }
  hlaunch::CheckPlace(std::string(text.substr(0, text.find('\0'))));
  return 0;
}
