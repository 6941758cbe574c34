// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/peer/loopback_peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

// One end of a connection, as the kernel's question names it.
struct End {
  uint8_t family = 0;  // 0 if the socket is not connected.
  __be16 port = 0;
  __be32 words[4] = {};
  uint32_t scope = 0;  // The interface of a link-local address, else 0.
};

using NameFn = int (*)(int fd, sockaddr* address, socklen_t* size);

End EndOf(int fd, NameFn name) {
  End end;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (name(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return end;
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    end.port = four.sin_port;
    std::memcpy(end.words, &four.sin_addr, sizeof(four.sin_addr));
  } else if (address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    end.port = six.sin6_port;
    end.scope = six.sin6_scope_id;
    std::memcpy(end.words, &six.sin6_addr, sizeof(six.sin6_addr));
  } else {
    return end;
  }
  end.family = static_cast<uint8_t>(address.ss_family);
  return end;
}

// Asks for the socket of this host whose own address is `own`, and whose peer's is `other`.
//
// Errors: as UserOfLoopbackPeer. A kernel without this table says NotFound, too.
absl::StatusOr<inet_diag_msg> FindSocket(const End& own, const End& other) {
  if (own.family == 0 || other.family == 0) return Gone();
  Question question{};
  inet_diag_sockid& id = question.request.id;
  question.request.sdiag_family = own.family;
  id.idiag_sport = own.port;
  id.idiag_dport = other.port;
  std::memcpy(id.idiag_src, own.words, sizeof(own.words));
  std::memcpy(id.idiag_dst, other.words, sizeof(other.words));
  id.idiag_if = other.scope;
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
  // process, and many kernels say that it is root's. One that still connects is not the one whose
  // other end is connected.
  if (answer.socket.id.idiag_dport != id.idiag_dport || answer.socket.idiag_inode == 0 ||
      answer.socket.idiag_state == TCP_SYN_SENT) {
    return Gone();
  }
  return answer.socket;
}

// Finds the user of the socket from `own` to `other`. `fd` is a connected socket of this process.
absl::StatusOr<uid_t> UserOf(const End& own, const End& other, int fd) {
  const absl::StatusOr<inet_diag_msg> found = FindSocket(own, other);
  const bool no_table =
      absl::IsNotFound(found.status()) &&
      absl::IsNotFound(FindSocket(EndOf(fd, ::getsockname), EndOf(fd, ::getpeername)).status());
  // Once a connection is reset, another one may have the same two addresses.
  if (EndOf(fd, ::getpeername).family == 0) return Gone();
  if (no_table) return NoAnswer(EOPNOTSUPP);
  HLAUNCH_RETURN_IF_ERROR(found.status());
  return found->idiag_uid;
}

}  // namespace

absl::StatusOr<uid_t> UserOfLoopbackPeer(int fd) {
  return UserOf(EndOf(fd, ::getpeername), EndOf(fd, ::getsockname), fd);
}

absl::StatusOr<uid_t> UserOfSibling(int fd, const std::array<uint8_t, 16>& address, uint16_t port) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const End other = EndOf(fd, ::getpeername);
  End own = other;
  own.port = htons(port);
  const bool four = std::memcmp(address.data(), kMapped, sizeof(kMapped)) == 0;
  if (own.family == AF_INET && !four) return Gone();
  if (own.family == AF_INET) {
    std::memcpy(own.words, address.data() + sizeof(kMapped), 4);
  } else {
    std::memcpy(own.words, address.data(), address.size());
  }
  return UserOf(own, other, fd);
}

bool IsOwnUser(uid_t user) { return user == ::geteuid() || user == 0; }

absl::Status CheckPeerIsOwn(int fd) {
  const absl::StatusOr<uid_t> user = UserOfLoopbackPeer(fd);
  if (absl::IsUnavailable(user.status())) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(user.status());
  if (IsOwnUser(*user)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("a connection of the user ", *user));
}

}  // namespace hlaunch
