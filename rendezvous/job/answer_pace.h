// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "proto/base/clock.h"

namespace hlaunch {

// Limits how much a node answers on its stream: well below what TrafficWatch takes for an attack,
// because the other traffic of the stream comes on top. However often people ask, no node is cut
// off for its answers.
//
// A value.
class AnswerPace {
 public:
  static constexpr int64_t kBurstBytes = 48 << 10;
  static constexpr int64_t kBytesPerSecond = 12 << 10;

  // Returns when an answer of `bytes` may be sent: at `now`, or later.
  Instant When(size_t bytes, Instant now) const {
    const Duration burst = Cost(kBurstBytes);
    return std::max(now, std::max(paid_until_, now) + Cost(WithFrame(bytes)) - burst);
  }

  // An answer of `bytes` was sent.
  void Sent(size_t bytes, Instant now) {
    paid_until_ = std::max(paid_until_, now) + Cost(WithFrame(bytes));
  }

 private:
  static int64_t WithFrame(size_t bytes) { return static_cast<int64_t>(bytes) + 256; }
  static Duration Cost(int64_t bytes) {
    return std::chrono::microseconds(bytes * 1'000'000 / kBytesPerSecond);
  }

  Instant paid_until_;
};

}  // namespace hlaunch
