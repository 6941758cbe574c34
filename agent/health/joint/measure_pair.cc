// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/measure_pair.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "agent/health/joint/known_sum.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int64_t kFirstBlock = 64 << 10;
// For a first block that does not arrive although pings did.
constexpr char kOnlySmall[] =
    "small messages pass, 64 KiB do not: is the MTU of a link larger than the way between the "
    "nodes "
    "carries?";
constexpr double kBlockMicroseconds = 40e3;  // Long enough to be measured, short on a slow link.

Microseconds Since(Instant begin) { return MonotonicClock().Now() - begin; }

class PairMeasurement {
 public:
  PairMeasurement(ProcessGroup& group, const NodePair& pair, const PairTest& test)
      : group_(group),
        test_(test),
        leads_(group.rank() == 0),
        partner_(1 - group.rank()),
        own_(leads_ ? pair.a : pair.b),
        ranks_{pair.a, pair.b} {
    result_.pair = pair;
  }

  PairResult Run() {
    const absl::Status small = Ping();
    const absl::Status large = !small.ok() ? small : leads_ ? Lead() : Follow();
    if (!small.ok()) Failed(std::string(small.message()));
    if (small.ok() && !large.ok()) Failed(blocks_ == 1 ? kOnlySmall : std::string(large.message()));
    return result_;
  }

 private:
  absl::Status Tell(int64_t number) {
    return group_.Send(DataType::kInt64, std::as_bytes(std::span(&number, 1)), partner_);
  }
  absl::StatusOr<int64_t> Hear() {
    int64_t number = 0;
    HLAUNCH_RETURN_IF_ERROR(
        group_.Recv(DataType::kInt64, std::as_writable_bytes(std::span(&number, 1)), partner_)
            .status());
    return number;
  }

  // Takes the best of all pings: a disturbance does not hit every one.
  absl::Status Ping() {
    double best = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < test_.pings; ++i) {
      const Instant begin = MonotonicClock().Now();
      if (leads_) HLAUNCH_RETURN_IF_ERROR(Tell(i));
      HLAUNCH_ASSIGN_OR_RETURN(const int64_t heard, Hear());
      if (!leads_) HLAUNCH_RETURN_IF_ERROR(Tell(heard));
      if (leads_) best = std::min(best, Since(begin).count());
      if (heard != i) Wrong();
    }
    if (leads_) result_.latency_us = best;
    return absl::OkStatus();
  }

  absl::Status Lead() {
    int64_t bytes = std::min(kFirstBlock, test_.block_bytes);
    for (int i = 0; i <= test_.blocks; ++i) {  // The first only sizes the others.
      HLAUNCH_RETURN_IF_ERROR(Tell(bytes));
      HLAUNCH_ASSIGN_OR_RETURN(const double took, AddBlock(bytes));
      if (i > 0) continue;
      const double fits = static_cast<double>(bytes) * kBlockMicroseconds / std::max(1.0, took);
      const auto limit = static_cast<double>(test_.block_bytes);
      bytes = std::max(bytes, static_cast<int64_t>(std::min(fits, limit)) & ~int64_t{7});
    }
    return Tell(0);
  }

  absl::Status Follow() {
    while (true) {
      HLAUNCH_ASSIGN_OR_RETURN(const int64_t bytes, Hear());
      if (bytes == 0) return absl::OkStatus();
      if (bytes < 0 || bytes > test_.block_bytes) {
        Wrong();
        return absl::OkStatus();
      }
      HLAUNCH_RETURN_IF_ERROR(AddBlock(bytes).status());
    }
  }

  // Both ends add a block together. Returns how long it took, in us.
  absl::StatusOr<double> AddBlock(int64_t bytes) {
    const auto length = static_cast<size_t>(bytes) / sizeof(int64_t);
    terms_.resize(length);
    sum_.assign(length, 0);
    const uint64_t seed = static_cast<uint64_t>(++blocks_);
    FillTerms(own_, seed, terms_);
    HLAUNCH_RETURN_IF_ERROR(group_.Run(Barrier()));  // The preparation is not measured.
    const Instant begin = MonotonicClock().Now();
    HLAUNCH_RETURN_IF_ERROR(
        group_.Run(AllReduce(DataType::kInt64, ReduceOp::kSum, std::as_bytes(std::span(terms_)),
                             std::as_writable_bytes(std::span(sum_)))));
    const double took = Since(begin).count();
    // Bits in both directions, per ns.
    result_.gbit_s =
        std::max(result_.gbit_s, 2 * 8 * static_cast<double>(bytes) / std::max(took, 1e-3) / 1e3);
    if (!IsSumOf(ranks_, seed, sum_)) Wrong();
    HLAUNCH_RETURN_IF_ERROR(Tell(static_cast<int64_t>(DigestOf(sum_))));
    HLAUNCH_ASSIGN_OR_RETURN(const int64_t theirs, Hear());
    if (static_cast<uint64_t>(theirs) != DigestOfSum(ranks_, seed, length)) Wrong();
    return took;
  }

  void Failed(std::string why) {
    result_.failed = true;
    result_.why = std::move(why);
  }

  void Wrong() {
    result_.failed = result_.wrong = true;
    result_.why = "numbers that were sent or added came out wrong";
  }

  ProcessGroup& group_;
  const PairTest test_;
  const bool leads_;
  const Rank partner_;
  const Rank own_;
  const std::array<Rank, 2> ranks_;
  PairResult result_;
  int blocks_ = 0;
  std::vector<int64_t> terms_, sum_;
};

}  // namespace

PairResult MeasurePair(ProcessGroup& group, const NodePair& pair, const PairTest& test) {
  return PairMeasurement(group, pair, test).Run();
}

}  // namespace hlaunch
