// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/head/head_table.h"

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

// In Prometheus' text format; manual/monitoring.md names each.
std::string HeadMetrics(const HeadTable& table, const PlaceTimes& times);

// Where the cluster stands, for the service manager: "3 hosts of 4; 2 jobs run, 5 wait".
std::string HeadStatus(const HeadTable& table);

}  // namespace hlaunch
