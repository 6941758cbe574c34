// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/peer_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// The other end of a unix socket, as the kernel knows it.
std::optional<ucred> Peer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  const bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0;
  return known ? std::optional(credentials) : std::nullopt;
}

}  // namespace

bool SendWithDescriptor(int socket, absl::string_view bytes, int descriptor) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

ssize_t ReceiveWithDescriptor(int socket, void* into, size_t size, UniqueFd* passed) {
  iovec data{into, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  // Room for one descriptor; the kernel drops the others.
  message.msg_controllen = CMSG_LEN(sizeof(int));
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    *passed = UniqueFd(fd);
  }
  return got;
}

std::pair<sockaddr_un, socklen_t> AbstractAddress(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  return {address, offsetof(sockaddr_un, sun_path) + 1 + name.size()};
}

void SetNoDelay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::optional<pid_t> PeerPid(int socket) {
  const std::optional<ucred> peer = Peer(socket);
  return peer ? std::optional(peer->pid) : std::nullopt;
}

std::optional<uid_t> OtherUser(int socket) {
  const std::optional<ucred> peer = Peer(socket);
  const bool own = !peer || peer->uid == ::geteuid() || peer->uid == 0;
  return own ? std::nullopt : std::optional(peer->uid);
}

std::string CallerName(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (::getpeername(socket, address, &length) != 0) return "an address that is gone";
  if (storage.ss_family == AF_UNIX) {
    return absl::StrCat("process ", PeerPid(socket).value_or(0), " on this host");
  }
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  ::getnameinfo(address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  const bool v6 = std::strchr(host, ':') != nullptr;
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::Status SystemError(const std::string& what) {
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
  const std::string text = absl::StrCat(what, ": ", std::strerror(errno));
  return exhausted ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

}  // namespace hlaunch
