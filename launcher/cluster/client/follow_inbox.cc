// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/follow_inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace hlaunch {
namespace {

constexpr size_t kMaxBytes = 8 << 20;

size_t BytesOf(const FollowNews& news) {
  size_t bytes = 0;
  for (const LogLine& line : news.lines) bytes += line.text.size() + sizeof(LogLine);
  return bytes;
}

}  // namespace

FollowInbox::FollowInbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void FollowInbox::Put(FollowNews news) {
  MutexLock lock(&mu_);
  while (bytes_ >= kMaxBytes && !closed_) room_.Wait(&mu_);
  if (closed_) return;
  bytes_ += BytesOf(news);
  news_.push_back(std::move(news));
  ::eventfd_write(wake_.get(), 1);
}

std::deque<FollowNews> FollowInbox::Take() {
  MutexLock lock(&mu_);
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  bytes_ = 0;
  room_.SignalAll();
  return std::exchange(news_, {});
}

void FollowInbox::Close() {
  MutexLock lock(&mu_);
  closed_ = true;
  room_.SignalAll();
}

}  // namespace hlaunch
