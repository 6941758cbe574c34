// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// Where a job's events are posted to. A value.
struct EventUrl {
  std::string host;  // A name, or a literal without brackets.
  uint16_t port = 80;
  std::string target = "/";  // "/hooks/7?to=me"
};

// "http://hooks.example:8080/7". Pure.
//
// Errors:
//   InvalidArgument - it is no such URL: https is not spoken, and a password in it would be seen by
//     all users of the host.
absl::StatusOr<EventUrl> ParseEventUrl(absl::string_view text);

// The request that posts `event`, one JSON object. Pure.
std::string PostOfEvent(const EventUrl& url, absl::string_view event);

// What the answer to that request says. Pure.
//
// Errors:
//   Unavailable - it was not taken, and may be the next time.
//   FailedPrecondition - it was refused for good, or is to go somewhere else, which is not
//   followed.
absl::Status ReadPostAnswer(absl::string_view answer);

}  // namespace hlaunch
