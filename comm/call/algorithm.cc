// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/call/algorithm.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

constexpr const char* kNames[] = {
    "flat",           "tree",     "bruck", "exchange", "direct", "ring", "recursive_doubling",
    "scatter_gather", "two_level"};

struct Choice {
  Verb verb;
  std::vector<Algorithm> algorithms;
};
const std::vector<Choice>& Possible() {
  using enum Algorithm;
  static const std::vector<Choice> possible{
      {Verb::kBroadcast, {kFlat, kTree, kScatterGather, kTwoLevel}},
      {Verb::kAllReduce, {kExchange, kBruck, kDirect, kRing, kRecursiveDoubling, kTwoLevel}},
      {Verb::kReduce, {kFlat, kDirect}},
      {Verb::kAllGather, {kFlat, kBruck, kRing}},
  };
  return possible;
}

// With more ranks than this, not every rank has a connection to every other: each pair costs two
// connections of 150 KiB, and one step of many small messages costs more than a few steps of larger
// ones.
constexpr int kMany = 32;
constexpr int kFew = 8;
// Up to this size it is cheaper to send all data in one step than parts in two steps. Measured; see
// DESIGN.md.
constexpr size_t kSmall = 16 << 10;

}  // namespace

absl::string_view Name(Algorithm algorithm) { return kNames[static_cast<int>(algorithm)]; }

absl::StatusOr<AlgorithmChoices> ChoicesFromEnvironment() {
  AlgorithmChoices choices;
  for (const Choice& choice : Possible()) {
    const std::string variable =
        absl::StrCat("HLAUNCH_COMM_", absl::AsciiStrToUpper(Name(choice.verb)));
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    const auto it = std::find_if(choice.algorithms.begin(), choice.algorithms.end(),
                                 [&](Algorithm algorithm) { return Name(algorithm) == value; });
    if (it == choice.algorithms.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          variable, "=", value, ": there are ",
          absl::StrJoin(choice.algorithms, ", ", [](std::string* text, Algorithm algorithm) {
            absl::StrAppend(text, Name(algorithm));
          })));
    }
    choices[choice.verb] = *it;
  }
  return choices;
}

Algorithm Choose(Verb verb, size_t bytes, const Shape& shape, const AlgorithmChoices& choices) {
  if (const auto it = choices.find(verb); it != choices.end()) return it->second;
  const bool few = shape.size <= kFew, many = shape.size > kMany;
  const bool small = bytes * (shape.size - 1) <= kSmall;
  const bool two_level = bytes >= kHostsMatter && shape.hosts > 1 && shape.per_host > 1;
  switch (verb) {
    case Verb::kBroadcast:
      if (bytes < kHostsMatter) return Algorithm::kTree;
      if (shape.hosts == 1) return many ? Algorithm::kTree : Algorithm::kFlat;
      if (shape.hosts < shape.size) return Algorithm::kTwoLevel;
      return bytes < 64 << 10 || shape.size == 2 ? Algorithm::kTree : Algorithm::kScatterGather;
    case Verb::kAllReduce:
      if (small) return few ? Algorithm::kExchange : Algorithm::kBruck;
      if (two_level) return Algorithm::kTwoLevel;
      if (!many) return Algorithm::kDirect;
      return bytes <= 64 << 10 ? Algorithm::kRecursiveDoubling : Algorithm::kRing;
    case Verb::kReduce:
      return small ? Algorithm::kFlat : Algorithm::kDirect;
    case Verb::kAllGather:
      if (few) return Algorithm::kFlat;
      if (small) return Algorithm::kBruck;
      return many ? Algorithm::kRing : Algorithm::kFlat;
    default:
      return Algorithm::kFlat;
  }
}

}  // namespace hlaunch
