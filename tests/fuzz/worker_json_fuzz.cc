// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// JSON that other processes write: a worker's error file, the timers that torch's workers arm, and
// the results of checks that other nodes send. Any text gives values within their limits, never a
// crash. (The JSON of --config goes through config_fuzz.)

#include <csignal>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "agent/health/local/check_result.h"
#include "agent/watch/stall/watchdog_timers.h"
#include "agent/workers/worker/error_file.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

void CheckErrorFile(absl::string_view json) {
  const ErrorFile file = ParseErrorFile(json);
  HLAUNCH_CHECK(!absl::StrContains(file.message, "\n"));
}

void CheckTimers(absl::string_view bytes) {
  WatchdogTimers timers;
  const auto start_time = [](pid_t pid) {
    HLAUNCH_CHECK(pid > 0);
    return uint64_t{1};
  };
  timers.Read(bytes, start_time);
  timers.Read("\n", start_time);
  for (const WatchdogTimer& late : timers.TakeExpired(1e300)) {
    HLAUNCH_CHECK(late.pid > 0 && late.signal >= 0 && late.signal <= SIGRTMAX);
  }
}

// A result that was read is written so that it is read back as the same.
void CheckCheckResult(absl::string_view line) {
  const std::optional<CheckResult> result = FromLine(line);
  if (!result.has_value()) return;
  HLAUNCH_CHECK(!result->name.empty());
  const std::string written = ToLine(*result);
  HLAUNCH_CHECK(!absl::StrContains(written, "\n"));
  const std::optional<CheckResult> again = FromLine(written);
  HLAUNCH_CHECK(again.has_value() && again->state == result->state &&
                again->reason == result->reason && again->detail == result->detail);
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckErrorFile(bytes);
  hlaunch::CheckTimers(bytes);
  hlaunch::CheckCheckResult(bytes);
  return 0;
}
