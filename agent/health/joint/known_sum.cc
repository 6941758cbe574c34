// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/known_sum.h"

#include <cstddef>

namespace hlaunch {
namespace {

// A term is factor * (rank + 1) + summand; no sum of 2^16 ranks overflows.
struct Element {
  int64_t factor;   // Below 2^20.
  int64_t summand;  // Below 2^40.
};

// The steps of SplitMix64: any bit may change from one element to the next.
Element ElementAt(uint64_t seed, size_t index) {
  uint64_t bits = (seed + index + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  return {static_cast<int64_t>(bits >> 44), static_cast<int64_t>(bits & 0xffffffffff)};
}

// What a sum depends on in the ranks.
struct Ranks {
  explicit Ranks(std::span<const Rank> ranks) : count(static_cast<int64_t>(ranks.size())) {
    for (const Rank rank : ranks) total += int64_t{rank} + 1;
  }
  int64_t Sum(const Element& element) const {
    return element.factor * total + element.summand * count;
  }
  int64_t total = 0;
  int64_t count;
};

uint64_t Digest(uint64_t so_far, int64_t value) {
  return (so_far ^ static_cast<uint64_t>(value)) * 0x100000001b3;
}

}  // namespace

void FillTerms(Rank rank, uint64_t seed, std::span<int64_t> terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    const Element element = ElementAt(seed, i);
    terms[i] = element.factor * (int64_t{rank} + 1) + element.summand;
  }
}

bool IsSumOf(std::span<const Rank> ranks, uint64_t seed, std::span<const int64_t> sum) {
  const Ranks all(ranks);
  bool exact = true;
  for (size_t i = 0; i < sum.size(); ++i) {
    exact = exact && sum[i] == all.Sum(ElementAt(seed, i));
  }
  return exact;
}

uint64_t DigestOf(std::span<const int64_t> sum) {
  uint64_t digest = 0;
  for (const int64_t value : sum) digest = Digest(digest, value);
  return digest;
}

uint64_t DigestOfSum(std::span<const Rank> ranks, uint64_t seed, size_t length) {
  const Ranks all(ranks);
  uint64_t digest = 0;
  for (size_t i = 0; i < length; ++i) digest = Digest(digest, all.Sum(ElementAt(seed, i)));
  return digest;
}

}  // namespace hlaunch
