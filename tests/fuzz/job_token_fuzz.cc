// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Any text as a token for one job is a whole token, or is refused in a line that shows nothing of
// it. The job that a certificate's name stands for gives that name again. Never a crash.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/job_token.h"

namespace hlaunch {
namespace {

void CheckToken(absl::string_view token) {
  const absl::StatusOr<JobToken> read = ReadJobToken(token);
  if (read.ok()) {
    HLAUNCH_CHECK(IsJobToken(token) && !read->job_id.empty());
    return;
  }
  HLAUNCH_CHECK(absl::IsInvalidArgument(read.status()));
  // All refusals have the same text, so the text tells nothing about this token.
  static const std::string said(ReadJobToken("").status().message());
  HLAUNCH_CHECK(read.status().message() == said);
}

void CheckName(absl::string_view text) {
  HLAUNCH_CHECK(JobOfUri(UriOfJob(text)) == std::string(text));
  if (const auto job = JobOfUri(text)) HLAUNCH_CHECK(JobOfUri(UriOfJob(*job)) == *job);
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckToken(text);
  // The bytes as a token's content get past the check of its text.
  hlaunch::CheckToken(absl::StrCat("hlaunch-job-1.", absl::WebSafeBase64Escape(text)));
  hlaunch::CheckName(text);
  return 0;
}
