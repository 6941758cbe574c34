// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
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

// When certificates run out, in seconds since 1970. A value.
struct CertificateEnds {
  std::time_t head = 0;
  std::optional<std::time_t> first_host;  // Unset: no host has come yet.
};

// In Prometheus' text format; manual/monitoring.md names each. `wall_ms`: now.
std::string HeadMetrics(const HeadTable& table, const PlaceTimes& times,
                        const CertificateEnds& ends, int64_t wall_ms);

// Where the cluster stands, for the service manager: "3 hosts of 4; 2 jobs run, 5 wait".
std::string HeadStatus(const HeadTable& table);

}  // namespace hlaunch
