// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/time_words.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/wall_time.h"

namespace hlaunch {
namespace {

constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;

}  // namespace

std::string SpanWords(int64_t ms) {
  ms = std::max<int64_t>(ms, 0);
  if (0 < ms && ms < 1000) return absl::StrCat("0.", std::max<int64_t>(ms / 100, 1), " s");
  const int64_t s = ms / 1000;
  if (s < kMinute) return absl::StrCat(s, " s");
  if (s < kHour) return absl::StrCat(s / kMinute, " min ", s % kMinute, " s");
  if (s < kDay) return absl::StrCat(s / kHour, " h ", s % kHour / kMinute, " min");
  return absl::StrCat(s / kDay, " d ", s % kDay / kHour, " h");
}

std::string ClockWords(int64_t wall_ms) {
  return wall_ms == 0 ? "" : WallTime(wall_ms).substr(11, 8);
}

std::string DateWords(int64_t wall_ms) {
  if (wall_ms == 0) return "";
  return absl::StrCat(WallTime(wall_ms).substr(0, 10), " ", ClockWords(wall_ms), " UTC");
}

}  // namespace hlaunch
