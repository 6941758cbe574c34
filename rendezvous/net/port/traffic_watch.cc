// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/traffic_watch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/strip.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// Returns the bytes that the peer has sent and the kernel has received; 0 if the kernel does not
// tell.
uint64_t BytesReceived(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;
}

}  // namespace

bool CloseSocket(int fd, uint64_t cookie) {
  const UniqueFd same(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!same.valid() || CookieOf(same.get()) != cookie) return false;
  ::shutdown(same.get(), SHUT_RDWR);
  return true;
}

bool TrafficAllowance::Covers(uint64_t total, Instant now) {
  using Seconds = std::chrono::duration<double>;
  const double earned = std::chrono::duration_cast<Seconds>(now - counted_).count() *
                        static_cast<double>(kBytesPerSecond);
  const double left = static_cast<double>(left_) + earned - static_cast<double>(total - total_);
  left_ = static_cast<int64_t>(std::min(left, static_cast<double>(kBurstBytes)));
  counted_ = now;
  total_ = total;
  return left_ >= 0;
}

void TrafficWatch::Add(int fd, std::shared_ptr<const ConnectionGuard> guard, Instant now) {
  const auto cookie = CookieOf(fd);
  if (!cookie) return;
  sockets_.insert_or_assign(
      fd, Watched{*cookie, TrafficAllowance(now), std::move(guard), PeerHost(fd)});
}

void TrafficWatch::Bar(const std::string& host, Instant now) {
  if (barred_.size() < kMaxBarred) barred_[host] = now + kBarred;
}

std::vector<std::string> TrafficWatch::Look(Instant now) {
  std::erase_if(barred_, [now](const auto& source) { return now >= source.second; });
  std::vector<std::string> closed;
  for (auto it = sockets_.begin(); it != sockets_.end();) {
    const auto current = it++;
    auto& [fd, watched] = *current;
    bool floods = watched.guard != nullptr && watched.guard->flooded();
    if (!floods && CookieOf(fd) == watched.cookie) {
      if (watched.allowance.Covers(BytesReceived(fd), now)) continue;
      floods = true;
    }
    if (floods) {
      CloseSocket(fd, watched.cookie);
      Bar(watched.host, now);
      closed.push_back(std::move(watched.host));
    }
    sockets_.erase(current);
  }
  return closed;
}

bool TrafficWatch::IsBarred(const std::string& address, Instant now) const {
  const auto found = barred_.find(address);
  return found != barred_.end() && now < found->second;
}

std::optional<uint64_t> CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

uint16_t PeerPort(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return 0;
  return ntohs(peer.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&peer)->sin6_port
                                          : reinterpret_cast<const sockaddr_in*>(&peer)->sin_port);
}

std::string PeerHost(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "";
  const bool is_v6 = peer.ss_family == AF_INET6;
  const void* address =
      is_v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&peer)->sin6_addr)
            : &reinterpret_cast<const sockaddr_in*>(&peer)->sin_addr;
  if (::inet_ntop(peer.ss_family, address, text.data(), text.size()) == nullptr) return "";
  return std::string(absl::StripPrefix(text.data(), "::ffff:"));
}

}  // namespace hlaunch
