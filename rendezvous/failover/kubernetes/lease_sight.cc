// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/kubernetes/lease_sight.h"

#include <algorithm>

namespace hlaunch {
namespace {

// Longer durations in the object are cut to this; only a person would write one.
constexpr int64_t kLongestSeconds = 3600;

}  // namespace

bool LeaseSight::HasRunOut(const LeaseObject& lease, Instant now) {
  if (lease.holder.empty()) return true;
  if (lease.version != version_) {
    version_ = lease.version;
    since_ = now;
  }
  const auto whole = std::chrono::seconds(std::clamp<int64_t>(lease.seconds, 1, kLongestSeconds));
  return now - since_ >= whole;
}

}  // namespace hlaunch
