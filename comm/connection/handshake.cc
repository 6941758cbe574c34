// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/handshake.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hlaunch {

Handshake MakeHandshake(const RankAddress& to, Rank self, const std::string& own_host) {
  Handshake handshake{};
  to.token.copy(handshake.token, sizeof handshake.token);
  handshake.rank = self;
  handshake.proof = OwnPullProof();
  own_host.copy(handshake.host, sizeof handshake.host - 1);
  return handshake;
}

bool SendWithDescriptor(int socket, const Handshake& handshake, int descriptor) {
  iovec data{const_cast<Handshake*>(&handshake), sizeof handshake};
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
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof handshake;
}

ssize_t ReceiveWithDescriptor(int socket, void* into, size_t size, UniqueFd* passed) {
  iovec data{into, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
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

absl::Status SystemError(const std::string& what) {
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
  const std::string text = absl::StrCat(what, ": ", std::strerror(errno));
  return exhausted ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

}  // namespace hlaunch
