// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/peer/loopback_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <utility>

#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {
namespace {

constexpr uid_t kNobody = 65534;
constexpr uid_t kSomebody = 54321;

using StoreAddressBytes = std::array<uint8_t, 16>;

UniqueFd ConnectTo(uint16_t port, int family = AF_INET) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  ::inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr);
  const bool done = family == AF_INET
                        ? ::connect(fd.get(), reinterpret_cast<sockaddr*>(&four), sizeof(four)) == 0
                        : ::connect(fd.get(), reinterpret_cast<sockaddr*>(&six), sizeof(six)) == 0;
  return done ? std::move(fd) : UniqueFd();
}

// Waits for the next connection.
UniqueFd Accept(const ListeningSocket& server) {
  const int flags = ::fcntl(server.fd.get(), F_GETFL);
  ::fcntl(server.fd.get(), F_SETFL, flags & ~O_NONBLOCK);
  return UniqueFd(::accept4(server.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

// A process of another user that connects to a port, and stays until this object is destroyed.
class Stranger {
 public:
  Stranger(uint16_t port, uid_t user) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    leave_ = UniqueFd(ends[1]);
    const UniqueFd left(ends[0]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    leave_.Close();
    if (::setresuid(user, user, user) != 0) ::_exit(2);
    const UniqueFd fd = ConnectTo(port);
    char byte;
    ::_exit(fd.valid() && ::read(left.get(), &byte, 1) == 0 ? 0 : 1);
  }
  ~Stranger() {
    leave_.Close();
    int status = -1;
    ::waitpid(pid_, &status, 0);
    EXPECT_EQ(status, 0);
  }

 private:
  pid_t pid_ = 0;
  UniqueFd leave_;
};

TEST(UserOfLoopbackPeer, IsOneself) {
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  for (const int family : {AF_INET, AF_INET6}) {
    const UniqueFd client = ConnectTo(server.port, family);
    if (!client.valid() && family == AF_INET6) GTEST_SKIP() << "no IPv6 here";
    const UniqueFd peer = Accept(server);
    ASSERT_TRUE(UserOfLoopbackPeer(peer.get()).ok()) << UserOfLoopbackPeer(peer.get()).status();
    EXPECT_EQ(*UserOfLoopbackPeer(peer.get()), ::geteuid());
    EXPECT_TRUE(CheckPeerIsOwn(peer.get()).ok());
    EXPECT_EQ(*UserOfLoopbackPeer(client.get()), ::geteuid());
  }
}

TEST(UserOfLoopbackPeer, IsFoundOnASocketOfAllAddresses) {
  const ListeningSocket server = *Listen("", 0);
  const UniqueFd client = ConnectTo(server.port);
  const UniqueFd peer = Accept(server);
  ASSERT_TRUE(UserOfLoopbackPeer(peer.get()).ok()) << UserOfLoopbackPeer(peer.get()).status();
  EXPECT_EQ(*UserOfLoopbackPeer(peer.get()), ::geteuid());
}

TEST(UserOfLoopbackPeer, IsAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  const Stranger stranger(server.port, kSomebody);
  const UniqueFd peer = Accept(server);
  ASSERT_TRUE(UserOfLoopbackPeer(peer.get()).ok()) << UserOfLoopbackPeer(peer.get()).status();
  EXPECT_EQ(*UserOfLoopbackPeer(peer.get()), kSomebody);
  const absl::Status own = CheckPeerIsOwn(peer.get());
  EXPECT_EQ(own.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(own.message(), "a connection of the user 54321");
}

StoreAddressBytes Loopback() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}; }

uint16_t PortOf(int fd, int (*tell)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  tell(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

TEST(UserOfSibling, IsWhoeverElseIsConnectedToTheSamePlace) {
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  const UniqueFd own = ConnectTo(server.port), other = ConnectTo(server.port);
  const auto user = UserOfSibling(own.get(), Loopback(), PortOf(other.get(), ::getsockname));
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_TRUE(IsOwnUser(*user));
  // The server's port is no client's, and ::1 is another family's.
  for (const auto& [address, port] :
       {std::pair(Loopback(), server.port),
        std::pair(StoreAddressBytes{}, PortOf(other.get(), ::getsockname))}) {
    EXPECT_EQ(UserOfSibling(own.get(), address, port).status().code(), absl::StatusCode::kNotFound);
  }
}

TEST(UserOfSibling, IsAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  const UniqueFd own = ConnectTo(server.port);
  const UniqueFd first = Accept(server);
  const Stranger stranger(server.port, kSomebody);
  const UniqueFd peer = Accept(server);
  const auto user = UserOfSibling(own.get(), Loopback(), PortOf(peer.get(), ::getpeername));
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ(*user, kSomebody);
  EXPECT_FALSE(IsOwnUser(*user));
}

// Of a socket that its process has closed many kernels say that it is root's.
TEST(UserOfLoopbackPeer, IsNobodyOnceTheOtherEndIsClosed) {
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  UniqueFd client = ConnectTo(server.port);
  const UniqueFd peer = Accept(server);
  ASSERT_EQ(::send(client.get(), "x", 1, 0), 1);
  client.Close();
  EXPECT_EQ(UserOfLoopbackPeer(peer.get()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckPeerIsOwn(peer.get()).code(), absl::StatusCode::kNotFound);
}

// Connects, resets the connection, and connects once more from the same address and port. Returns
// false if another program has taken the port in between.
bool ConnectAgainAfterAReset() {
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  UniqueFd client = ConnectTo(server.port);
  const UniqueFd peer = Accept(server);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  EXPECT_EQ(::getsockname(client.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const linger reset{1, 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  client.Close();
  EXPECT_EQ(UserOfLoopbackPeer(peer.get()).status().code(), absl::StatusCode::kNotFound);
  const UniqueFd next(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(next.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return false;
  address.sin_port = htons(server.port);
  EXPECT_EQ(::connect(next.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(UserOfLoopbackPeer(peer.get()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(UserOfLoopbackPeer(Accept(server).get()).ok());
  return true;
}

// What was sent before a reset can be read after it, and the addresses may be another's by then.
TEST(UserOfLoopbackPeer, IsNobodyOnceTheConnectionIsReset) {
  bool connected = false;
  for (int i = 0; i < 50 && !connected; ++i) connected = ConnectAgainAfterAReset();
  EXPECT_TRUE(connected);
}

TEST(UserOfLoopbackPeer, IsNobodyWithoutAConnection) {
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  EXPECT_EQ(UserOfLoopbackPeer(server.fd.get()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(UserOfLoopbackPeer(-1).status().code(), absl::StatusCode::kNotFound);
}

// Runs `check` in a process whose user namespace maps `map`, and connects to it as `user`. Returns
// the exit code; 77 if there is no user namespace for it.
int TryInNamespace(const std::string& map, uid_t user, int (*check)(int peer)) {
  const ListeningSocket server = *Listen("127.0.0.1", 0);
  const Stranger stranger(server.port, user);
  const UniqueFd peer = Accept(server);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    if (!map.empty() && !(std::ofstream("/proc/self/uid_map") << map << std::flush)) ::_exit(77);
    ::_exit(check(peer.get()));
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The same. A process with threads gets no user namespace, and a sanitizer may have one just then.
int InNamespace(const std::string& map, uid_t user, int (*check)(int peer)) {
  int exit_code = 77;
  for (int i = 0; i < 50 && exit_code == 77; ++i) exit_code = TryInNamespace(map, user, check);
  return exit_code;
}

int IsNobodyAndRefused(int peer) {
  return ::geteuid() == 0 && *UserOfLoopbackPeer(peer) == kNobody && !CheckPeerIsOwn(peer).ok() ? 0
                                                                                                : 1;
}

int IsNobodyAsOneself(int peer) {
  return ::geteuid() == kNobody && *UserOfLoopbackPeer(peer) == kNobody && CheckPeerIsOwn(peer).ok()
             ? 0
             : 1;
}

TEST(UserOfLoopbackPeer, IsNobodyIfTheNamespaceDoesNotMapTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const int refused = InNamespace("0 0 1", kSomebody, IsNobodyAndRefused);
  // Where one is nobody oneself, others cannot be told apart.
  const int nobody = InNamespace("", kSomebody, IsNobodyAsOneself);
  if (refused == 77 || nobody == 77) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(nobody, 0);
}

}  // namespace
}  // namespace hlaunch
