// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// The URL to which a job's events are posted. A value.
struct EventUrl {
  std::string host;  // A name, or a literal without brackets.
  uint16_t port = 80;
  std::string target = "/";  // "/hooks/7?to=me"
};

// Parses a URL like "http://hooks.example:8080/7". Pure.
//
// Errors:
//   InvalidArgument - `text` is no such URL. https is not supported, and a password is refused,
//     because all users of the host would see it.
absl::StatusOr<EventUrl> ParseEventUrl(absl::string_view text);

// Returns the HTTP request that posts `event`, one JSON object. Pure.
std::string PostOfEvent(const EventUrl& url, absl::string_view event);

// Returns what follows the interim answers (100 to 199) at the beginning of `answer`; empty if the
// last of them is not complete. Pure.
absl::string_view WithoutInterim(absl::string_view answer);

// Reads the answer to that request; interim answers before it are skipped. Pure.
//
// Errors:
//   Unavailable - the event was not accepted, but a retry may succeed.
//   FailedPrecondition - the event was refused for good, or the answer is a redirect, which is not
//     followed.
absl::Status ReadPostAnswer(absl::string_view answer);

}  // namespace hlaunch
