// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/transport/link.h"
#include "comm/transport/shm_link.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/listening/listen.h"

namespace hlaunch {

// Where a rank can be reached; travels through the store as one line of text.
struct MeetingPoint {
  std::string token;       // Whoever dials says it: proof that they read the store.
  std::string local_name;  // Of the abstract unix socket; not reachable from another host.
  std::string address;     // A literal.
  uint16_t port = 0;
  std::string host;  // For people.
};
std::string ToText(const MeetingPoint& point);
// Errors: InvalidArgument - it is none.
absl::StatusOr<MeetingPoint> ParseMeetingPoint(absl::string_view text);

// What somebody who dialled turned out to be.
struct Caller {
  Rank rank;
  std::string host;
  bool local;  // On this host, and by shared memory.
  std::unique_ptr<InLink> link;
  int stream;     // Not 0: instead of a link,
  UniqueFd side;  // what is to be added to one.
};

// The door of a rank: two sockets that listen, and those who knocked and have not said who they
// are. Belongs to one thread; never blocks.
class Door {
 public:
  // `address` is a literal of this host, for TCP.
  //
  // Errors: as Listen.
  static absl::StatusOr<Door> Open(const std::string& address);

  const MeetingPoint& point() const { return point_; }
  // Descriptors for an epoll that is not edge-triggered: the two that listen.
  std::vector<int> fds() const { return {local_.get(), tcp_.fd.get()}; }

  // Those who came and have said who they are, and, in `strangers`, the descriptors of those who
  // have yet to. Whoever says something wrong is shown out.
  std::vector<Caller> LetIn(SingleCopy single_copy = SingleCopy::kIfFaster);
  std::vector<int> strangers() const;

 private:
  struct Stranger {
    UniqueFd fd;
    bool local;
    std::string said;
  };
  void Accept(int listener, bool local);
  std::optional<Caller> Listen(Stranger* stranger, SingleCopy single_copy, bool* show_out);

  MeetingPoint point_;
  UniqueFd local_;
  ListeningSocket tcp_;
  std::vector<Stranger> strangers_;
};

// Makes the way from `self` to whoever is at `point`: shared memory if that is this host, which
// the attempt shows, and `shared_memory` is wanted, else TCP, with so many streams for large
// messages. Blocks until `deadline` at most.
//
// Errors:
//   Unavailable - nobody is there any more.
//   DeadlineExceeded - no answer.
//   ResourceExhausted - out of descriptors or memory.
absl::StatusOr<std::unique_ptr<OutLink>> Dial(const MeetingPoint& point, Rank self,
                                              const std::string& my_host, bool shared_memory,
                                              int streams, Instant deadline);

}  // namespace hlaunch
