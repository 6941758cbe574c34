// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/listening/peer/loopback_peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// The kernel's question and answer about one socket.
struct Question {
  nlmsghdr head;
  inet_diag_req_v2 request;
};
struct Answer {
  nlmsghdr head;
  union {
    nlmsgerr error;
    inet_diag_msg socket;
  };
  char attributes[512];  // They are not read.
};

absl::Status Gone() { return absl::NotFoundError("no process of this host has the other end"); }

// Says in which way the kernel does not answer: it has no such table, or something is lacking now.
absl::Status NoAnswer(int error) {
  const std::string why = absl::StrCat("whose a connection is: ", std::strerror(error));
  for (const int lasting :
       {EPERM, EACCES, ENOSYS, EINVAL, EAFNOSUPPORT, EPROTONOSUPPORT, EOPNOTSUPP}) {
    if (error == lasting) return absl::UnavailableError(why);
  }
  return absl::ResourceExhaustedError(why);
}

using NameFn = int (*)(int fd, sockaddr* address, socklen_t* size);

// Writes one of the two addresses of `fd`. Returns the family, or 0 if the socket is not connected.
uint8_t WriteAddress(int fd, NameFn name, __be16* port, __be32 (&words)[4]) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (name(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    *port = four.sin_port;
    std::memcpy(words, &four.sin_addr, sizeof(four.sin_addr));
    return AF_INET;
  }
  if (address.ss_family != AF_INET6) return 0;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  *port = six.sin6_port;
  std::memcpy(words, &six.sin6_addr, sizeof(six.sin6_addr));
  return AF_INET6;
}

bool IsConnected(int fd) {
  __be16 port;
  __be32 words[4];
  return WriteAddress(fd, ::getpeername, &port, words) != 0;
}

// Asks for the socket whose own address is `fd`'s by `own`, and whose peer's is `fd`'s by `other`.
//
// Errors: as UserOfLoopbackPeer. A kernel without this table says NotFound, too.
absl::StatusOr<inet_diag_msg> FindSocket(int fd, NameFn own, NameFn other) {
  Question question{};
  inet_diag_sockid& id = question.request.id;
  question.request.sdiag_family = WriteAddress(fd, own, &id.idiag_sport, id.idiag_src);
  const uint8_t of_other = WriteAddress(fd, other, &id.idiag_dport, id.idiag_dst);
  if (question.request.sdiag_family == 0 || of_other == 0) return Gone();
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  question.head.nlmsg_len = sizeof(question);
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = ~0U;
  const UniqueFd netlink(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  Answer answer{};
  // The answer is there once the question is sent.
  if (!netlink.valid() || ::send(netlink.get(), &question, sizeof(question), 0) < 0 ||
      ::recv(netlink.get(), &answer, sizeof(answer), 0) < 0) {
    return NoAnswer(errno);
  }
  if (answer.head.nlmsg_type == NLMSG_ERROR) {
    return answer.error.error == -ENOENT ? Gone() : NoAnswer(-answer.error.error);
  }
  // A listening socket is found where no connection is. A socket without inode was closed by its
  // process, and many kernels say that it is root's.
  if (answer.socket.id.idiag_dport != id.idiag_dport || answer.socket.idiag_inode == 0) {
    return Gone();
  }
  return answer.socket;
}

}  // namespace

absl::StatusOr<uid_t> UserOfLoopbackPeer(int fd) {
  const absl::StatusOr<inet_diag_msg> peer = FindSocket(fd, ::getpeername, ::getsockname);
  const bool no_table = absl::IsNotFound(peer.status()) &&
                        absl::IsNotFound(FindSocket(fd, ::getsockname, ::getpeername).status());
  // Once a connection is reset, another one may have the same two addresses.
  if (!IsConnected(fd)) return Gone();
  if (no_table) return NoAnswer(EOPNOTSUPP);
  HLAUNCH_RETURN_IF_ERROR(peer.status());
  return peer->idiag_uid;
}

absl::Status CheckPeerIsOwn(int fd) {
  const absl::StatusOr<uid_t> user = UserOfLoopbackPeer(fd);
  if (absl::IsUnavailable(user.status())) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(user.status());
  if (*user == ::geteuid() || *user == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("a connection of the user ", *user));
}

}  // namespace hlaunch
