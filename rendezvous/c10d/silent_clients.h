// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/c10d/store_access.h"

namespace hlaunch {

// The clients of a master store that have connected and completed no request, and which of them are
// one too many. A client is a stranger until one from its address has completed a request: an
// honest one may be silent, but not all that come from its host. Does no I/O; belongs to one
// thread. Every method is O(log n), but for the first request from an address, which is O(log n)
// for each of its clients.
class SilentClients {
 public:
  using Id = uint64_t;

  struct Limits {
    size_t strangers = 0;  // More of them may stay only
    Duration patience{};   // for so long each.
    size_t all = 0;        // So many silent ones at all, whatever they are.
  };

  explicit SilentClients(const Limits& limits) : limits_(limits) {}

  void Came(Id client, const StoreAddress& source, Instant now);
  // It has completed a request.
  void Spoke(Id client);
  void Gone(Id client);
  void Clear();

  // There are more than the limits, of whatever age.
  bool crowded() const {
    return strangers_.size() > limits_.strangers || silent_.size() > limits_.all;
  }
  // Those who must go now, the oldest strangers first; they are forgotten here.
  std::vector<Id> TakeSuperfluous(Instant now);
  // When TakeSuperfluous has something to do at the earliest, if nobody comes: Instant::max()
  // never.
  Instant next() const;

 private:
  using Line = std::set<std::pair<Instant, Id>>;  // The oldest first.
  struct Client {
    StoreAddress source{};
    Instant since;
  };

  Line& LineOf(const StoreAddress& source);

  const Limits limits_;
  std::map<Id, Client> silent_;
  std::set<StoreAddress> known_;  // A client from there has completed a request.
  Line strangers_;
  Line others_;                             // From addresses that are known.
  std::map<StoreAddress, Line> by_source_;  // Strangers.
};

}  // namespace hlaunch
