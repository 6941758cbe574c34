// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/guarded/guarded_sockets.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "proto/base/mutex.h"
#include "rendezvous/net/port/traffic_watch.h"

namespace hlaunch {
namespace {

// The guarded sockets by descriptor. An owner may close a socket without a word, and its number may
// be another's by now, so each is recognized by its cookie.
class GuardedSockets {
 public:
  void Add(int fd, std::shared_ptr<ConnectionGuard> guard) {
    const auto cookie = CookieOf(fd);
    if (!cookie) return;
    MutexLock lock(&mu_);
    sockets_.insert_or_assign(fd, Guarded{*cookie, std::move(guard)});
    any_ = true;
  }

  // Returns null if nobody guards the socket.
  std::shared_ptr<ConnectionGuard> Find(int fd) {
    if (!any_) return nullptr;
    MutexLock lock(&mu_);
    const auto found = sockets_.find(fd);
    if (found == sockets_.end()) return nullptr;
    if (CookieOf(fd) == found->second.cookie) return found->second.guard;
    sockets_.erase(found);
    return nullptr;
  }

  void Remove(int fd) {
    MutexLock lock(&mu_);
    sockets_.erase(fd);
  }

 private:
  struct Guarded {
    uint64_t cookie;
    std::shared_ptr<ConnectionGuard> guard;
  };

  std::atomic<bool> any_ = false;  // There has been a guarded socket.
  Mutex mu_;
  absl::flat_hash_map<int, Guarded> sockets_ ABSL_GUARDED_BY(mu_);
};

// Threads of gRPC may read until the process ends.
GuardedSockets& Sockets() {
  static GuardedSockets& sockets = *new GuardedSockets;
  return sockets;
}

// Calls `take` for each piece of the first `size` bytes of `message`, as long as it returns true.
// Returns whether it always did.
bool EachPiece(const msghdr& message, size_t size,
               absl::FunctionRef<bool(absl::string_view)> take) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& piece = message.msg_iov[i];
    const size_t length = std::min(size, piece.iov_len);
    if (!take({static_cast<const char*>(piece.iov_base), length})) return false;
    size -= length;
  }
  return true;
}

ssize_t Receive(int fd, msghdr* message, int flags) {
  const ssize_t n = ::syscall(SYS_recvmsg, fd, message, flags);
  if (n < 0 || (flags & (MSG_ERRQUEUE | MSG_PEEK)) != 0) return n;
  const std::shared_ptr<ConnectionGuard> guard = Sockets().Find(fd);
  if (guard == nullptr) return n;
  if (n == 0) {
    Sockets().Remove(fd);
    return n;
  }
  const bool admitted = EachPiece(*message, static_cast<size_t>(n),
                                  [&](absl::string_view bytes) { return guard->Received(bytes); });
  if (admitted) return n;
  ::shutdown(fd, SHUT_RDWR);
  errno = ECONNRESET;
  return -1;
}

ssize_t Send(int fd, const msghdr* message, int flags) {
  const ssize_t n = ::syscall(SYS_sendmsg, fd, message, flags);
  if (n <= 0) return n;
  const std::shared_ptr<ConnectionGuard> guard = Sockets().Find(fd);
  if (guard == nullptr) return n;
  EachPiece(*message, static_cast<size_t>(n), [&](absl::string_view bytes) {
    guard->Sent(bytes);
    return true;
  });
  return n;
}

}  // namespace

void GuardSocket(int fd, std::shared_ptr<ConnectionGuard> guard) {
  Sockets().Add(fd, std::move(guard));
}

}  // namespace hlaunch

// The linker takes these for gRPC's calls, since they are in the program itself.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return hlaunch::Receive(fd, message, flags);
}

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return hlaunch::Send(fd, message, flags);
}
