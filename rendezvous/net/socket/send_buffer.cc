// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/send_buffer.h"

#include <sys/socket.h>

#include <cerrno>

namespace hlaunch {
namespace {

constexpr size_t kKeptBytes = 4 << 10;  // Memory that an empty buffer may keep.

}  // namespace

SendBuffer::~SendBuffer() { Clear(); }

void SendBuffer::Recount() {
  if (sum_ != nullptr) *sum_ += text_.size() - counted_;
  counted_ = text_.size();
}

void SendBuffer::Clear() {
  std::string().swap(text_);  // Assigned, it would keep its memory.
  sent_ = 0;
  Recount();
}

bool SendBuffer::SendTo(int fd) {
  while (size() > 0) {
    const ssize_t put = ::send(fd, text_.data() + sent_, size(), MSG_NOSIGNAL);
    if (put >= 0) {
      sent_ += static_cast<size_t>(put);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return false;
    }
  }
  // At least as many bytes are dropped as are moved, so a peer that is always behind costs no more
  // than one that reads.
  if (sent_ >= size()) {
    text_.erase(0, sent_);
    sent_ = 0;
    if (text_.empty() && text_.capacity() > kKeptBytes) text_.shrink_to_fit();
  }
  Recount();
  return true;
}

}  // namespace hlaunch
