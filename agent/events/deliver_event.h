// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/events/event_url.h"
#include "proto/base/clock.h"

namespace hlaunch {

// The receiver of a job's events. A value.
struct EventReceiver {
  std::vector<std::string> command;  // Run for each event, without a shell.
  std::optional<EventUrl> url;       // Each event is posted here.

  bool none() const { return command.empty() && !url; }
  // The receiver's name for people: "notify.sh", "http://hooks.example:8080". The rest of a command
  // or URL is left out, because it may be a secret.
  std::string Name() const;
};

// Gives `event`, one JSON object, to `receiver`. A command reads it from its standard input, and
// its output goes to our stderr. Blocks until the event is delivered, at the latest until `until`:
// then a command that still runs is killed, and its end is awaited for up to one second more.
// Processes that a command leaves in the background are killed when it ends. A URL is retried while
// it cannot be reached. The look-up of its host's name does not obey `until`.
//
// Belongs to one thread. SIGCHLD must not be ignored.
//
// Errors:
//   NotFound, PermissionDenied - the command cannot be run.
//   DeadlineExceeded - it took too long.
//   FailedPrecondition - the command failed, or the event was refused.
//   Unavailable - the URL cannot be reached, or the server has a problem of its own.
//   ResourceExhausted - no process or descriptor.
absl::Status DeliverEvent(const EventReceiver& receiver, absl::string_view event, Instant until);

}  // namespace hlaunch
