// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/start_status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

constexpr size_t kMostNamed = 4;
constexpr Duration kLongStill = std::chrono::seconds(20);

std::string Doing(const HostProgress& host) {
  switch (host.state) {
    case HostState::kWaiting:
      return "its turn comes";
    case HostState::kConnecting:
      return absl::StrCat(host.starter, " connects");
    case HostState::kStarted:
      return "started, looks for the way here";
    case HostState::kFailed:
      return "failed";
    case HostState::kHere:
    case HostState::kEnded:
      break;
  }
  return "here";
}

}  // namespace

std::string StartStatus(const std::vector<HostProgress>& hosts, const StandStill& still) {
  size_t here = 0;
  std::vector<std::string> named;
  size_t awaited = 0;
  for (const HostProgress& host : hosts) {
    if (host.state == HostState::kHere || host.state == HostState::kEnded) {
      ++here;
      continue;
    }
    if (++awaited <= kMostNamed) named.push_back(absl::StrCat(host.host, " (", Doing(host), ")"));
  }
  std::string text =
      absl::StrCat(here, " of ", hosts.size(), hosts.size() == 1 ? " node" : " nodes",
                   here == 1 ? " is here" : " are here");
  if (awaited == 0) return text;
  absl::StrAppend(&text, "; waiting for ", absl::StrJoin(named, ", "));
  if (awaited > kMostNamed) absl::StrAppend(&text, " and ", awaited - kMostNamed, " more");
  if (still.lasted >= kLongStill) {
    const auto whole = [](Duration d) { return static_cast<int64_t>(InSeconds(d)); };
    absl::StrAppend(&text, "; no host got further for ", whole(still.lasted), " s of ",
                    whole(still.limit), " (--join-timeout)");
  }
  return text;
}

}  // namespace hlaunch
