// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What comes as a hostlist or as counts gives names and numbers within their limits, or one line
// of text, never a crash.

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "launcher/cluster/hostlist.h"
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
  // Without brackets a list is what it stands for.
  const auto again = ExpandHostlist(absl::StrJoin(*hosts, ","), kMost);
  HLAUNCH_CHECK(again.ok() && *again == *hosts);
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckHosts(text);
  if (const auto counts = hlaunch::ExpandCounts(text, hlaunch::kMost); !counts.ok()) {
    hlaunch::CheckRefusal(counts.status());
  }
  return 0;
}
