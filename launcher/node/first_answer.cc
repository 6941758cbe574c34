// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/first_answer.h"

#include <optional>

#include "absl/status/status.h"

namespace hlaunch {
namespace {

constexpr Duration kLookStep = std::chrono::milliseconds(20);

}  // namespace

Resolved FirstAnswer(Lookup& lookup, const SignalNumbers& named, Duration patience) {
  const Instant until = MonotonicClock().Now() + patience;
  std::optional<Resolved> found;
  while (!(found = lookup.Await(MonotonicClock().Now() + kLookStep)) &&
         !TerminationPending(named) && MonotonicClock().Now() < until) {
  }
  return found.value_or(absl::UnavailableError("the name is not known yet"));
}

}  // namespace hlaunch
