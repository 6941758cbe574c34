// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Any answer of a cloud and any text of --drain-url give one printable line, a URL that can be
// asked, or nothing, and never a crash.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "agent/watch/notice/drain_watch.h"
#include "proto/base/status_macros.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto reason = hlaunch::ReadNotice(bytes)) {
    HLAUNCH_CHECK(std::none_of(reason->begin(), reason->end(), absl::ascii_iscntrl));
    HLAUNCH_CHECK(reason->size() <= size || *reason == "its cloud says so");
  }
  if (const auto url = hlaunch::ParseNoticeUrl(bytes); url.ok()) {
    HLAUNCH_CHECK(url->port > 0 && !url->address.empty());
    HLAUNCH_CHECK(absl::StartsWith(url->target, "/"));
    HLAUNCH_CHECK(std::all_of(url->target.begin(), url->target.end(), absl::ascii_isgraph));
  }
  return 0;
}
