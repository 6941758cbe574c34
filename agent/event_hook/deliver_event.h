// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/event_hook/event_url.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Who is told of a job's events. A value.
struct EventReceiver {
  std::vector<std::string> command;  // Run without a shell for each event.
  std::optional<EventUrl> url;       // Where each event is posted.

  bool none() const { return command.empty() && !url; }
  // For people: "notify.sh", "http://hooks.example:8080", for what follows may be a secret.
  std::string Name() const;
};

// Gives `event`, one JSON object, to `receiver`: a command reads it from its standard input, and
// what it prints comes out of our stderr. Blocks until it is taken, at the latest `until`, when a
// command that still runs is killed; what it leaves in the background is killed as it ends. A URL
// is tried again while it cannot be reached; only the look-up of its host's name knows no `until`.
//
// Belongs to one thread. SIGCHLD must not be ignored.
//
// Errors:
//   NotFound, PermissionDenied - the command cannot be run.
//   DeadlineExceeded - it took too long.
//   FailedPrecondition - it failed, or the event was refused.
//   Unavailable - the URL cannot be reached, or has trouble of its own.
//   ResourceExhausted - no process or descriptor.
absl::Status DeliverEvent(const EventReceiver& receiver, absl::string_view event, Instant until);

}  // namespace hlaunch
