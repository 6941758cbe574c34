// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// How much one connection may send: a burst, and a rate in the long run. An agent sends some
// hundred bytes a second, and at most 256 KiB at once. A value.
class TrafficAllowance {
 public:
  static constexpr int64_t kBurstBytes = 320 << 10;
  static constexpr int64_t kBytesPerSecond = 32 << 10;

  explicit TrafficAllowance(Instant now) : counted_(now) {}

  // Returns whether a connection that has sent `total` bytes since it began is within it.
  bool Covers(uint64_t total, Instant now);

 private:
  Instant counted_;
  uint64_t total_ = 0;
  int64_t left_ = kBurstBytes;
};

// Closes connections that send more than their TrafficAllowance, although another owner reads them:
// gRPC 1.51 takes all that a peer sends, and one that opens and resets streams without end keeps it
// from serving the others. Their source may not come again for a while.
//
// Belongs to one thread. Holds no descriptor: it knows a socket again by its cookie, also where its
// owner has closed it and the number has become another's.
class TrafficWatch {
 public:
  static constexpr Duration kBarred = std::chrono::seconds(30);

  // From now on the TCP socket `fd` is watched, until its owner closes it.
  void Add(int fd, Instant now);

  // Closes those that have sent too much. Returns the addresses of their other ends.
  std::vector<std::string> Look(Instant now);

  // Whether one at the address has sent too much in the last kBarred.
  bool IsBarred(const std::string& address, Instant now);

 private:
  struct Watched {
    uint64_t cookie;
    TrafficAllowance allowance;
  };

  absl::flat_hash_map<int, Watched> sockets_;  // By descriptor; some have been closed meanwhile.
  std::map<std::string, Instant> barred_;      // Until when.
};

// The address of the other end of the connected socket `fd`, "10.0.0.7"; empty if it has none. Its
// port; 0 if it has none.
std::string PeerHost(int fd);
uint16_t PeerPort(int fd);

// The kernel's number of a socket, which is never used twice; unset if `fd` is none.
std::optional<uint64_t> CookieOf(int fd);

}  // namespace hlaunch
