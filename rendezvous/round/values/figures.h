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
#include "rendezvous/round/values/round.h"

// Compares what a node measured of itself with what the other nodes measured. Pure.

namespace hlaunch {

// How a figure is judged.
enum class Scale {
  kLessIsBetter,  // Measured: noisy, judged by its ratio to the median.
  kMoreIsBetter,  // The same.
  kCounted,       // Nodes with the same hardware have the same; less is a fault.
  kOffset,        // Should be near the median, above or below; never a reason to exclude.
  kShown,         // Judged elsewhere, for pairs of nodes.
};

struct FigureRule {
  const char* name;  // "processor": the name of the check that measures it.
  const char* unit;
  Scale scale;
  // The node is at fault from this ratio on. kOffset: a larger distance to the median is reported.
  double bad;
};

const FigureRule& RuleOf(Figure figure);

// Lowest, highest, mean and median of the known values, and the indexes of the lowest and the
// highest.
struct Spread {
  double min = 0, max = 0, mean = 0, median = 0;
  size_t min_at = 0, max_at = 0;
  size_t known = 0;
};

// Returns nothing if no value is known.
std::optional<Spread> SpreadOf(const std::vector<double>& values);

enum class Standing {
  kUnknown,
  kNormal,
  kSlow,  // Worth reporting.
  kBad,   // To be excluded if it is bad twice.
};

struct Score {
  Standing standing = Standing::kUnknown;
  double ratio = 1;  // How many times worse than the median; below 1 if better.
  double z = 0;      // Distance to the median in robust deviations; positive if worse.
};

// Scores each of `values`: one figure, from nodes with the same hardware; unknown values are NaN.
// Two nodes are compared with each other, and neither is bad: one against one proves nothing. Three
// or more are compared with the median; for eight or more its deviation (MAD, at least 1 % of the
// median) counts as well.
std::vector<Score> ScoreFigure(const std::vector<double>& values, const FigureRule& rule);

// "9.8 ms"
std::string FigureText(double value, absl::string_view unit, int digits = 3);

// Describes `values[index]`: "processor 9.8 ms, 3.2 times worse where others have 3 to 3.3 ms".
std::string DescribeScore(const std::vector<double>& values, const FigureRule& rule, size_t index);

}  // namespace hlaunch
