// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What comes as a token for one job is one, whole, or refused in a line that shows nothing of it;
// and the job that a certificate's name stands for has that name again. Never a crash.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/trust/job_token.h"

namespace hlaunch {
namespace {

void CheckToken(absl::string_view token) {
  const absl::StatusOr<JobToken> read = ReadJobToken(token);
  if (read.ok()) {
    HLAUNCH_CHECK(IsJobToken(token) && !read->job_id.empty());
    return;
  }
  HLAUNCH_CHECK(absl::IsInvalidArgument(read.status()));
  // What is said of one is said of all, so it tells nothing of this one.
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
  // Bytes that are a token's content get past its text.
  hlaunch::CheckToken(absl::StrCat("hlaunch-job-1.", absl::WebSafeBase64Escape(text)));
  hlaunch::CheckName(text);
  return 0;
}
