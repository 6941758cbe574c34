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
#include "rendezvous/store/access/store_access.h"

namespace hlaunch {

// The clients of a master store that have connected but completed no request; finds those that are
// too many. A client is a stranger until a client from its address has completed a request: one
// honest client may be silent, but not all clients of its host. Does no I/O; belongs to one thread.
// Every method is O(log n), except for the first request from an address, which is O(log n) for
// each of its clients.
class SilentClients {
 public:
  using Id = uint64_t;

  struct Limits {
    size_t strangers = 0;  // Strangers that may stay without a limit of time.
    Duration patience{};   // If there are more, those older than this must go.
    size_t all = 0;        // The limit of all silent clients, strangers or not.
  };

  explicit SilentClients(const Limits& limits) : limits_(limits) {}

  void Came(Id client, const StoreAddress& source, Instant now);
  // Call this when the client has completed a request.
  void Spoke(Id client);
  void Gone(Id client);
  void Clear();

  // True if there are more clients than the limits allow, whatever their age.
  bool crowded() const {
    return strangers_.size() > limits_.strangers || silent_.size() > limits_.all;
  }
  // Returns the clients that must be closed now, the oldest strangers first, and forgets them.
  std::vector<Id> TakeSuperfluous(Instant now);
  // Returns the earliest time when TakeSuperfluous has something to do if no client comes;
  // Instant::max() if never.
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
  std::set<StoreAddress> known_;  // Addresses from which a client has completed a request.
  Line strangers_;
  Line others_;                             // Clients from known addresses.
  std::map<StoreAddress, Line> by_source_;  // The strangers of each address.
};

}  // namespace hlaunch
