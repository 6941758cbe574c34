// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/round.h"

// What nodes measure of themselves, and how one is compared with the others. Pure.

namespace hlaunch {

// How a figure is judged.
enum class Scale {
  kLessIsBetter,  // Measured: noisy, judged by its ratio to the median.
  kMoreIsBetter,  // The same.
  kCounted,       // Of like nodes all have the same, or less is a fault.
  kOffset,        // Near the median on either side; never a reason to exclude.
  kShown,         // Judged elsewhere: in pairs.
};

struct FigureRule {
  const char* name;  // "processor", as of the check that measures it.
  const char* unit;
  Scale scale;
  double bad;  // A ratio from which the node is at fault; kOffset: a distance to be told.
};

const FigureRule& RuleOf(Figure figure);

// Lowest, highest and mean of what is known, and who holds the first two.
struct Spread {
  double min = 0, max = 0, mean = 0, median = 0;
  size_t min_at = 0, max_at = 0;
  size_t known = 0;
};

// Nothing if nothing is known.
std::optional<Spread> SpreadOf(const std::vector<double>& values);

enum class Standing {
  kUnknown,
  kNormal,
  kSlow,  // Worth a word.
  kBad,   // Not to be kept, if it is so twice.
};

struct Score {
  Standing standing = Standing::kUnknown;
  double ratio = 1;  // How many times worse than the median; below 1: better.
  double z = 0;      // Distance to the median in robust deviations; positive: worse.
};

// Scores each of `values`, the figure of nodes that are alike; unknown ones are NaN. Two nodes are
// measured by each other, and neither is bad: one against one proves nothing. From three on
// the median counts, from eight on its deviation (MAD, at least 1 % of the median) as well.
std::vector<Score> ScoreFigure(const std::vector<double>& values, const FigureRule& rule);

// "9.8 ms"
std::string FigureText(double value, absl::string_view unit, int digits = 3);

// "processor 9.8 ms, 3.2 times the median of 3.1 ms (others from 3 to 3.3 ms)" of `values[index]`.
std::string DescribeScore(const std::vector<double>& values, const FigureRule& rule, size_t index);

}  // namespace hlaunch
