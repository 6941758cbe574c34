// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/event_poll.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {

absl::StatusOr<EventPoll> EventPoll::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll: ", std::strerror(errno)));
  }
  EventPoll poll(std::move(epoll), std::move(wake));
  poll.Watch(poll.wake_.get(), EPOLLIN, kWoken, 0);
  return poll;
}

void EventPoll::Watch(int fd, uint32_t events, Source source, Rank rank) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(rank);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

void EventPoll::Wake() const {
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) return;  // The event is set already.
}

bool EventPoll::ClearWake() const {
  uint64_t ignored;
  return ::read(wake_.get(), &ignored, sizeof ignored) >= 0;
}

}  // namespace hlaunch
