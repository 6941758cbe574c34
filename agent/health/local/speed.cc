// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/speed.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace hlaunch {
namespace {

// Integers: steps of a linear congruence, each of which waits for the one before. Squaring the step
// kDoublings times gives the known end.
constexpr int kDoublings = 19;
constexpr uint64_t kFactor = 6364136223846793005;
constexpr uint64_t kSummand = 1442695040888963407;

constexpr uint64_t EndOfChain(uint64_t start) {
  uint64_t factor = kFactor;
  uint64_t summand = kSummand;
  for (int i = 0; i < kDoublings; ++i) {
    summand = factor * summand + summand;
    factor = factor * factor;
  }
  return factor * start + summand;
}

uint64_t WalkChain(uint64_t at) {
  for (int64_t i = 0; i < int64_t{1} << kDoublings; ++i) at = at * kFactor + kSummand;
  return at;
}

// Floating point: sums of whole numbers, which are exact in any order.
constexpr int kTerms = 4096;
constexpr int kSums = 64;

double SumTerms(const std::array<double, kTerms>& terms, double factor) {
  std::array<double, 8> sums{};
  for (int i = 0; i < kSums; ++i) {
    for (size_t at = 0; at < terms.size(); at += sums.size()) {
      for (size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += terms[at + lane] * factor;
    }
  }
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

constexpr double SumKnown(double factor) {
  return factor * kSums * (static_cast<double>(kTerms) * (kTerms - 1) / 2);
}

Duration CpuTime() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

CpuSpeed MeasureCpu(int repetitions) {
  CpuSpeed speed{Duration::max(), true};
  std::array<double, kTerms> terms;
  for (int i = 0; i < kTerms; ++i) terms[static_cast<size_t>(i)] = i;
  for (int i = 0; i < repetitions; ++i) {
    // Volatile, so that the compiler does not do the work in advance.
    volatile uint64_t start = static_cast<uint64_t>(i) + 1;
    volatile double factor = i + 1;
    const Duration before = CpuTime();
    const bool integers = WalkChain(start) == EndOfChain(static_cast<uint64_t>(i) + 1);
    const bool numbers = SumTerms(terms, factor) == SumKnown(i + 1);
    speed.time = std::min(speed.time, CpuTime() - before);
    speed.exact = speed.exact && integers && numbers;
  }
  return speed;
}

double MeasureMemory(size_t bytes, int repetitions) {
  const std::unique_ptr<char[]> from(new (std::nothrow) char[bytes]);
  const std::unique_ptr<char[]> to(new (std::nothrow) char[bytes]);
  if (from == nullptr || to == nullptr) return 0;
  std::memset(from.get(), 1, bytes);
  std::memset(to.get(), 2, bytes);
  double best = 0;
  for (int i = 0; i < repetitions; ++i) {
    from[bytes / 2] = static_cast<char>(i);
    const Duration before = CpuTime();
    std::memcpy(to.get(), from.get(), bytes);
    const std::chrono::duration<double> seconds = CpuTime() - before;
    if (to[bytes / 2] != static_cast<char>(i)) return 0;
    if (seconds.count() > 0) best = std::max(best, static_cast<double>(bytes) / seconds.count());
  }
  return best;
}

}  // namespace hlaunch
