// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/tcp_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

namespace hlaunch::tcp {
namespace {

constexpr int kMostUnsent = 512 << 10;
constexpr size_t kPartStep = 4096;

}  // namespace

size_t PartBegin(size_t size, int streams, int stream) {
  const size_t each = (size / static_cast<size_t>(streams) + kPartStep) / kPartStep * kPartStep;
  return std::min(size, each * static_cast<size_t>(stream));
}

size_t ReceiveSome(int socket, std::span<std::byte> into, bool* ended) {
  while (true) {
    const ssize_t got = ::recv(socket, into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return static_cast<size_t>(got);
    if (got < 0 && errno == EINTR) continue;
    *ended = *ended || got == 0 || errno != EAGAIN;
    return 0;
  }
}

SendResult SendSome(int socket, std::span<iovec> parts) {
  size_t done = 0;
  while (!parts.empty()) {
    if (parts.front().iov_len == 0) {
      parts = parts.subspan(1);
      continue;
    }
    msghdr what{};
    what.msg_iov = parts.data();
    what.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(socket, &what, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return {done, errno != EAGAIN};
    done += sent;
    for (size_t left = sent; left > 0;) {
      const size_t part = std::min(left, parts.front().iov_len);
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + part;
      parts.front().iov_len -= part;
      left -= part;
      if (parts.front().iov_len == 0 && left > 0) parts = parts.subspan(1);
    }
  }
  return {done};
}

void LimitUnsent(int socket) {
  const int most = kMostUnsent;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
}

size_t ReadAheadStream::Read(std::span<std::byte> into, bool* ended) {
  size_t done = TakeAhead(into);
  while (done < into.size()) {
    const std::span<std::byte> rest = into.subspan(done);
    const bool ahead = rest.size() < sizeof ahead_;
    const size_t got = ReceiveSome(socket_, ahead ? std::span(ahead_) : rest, ended);
    if (got == 0) return done;
    begin_ = 0;
    end_ = ahead ? got : 0;
    done += ahead ? TakeAhead(rest) : got;
  }
  return done;
}

size_t ReadAheadStream::TakeAhead(std::span<std::byte> into) {
  const size_t size = std::min(into.size(), end_ - begin_);
  if (size == 0) return 0;
  std::memcpy(into.data(), ahead_ + begin_, size);
  begin_ += size;
  return size;
}

}  // namespace hlaunch::tcp
