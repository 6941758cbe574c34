// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/handshake_queue.h"

#include <algorithm>
#include <utility>

#include "rendezvous/net/port/traffic_watch.h"

namespace hlaunch {

void HandshakeQueue::DropFirst(Queues::iterator queue) {
  queue->second.pop_front();
  --waiting_count_;
  if (queue->second.empty()) waiting_.erase(queue);
}

std::string HandshakeQueue::Add(UniqueFd fd, Instant deadline) {
  const std::string address = PeerHost(fd.get());
  waiting_[address].push_back({std::move(fd), deadline});
  if (++waiting_count_ <= most_waiting_) return "";
  const auto longest = std::max_element(
      waiting_.begin(), waiting_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::string closed = longest->first;
  DropFirst(longest);
  return closed;
}

UniqueFd HandshakeQueue::Next() {
  if (under_way_.size() >= kMost) return UniqueFd();
  auto queue = waiting_.upper_bound(last_);
  for (size_t looked = 0; looked < waiting_.size(); ++looked, ++queue) {
    if (queue == waiting_.end()) queue = waiting_.begin();
    const auto begun = of_one_.find(queue->first);
    if (begun != of_one_.end() && begun->second >= kMostOfOne) continue;
    last_ = queue->first;
    UniqueFd fd = std::move(queue->second.front().fd);
    DropFirst(queue);
    return fd;
  }
  return UniqueFd();
}

void HandshakeQueue::Begun(int fd, std::shared_ptr<const ConnectionGuard> guard, Instant now) {
  const auto cookie = CookieOf(fd);
  if (!cookie) return;
  under_way_.push_back({fd, *cookie, std::move(guard), PeerHost(fd), now});
  ++of_one_[under_way_.back().address];
}

size_t HandshakeQueue::Look(Instant now) {
  size_t ended = 0;
  for (auto one = under_way_.begin(); one != under_way_.end();) {
    bool over = one->guard->shaken() || CookieOf(one->fd) != one->cookie;
    if (!over && now - one->began >= kPatience) {
      CloseSocket(one->fd, one->cookie);
      ++ended;
      over = true;
    }
    if (!over) {
      ++one;
      continue;
    }
    const auto count = of_one_.find(one->address);
    if (--count->second == 0) of_one_.erase(count);
    one = under_way_.erase(one);
  }
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto queue = next++;
    for (size_t left = queue->second.size(); left > 0 && queue->second.front().deadline <= now;
         --left) {
      DropFirst(queue);
      ++ended;
    }
  }
  return ended;
}

}  // namespace hlaunch
