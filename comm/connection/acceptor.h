// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/connection/connection.h"
#include "comm/connection/greeting.h"
#include "comm/connection/rank_address.h"
#include "comm/connection/single_copy.h"
#include "proto/base/clock.h"
#include "proto/base/rare_log.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/ids.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {

// What greetings say about this rank and its group. A value.
struct GroupPlace {
  std::string group;   // The group's name.
  std::string secret;  // The secret of the round. Empty: the token in each rank's address is used.
  Rank rank = 0;
  int size = 1;
  Round round = 0;  // 0 if it is not known.
  std::string host = {};
};
// Return the key for greetings with the rank at the address `acceptor`, and the Hello of `self` to
// the rank `to`.
GreetingKey KeyFor(const GroupPlace& self, const RankAddress& acceptor);
Hello HelloFrom(const GroupPlace& self, Rank to);

// A new connection whose sender has proved itself, or a further stream of such a connection.
struct Accepted {
  Rank rank;
  std::string host;
  std::string from;  // The sender's address, for messages.
  bool local;        // The rank is on this host, and the connection uses shared memory.
  std::unique_ptr<InConnection> connection;  // Null for a further stream.
  int stream = 0;                            // The number of a further stream, else 0.
  UniqueFd fd{};                             // The socket of a further stream.
};

// Returns how many sockets may be in the middle of their greeting if the process may have
// `descriptors` descriptors. Pure.
size_t MostGreetings(size_t descriptors);
// How long a socket may stay without a Hello, and with an unfinished greeting. A busy rank may
// answer late; a rank whose socket was closed dials again.
inline constexpr Duration kSilenceLimit = std::chrono::seconds(10);
inline constexpr Duration kGreetingLimit = std::chrono::seconds(60);

// Two listening sockets, one for this host and one for TCP, and the new sockets that are in the
// middle of their greeting. The number and the time of these sockets are limited: if there are too
// many, the acceptor closes the oldest one that has sent no Hello, or else the oldest one. A socket
// that fails its greeting is closed and has no other effect; a line in the log tells it, at most
// one in ten seconds. On this host's socket only this user and root are heard. Belongs to one
// thread; never blocks.
class Acceptor {
 public:
  // `address` is an IP literal of this host, for TCP.
  //
  // Errors: as Listen; ResourceExhausted - this process is out of descriptors.
  static absl::StatusOr<Acceptor> Open(const std::string& address, GroupPlace place);

  const RankAddress& address() const { return address_; }
  // Readable when Accept has something to do; for an epoll that is not edge-triggered.
  int fd() const { return epoll_.get(); }
  bool has_pending() const { return !pending_.empty(); }

  // Accepts new sockets, continues their greetings, and returns the connections whose greeting has
  // succeeded.
  std::vector<Accepted> Accept(SingleCopy single_copy = SingleCopy::kUnlessSlow);

  // Tells all ranks in the middle of their greeting that this rank has left.
  void TellLeft();
  // Closes all sockets. A rank that dials later is refused at once.
  void Close();

 private:
  struct Pending {
    UniqueFd fd;
    bool local;
    std::string from;
    Instant since;
    AcceptingGreeting greeting;
    UniqueFd passed{};  // The descriptor that came with the proof.
  };
  using PendingById = std::map<uint64_t, Pending>;  // The oldest is first.

  void AcceptFrom(const UniqueFd& listener, bool local, Instant now);
  void Watch(int fd, uint64_t id) const;
  // Continues the greeting. Returns true if `pending` is over, with or without success.
  bool Continue(Pending* pending, SingleCopy single_copy, std::vector<Accepted>* accepted);
  std::optional<Accepted> Finish(Pending* pending, SingleCopy single_copy) const;
  void MakeRoom();
  void Expire(Instant now);
  void Warn(const Pending& pending);
  void Say(const std::string& warning);

  GroupPlace place_;
  RankAddress address_;
  size_t most_pending_ = 0;
  UniqueFd epoll_;
  UniqueFd local_;
  ListeningSocket tcp_;
  uint64_t next_id_ = 2;  // 0 and 1 are the listeners.
  PendingById pending_;
  RareLog warnings_;
};

}  // namespace hlaunch
