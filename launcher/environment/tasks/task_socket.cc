// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/tasks/task_socket.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;

constexpr int kBacklog = 8;
constexpr size_t kMaxDescriptors = 16;
constexpr timeval kSendTimeout = {10, 0};  // For a peer that neither reads nor ends.

struct Address {
  sockaddr_un name = {};
  socklen_t length = 0;
};

Address AbstractAddress(const std::string& text) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const size_t size = std::min(text.size(), sizeof(address.name.sun_path) - 1);
  std::memcpy(address.name.sun_path + 1, text.data(), size);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return address;
}

// The user and process of the peer; unset if the kernel does not tell.
std::optional<ucred> CredentialsOf(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

bool IsOwn(int socket) {
  const std::optional<ucred> peer = CredentialsOf(socket);
  return peer && peer->uid == ::geteuid();
}

UniqueFd NewSocket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

absl::Status NoSocket() {
  return absl::ResourceExhaustedError(
      absl::StrCat("no socket for the tasks of this node: ", std::strerror(errno)));
}

absl::Status Gone() { return absl::UnavailableError("another task of this node is gone"); }

// Sends the first bytes of `bytes` with `descriptors`. Returns how many it sent, or -1.
ssize_t SendSome(int socket, absl::string_view bytes, absl::Span<const int> descriptors) {
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

void TakeDescriptors(msghdr& message, std::vector<UniqueFd>& taken) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
      taken.emplace_back(fd);
    }
  }
}

// Reads `size` bytes and the descriptors that come with them.
absl::StatusOr<std::string> ReceiveBytes(int socket, size_t size, Instant deadline,
                                         std::vector<UniqueFd>& descriptors) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const Duration left = std::max(deadline - MonotonicClock().Now(), Duration::zero());
    pollfd readable = {socket, POLLIN, 0};
    const int ready =
        ::poll(&readable, 1, static_cast<int>(std::chrono::ceil<milliseconds>(left).count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return absl::DeadlineExceededError("another task of this node says nothing");
    iovec part = {bytes.data() + done, size - done};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Gone();
    TakeDescriptors(message, descriptors);
    done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

std::string TaskAddress(const std::string& name, int local) {
  return absl::StrCat("hlaunch-task-", ::geteuid(), "-", name, "-", local);
}

absl::StatusOr<UniqueFd> ListenAsTask(const std::string& address) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return NoSocket();
  const Address here = AbstractAddress(address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&here.name), here.length) != 0) {
    if (errno != EADDRINUSE) return NoSocket();
    return absl::AlreadyExistsError(absl::StrCat("the socket @", address, " is another process's"));
  }
  if (::listen(socket.get(), kBacklog) != 0) return NoSocket();
  return socket;
}

UniqueFd AcceptOwn(int listener) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.valid() && !IsOwn(socket.get())) socket.Close();
  if (socket.valid()) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout));
  }
  return socket;
}

absl::StatusOr<UniqueFd> ConnectToTask(const std::string& address) {
  UniqueFd socket = NewSocket();
  if (!socket.valid()) return NoSocket();
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout));
  const Address there = AbstractAddress(address);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there.name), there.length) != 0) {
    if (errno == ECONNREFUSED) return absl::NotFoundError("it is not there");
    return absl::UnavailableError(std::strerror(errno));
  }
  if (!IsOwn(socket.get())) {
    return absl::PermissionDeniedError(
        absl::StrCat("another user's process has the socket @", address));
  }
  return socket;
}

pid_t PeerOf(int socket) {
  const std::optional<ucred> peer = CredentialsOf(socket);
  return peer ? peer->pid : 0;
}

absl::Status SendTaskMessage(int socket, const TaskMessage& message,
                             absl::Span<const int> descriptors) {
  HLAUNCH_CHECK(descriptors.size() <= kMaxDescriptors);
  const std::string bytes = EncodeTaskMessage(message);
  absl::string_view left = bytes;
  while (!left.empty()) {
    const bool is_first = left.size() == bytes.size();
    const ssize_t n = SendSome(socket, left, is_first ? descriptors : absl::Span<const int>());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Gone();
    left.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

std::string CpusAsWord() {
  constexpr size_t kMostCpus = 8192;
  std::string mask(kMostCpus / 8, '\0');
  ::sched_getaffinity(0, mask.size(), reinterpret_cast<cpu_set_t*>(mask.data()));
  return absl::BytesToHexString(mask.substr(0, mask.find_last_not_of('\0') + 1));
}

absl::StatusOr<ReceivedMessage> ReceiveTaskMessage(int socket, Instant deadline) {
  ReceivedMessage received;
  HLAUNCH_ASSIGN_OR_RETURN(const std::string head,
                           ReceiveBytes(socket, kTaskMessageHead, deadline, received.descriptors));
  HLAUNCH_ASSIGN_OR_RETURN(const size_t size, TaskMessageBytes(head));
  HLAUNCH_ASSIGN_OR_RETURN(const std::string bytes,
                           ReceiveBytes(socket, size, deadline, received.descriptors));
  HLAUNCH_ASSIGN_OR_RETURN(received.words, DecodeTaskMessage(bytes));
  return received;
}

}  // namespace hlaunch
