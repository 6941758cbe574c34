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
#include "rendezvous/listening/listen.h"

namespace hlaunch {

// Who this rank is in its group, as far as greetings say it. A value.
struct GroupPlace {
  std::string group;   // Its name.
  std::string secret;  // Of the round; empty: the token in each rank's address is used instead.
  Rank rank = 0;
  int size = 1;
  Round round = 0;  // 0: not known.
  std::string host = {};
};
// The key for greetings at `acceptor`'s address, and the Hello of `self` to the rank `to`.
GreetingKey KeyFor(const GroupPlace& self, const RankAddress& acceptor);
Hello HelloFrom(const GroupPlace& self, Rank to);

// A new connection whose sender has proved itself, or a further stream of one.
struct Accepted {
  Rank rank;
  std::string host;
  std::string from;  // The sender's address, for messages.
  bool local;        // The rank is on this host, and the connection uses shared memory.
  std::unique_ptr<InConnection> connection;  // Null for a further stream.
  int stream = 0;                            // The number of a further stream, and
  UniqueFd fd{};                             // its socket.
};

// How many sockets may be in the middle of their greeting, of a process that may have so many
// descriptors. Pure.
size_t MostGreetings(size_t descriptors);
// How long a socket may stay without a word, and with an unfinished greeting. A rank that is busy
// elsewhere answers late; one whose socket was closed dials again.
inline constexpr Duration kSilenceLimit = std::chrono::seconds(10);
inline constexpr Duration kGreetingLimit = std::chrono::seconds(60);

// Two listening sockets, one for this host and one for TCP, and the new sockets that are in the
// middle of their greeting. These are bounded in number and time: when there are too many, the
// oldest silent one is closed, then the oldest. A socket that fails its greeting is closed with a
// line in the log, at most one in ten seconds, and changes nothing. Belongs to one thread; never
// blocks.
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

  // Accepts new sockets, goes on with their greetings and returns those that are over.
  std::vector<Accepted> Accept(SingleCopy single_copy = SingleCopy::kUnlessSlow);

  // Tells all that are in the middle of their greeting that this rank has left.
  void TellLeft();
  // Closes all sockets: who dials is refused at once.
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
  using PendingById = std::map<uint64_t, Pending>;  // The oldest first.

  void AcceptFrom(const UniqueFd& listener, bool local, Instant now);
  void Watch(int fd, uint64_t id) const;
  // Reads on; true if `pending` is over, with or without success.
  bool Continue(Pending* pending, SingleCopy single_copy, std::vector<Accepted>* accepted);
  std::optional<Accepted> Finish(Pending* pending, SingleCopy single_copy) const;
  void MakeRoom();
  void Expire(Instant now);
  void Warn(const Pending& pending);

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
