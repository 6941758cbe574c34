// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// Everything that can wake a transport: an epoll for its sockets, and an event that other threads
// can set. Belongs to one thread, except for Wake.
class EventPoll {
 public:
  // What an event is about.
  enum Source : uint32_t { kAcceptor = 1, kWoken = 2, kOut = 3, kIn = 4 };
  struct Event {
    Source source;
    Rank rank;  // With kOut and kIn.
  };

  // Errors: ResourceExhausted - this process is out of descriptors.
  static absl::StatusOr<EventPoll> Create();

  // Watches a descriptor that new ranks connect to.
  void WatchAcceptor(int fd) { Watch(fd, EPOLLIN, kAcceptor, 0); }
  // Watches a descriptor of a connection to or from `rank`, edge-triggered.
  void WatchOut(int fd, Rank rank) {
    Watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, kOut, rank);
  }
  void WatchOutStream(int fd, Rank rank) { Watch(fd, EPOLLOUT | EPOLLET, kOut, rank); }
  void WatchIn(int fd, Rank rank) { Watch(fd, EPOLLIN | EPOLLRDHUP | EPOLLET, kIn, rank); }

  // Waits up to `millis`, not at all if that is negative, and calls `handle` for each event;
  // returns how many there were.
  template <typename Handle>
  int Wait(int millis, const Handle& handle) {
    epoll_event events[64];
    const int count = ::epoll_wait(epoll_.get(), events, 64, std::max(millis, 0));
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[i].data.u64;
      handle(Event{static_cast<Source>(tag >> 32), static_cast<Rank>(tag & 0xffffffff)});
    }
    return count;
  }

  // Makes the present or the next Wait return with kWoken. Any thread.
  void Wake() const;
  // Clears the wake-up; returns false if there was none.
  bool ClearWake() const;

 private:
  EventPoll(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  void Watch(int fd, uint32_t events, Source source, Rank rank);

  UniqueFd epoll_;
  UniqueFd wake_;
};

}  // namespace hlaunch
