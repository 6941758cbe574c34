// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/cluster/head/head_table.h"

namespace hlaunch {

// How long jobs waited until they were placed, since this head began. Belongs to one thread.
class PlaceTimes {
 public:
  void Add(const std::vector<int64_t>& waits_ms);
  std::string Text() const;  // In Prometheus' format.

 private:
  uint64_t count_ = 0;
  int64_t sum_ms_ = 0;
};

// When certificates run out, in seconds since 1970. A value.
struct CertificateEnds {
  std::time_t head = 0;
  std::optional<std::time_t> first_host;  // Unset: no host has come yet.
};

// Returns the metrics in Prometheus' text format. manual/monitoring.md describes each. `wall_ms` is
// the time now.
std::string HeadMetrics(const HeadTable& table, const PlaceTimes& times,
                        const CertificateEnds& ends, int64_t wall_ms);

// The cluster's state for the service manager: "3 of 4 hosts there; jobs: 2 placed, 5 waiting".
std::string HeadStatus(const HeadTable& table);

}  // namespace hlaunch
