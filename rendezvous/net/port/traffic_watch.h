// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/net/port/connection_guard.h"

namespace hlaunch {

// How much one connection may send: a burst, and a rate in the long run. An agent sends some
// hundred bytes a second, and at most 256 KiB at once. A value.
class TrafficAllowance {
 public:
  static constexpr int64_t kBurstBytes = 320 << 10;
  static constexpr int64_t kBytesPerSecond = 32 << 10;

  explicit TrafficAllowance(Instant now) : counted_(now) {}

  // Returns whether a connection that has sent `total` bytes since it began is within its
  // allowance.
  bool Covers(uint64_t total, Instant now);

 private:
  Instant counted_;
  uint64_t total_ = 0;
  int64_t left_ = kBurstBytes;
};

// Closes connections that send more than their TrafficAllowance, although another owner reads them:
// gRPC 1.51 takes all that a peer sends, and a peer that opens and resets streams without end keeps
// gRPC from serving the others. The source of such a connection is barred for a while; so is that
// of a connection that its guard found to be a flood.
//
// Belongs to one thread. Holds no descriptor: it recognizes a socket by its cookie, even if the
// owner has closed the socket and its number belongs to another one.
class TrafficWatch {
 public:
  static constexpr Duration kBarred = std::chrono::seconds(30);
  static constexpr size_t kMaxBarred = 1024;  // At most this many sources at a time.

  // Watches the TCP socket `fd` from now on, until its owner closes it. `guard` may be null.
  void Add(int fd, std::shared_ptr<const ConnectionGuard> guard, Instant now);

  // Closes the connections that have sent too much, and those that are floods. Returns the
  // addresses of their other ends.
  std::vector<std::string> Look(Instant now);

  // Returns whether a connection from `address` has sent too much in the last kBarred.
  bool IsBarred(const std::string& address, Instant now) const;

 private:
  struct Watched {
    uint64_t cookie;
    TrafficAllowance allowance;
    std::shared_ptr<const ConnectionGuard> guard;
    std::string host;  // Of its other end. The kernel does not tell it once the peer is gone.
  };

  void Bar(const std::string& host, Instant now);

  absl::flat_hash_map<int, Watched> sockets_;  // By descriptor; some have been closed meanwhile.
  std::map<std::string, Instant> barred_;      // Until when, by address.
};

// Return the address of the other end of the connected socket `fd`, "10.0.0.7" (empty if it has
// none), and its port (0 if it has none).
std::string PeerHost(int fd);
uint16_t PeerPort(int fd);

// Ends the connection of the socket `fd` if `cookie` is still its cookie. To the owner it looks as
// if the peer had closed the connection. Returns false if it is another socket.
bool CloseSocket(int fd, uint64_t cookie);

// Returns the kernel's number of a socket, which is never used twice; unset if `fd` is no socket.
std::optional<uint64_t> CookieOf(int fd);

}  // namespace hlaunch
