// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/values/seconds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace hlaunch {
namespace {

struct TimeUnit {
  double seconds;
  std::array<absl::string_view, 5> words;
};
constexpr TimeUnit kTimeUnits[] = {
    {0.001, {"ms", "msec", "msecs"}},
    {1, {"s", "sec", "secs", "second", "seconds"}},
    {60, {"m", "min", "mins", "minute", "minutes"}},
    {3600, {"h", "hr", "hrs", "hour", "hours"}},
    {24 * 3600, {"d", "day", "days"}},
};

// Returns the seconds of a unit; 0 if `word` is none.
double SecondsOf(absl::string_view word) {
  for (const TimeUnit& unit : kTimeUnits) {
    const bool named =
        !word.empty() && std::find(unit.words.begin(), unit.words.end(), word) != unit.words.end();
    if (named) return unit.seconds;
  }
  return 0;
}

// Takes what is in front of the first character for which `ends` is true.
absl::string_view TakeUntil(absl::string_view& text, bool (*ends)(char)) {
  const auto end = std::find_if(text.begin(), text.end(), ends);
  const absl::string_view taken = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(taken.size());
  return taken;
}

}  // namespace

std::optional<double> ReadSeconds(absl::string_view text) {
  double plain = 0;
  const bool is_number = !text.empty() &&
                         (absl::ascii_isdigit(text.back()) || text.back() == '.') &&
                         absl::SimpleAtod(text, &plain);
  if (is_number) return std::isfinite(plain) ? std::optional(plain) : std::nullopt;
  double sum = 0;
  do {
    const absl::string_view number = TakeUntil(text, [](char c) { return c >= 'a' && c <= 'z'; });
    const absl::string_view unit = TakeUntil(text, [](char c) { return c < 'a' || c > 'z'; });
    double count = 0;
    const bool digits = number.find_first_not_of("0123456789.") == number.npos;
    if (SecondsOf(unit) == 0 || !digits || !absl::SimpleAtod(number, &count)) return std::nullopt;
    sum += count * SecondsOf(unit);
  } while (!text.empty());
  return sum;
}

bool ReadWholeSeconds(absl::string_view text, int min, int max, int* out) {
  const std::optional<double> seconds = ReadSeconds(text);
  if (!seconds || *seconds < min || *seconds > max) return false;
  *out = static_cast<int>(std::ceil(*seconds));
  return true;
}

}  // namespace hlaunch
