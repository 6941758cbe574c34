// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/figures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hlaunch {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kFew = 8;   // Fewer values do not show what spread is usual.
constexpr size_t kVote = 3;  // Fewer values have no majority.
constexpr double kSlowOfFew = 1.33;
constexpr double kSlowOfMany = 1.10;
constexpr double kSlowDeviations = 3.5;
constexpr double kDeviation = 0.6745;  // The MAD of a normal distribution, in standard deviations.
constexpr double kLeastMad = 0.01;     // As a part of the median.

constexpr FigureRule kRules[kFigures] = {
    {"processor", "ms", Scale::kLessIsBetter, 2},
    {"memory speed", "GB/s", Scale::kMoreIsBetter, 2},
    {"devices", "", Scale::kCounted, kNever},
    {"pcie links", "lanes", Scale::kCounted, kNever},
    {"fabric", "Gbit/s", Scale::kCounted, 1.05},
    {"network", "Gbit/s", Scale::kCounted, 2},
    {"clock", "s", Scale::kOffset, 2},
    {"latency", "us", Scale::kShown, kNever},
    {"bandwidth", "Gbit/s", Scale::kShown, kNever},
};

std::vector<double> Known(const std::vector<double>& values) {
  std::vector<double> known;
  for (const double value : values) {
    if (std::isfinite(value)) known.push_back(value);
  }
  std::sort(known.begin(), known.end());
  return known;
}

double MedianOf(const std::vector<double>& sorted) {
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half]
                                : sorted[half - 1] + (sorted[half] - sorted[half - 1]) / 2;
}

// Returns how many times `value` is worse than `usual`.
double WorseBy(double value, double usual, bool more_is_better) {
  const double above = more_is_better ? usual : value;
  const double below = more_is_better ? value : usual;
  if (above == below || above <= 0) return 1;
  return below <= 0 ? kNever : above / below;
}

Standing StandingOf(const Score& score, const FigureRule& rule, size_t known) {
  if (known < 2) return Standing::kNormal;
  const bool slow = known < kFew ? score.ratio >= kSlowOfFew
                                 : score.ratio >= kSlowOfMany && score.z >= kSlowDeviations;
  if (!slow) return Standing::kNormal;
  return score.ratio >= rule.bad && known >= kVote ? Standing::kBad : Standing::kSlow;
}

// Returns the value that more than half of them have; NaN if there is none.
double Majority(const std::vector<double>& sorted) {
  std::map<double, size_t> votes;
  for (const double value : sorted) {
    if (++votes[value] * 2 > sorted.size()) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

Score ScoreCounted(double value, double usual, const FigureRule& rule, size_t known) {
  Score score{Standing::kNormal, 1, 0};
  if (known < kVote || std::isnan(usual) || value >= usual) return score;
  score.ratio = WorseBy(value, usual, /*more_is_better=*/true);
  score.standing = score.ratio >= rule.bad ? Standing::kBad : Standing::kSlow;
  return score;
}

}  // namespace

const FigureRule& RuleOf(Figure figure) { return kRules[static_cast<size_t>(figure)]; }

std::optional<Spread> SpreadOf(const std::vector<double>& values) {
  const std::vector<double> known = Known(values);
  if (known.empty()) return {};
  Spread spread;
  spread.known = known.size();
  spread.min = known.front();
  spread.max = known.back();
  spread.median = MedianOf(known);
  for (const double value : known) spread.mean += value / static_cast<double>(known.size());
  spread.mean = std::clamp(spread.mean, spread.min, spread.max);  // Against rounding errors.
  const auto at = [&](double value) {
    return static_cast<size_t>(std::find(values.begin(), values.end(), value) - values.begin());
  };
  spread.min_at = at(spread.min);
  spread.max_at = at(spread.max);
  return spread;
}

std::vector<Score> ScoreFigure(const std::vector<double>& values, const FigureRule& rule) {
  const std::vector<double> known = Known(values);
  std::vector<Score> scores(values.size());
  if (known.empty()) return scores;
  const bool more = rule.scale == Scale::kMoreIsBetter;
  const double median = MedianOf(known);
  std::vector<double> distances;
  for (const double value : known) distances.push_back(std::abs(value - median));
  std::sort(distances.begin(), distances.end());
  const double mad = std::max(MedianOf(distances), kLeastMad * std::abs(median));
  const double majority = Majority(known);
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!std::isfinite(value)) continue;
    Score& score = scores[i];
    if (rule.scale == Scale::kShown) {
      score.standing = Standing::kNormal;
      continue;
    }
    if (rule.scale == Scale::kCounted) {
      score = ScoreCounted(value, majority, rule, known.size());
      continue;
    }
    if (mad > 0) score.z = kDeviation * (more ? median - value : value - median) / mad;
    if (rule.scale == Scale::kOffset) {
      score.standing = std::abs(value - median) > rule.bad ? Standing::kSlow : Standing::kNormal;
      continue;
    }
    const double best = more ? known.back() : known.front();
    score.ratio = WorseBy(value, known.size() < kVote ? best : median, more);
    score.standing = StandingOf(score, rule, known.size());
  }
  return scores;
}

std::string FigureText(double value, absl::string_view unit, int digits) {
  return absl::StrCat(absl::StrFormat("%.*g", digits, value), unit.empty() ? "" : " ", unit);
}

namespace {

// Writes seconds as "10 s", "3 min", "24 h", "12 days".
std::string TimeText(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (seconds < 2 * kMinute) return FigureText(seconds, "s");
  if (seconds < 2 * kHour) return absl::StrFormat("%.0f min", seconds / kMinute);
  if (seconds < 2 * kDay) return absl::StrFormat("%.0f h", seconds / kHour);
  return absl::StrFormat("%.0f days", seconds / kDay);
}

}  // namespace

std::string DescribeScore(const std::vector<double>& values, const FigureRule& rule, size_t index) {
  std::vector<double> others = values;
  others[index] = std::numeric_limits<double>::quiet_NaN();
  const std::optional<Spread> rest = SpreadOf(others);
  if (!rest) return absl::StrCat(rule.name, " ", FigureText(values[index], rule.unit));
  if (rule.scale == Scale::kOffset) {
    const double off = values[index] - rest->median;
    return absl::StrCat(rule.name, " ", TimeText(std::abs(off)), off > 0 ? " ahead" : " behind",
                        " of the others");
  }
  const Score score = ScoreFigure(values, rule)[index];
  const std::string range = rest->min == rest->max
                                ? FigureText(rest->min, rule.unit)
                                : absl::StrCat(absl::StrFormat("%.3g", rest->min), " to ",
                                               FigureText(rest->max, rule.unit));
  return absl::StrCat(
      rule.name, " ", FigureText(values[index], rule.unit), ", ",
      std::isfinite(score.ratio) ? absl::StrFormat("%.3g times worse", score.ratio) : "none",
      " where others have ", range);
}

}  // namespace hlaunch
