// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/listen.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"
#include "rendezvous/net/socket/listen_at.h"
#include "tests/rendezvous/raw_connection.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

TEST(Listen, TakesAFreePortOfAllAddresses) {
  const auto socket = Listen("", 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_NE(socket->port, 0);
  EXPECT_TRUE(::fcntl(socket->fd.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(socket->fd.get(), F_GETFL) & O_NONBLOCK);
  RawConnection connection(socket->port);  // Connects over IPv4, whichever family was bound.
}

TEST(Listen, BindsALiteral) {
  const auto socket = Listen("127.0.0.1", 0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(socket->address, "127.0.0.1");
  EXPECT_NE(socket->port, 0);
}

TEST(Listen, NamesThePortThatIsInUse) {
  const auto first = Listen("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const absl::Status second = Listen("127.0.0.1", first->port).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_THAT(std::string(second.message()),
              HasSubstr(absl::StrCat("127.0.0.1 port ", first->port)));
}

// Clients must not find one service at one address of a name and another one at the next.
TEST(ListenAt, SaysThatThePortIsInUseAtTheFirstAddressOfAName) {
  const auto first = Listen("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const absl::Status second = ListenAt("localhost", first->port).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_THAT(std::string(second.message()),
              HasSubstr(absl::StrCat("127.0.0.1 port ", first->port)));
}

TEST(Listen, OfTwoInTheSameMomentOneGetsThePort) {
  // An address for this process only: loopback has 16 million, and the kernel never assigns this
  // port.
  const int pid = ::getpid();
  const std::string address =
      absl::StrCat("127.", 1 + (pid >> 16) % 250, ".", (pid >> 8) % 256, ".", 1 + pid % 250);
  constexpr uint16_t kPort = 21987;
  std::barrier both(2);
  absl::StatusOr<ListeningSocket> sockets[2];
  const auto listen = [&](int i) {
    for (int round = 0; round < 300; ++round) {
      both.arrive_and_wait();
      sockets[i] = Listen(address, kPort);
      both.arrive_and_wait();
      if (i == 0) {
        EXPECT_NE(sockets[0].ok(), sockets[1].ok()) << sockets[0].status() << sockets[1].status();
      }
      both.arrive_and_wait();
      sockets[i] = absl::UnknownError("");
    }
  };
  std::thread other(listen, 1);
  listen(0);
  other.join();
}

TEST(Listen, RefusesWhatIsNoAddressOfThisHost) {
  EXPECT_TRUE(absl::IsInvalidArgument(Listen("localhost", 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Listen("192.0.2.1", 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Listen("[::1]", 0).status()));
}

TEST(Reserve, KeepsAPortFromAllButWhoNamesItAndReuses) {
  const auto kept = Reserve(0);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_NE(kept->port, 0);
  EXPECT_TRUE(::fcntl(kept->fd.get(), F_GETFD) & FD_CLOEXEC);
  UniqueFd plain(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(kept->port);
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  EXPECT_EQ(::bind(plain.get(), where, sizeof address), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(::connect(plain.get(), where, sizeof address), -1);
  EXPECT_EQ(errno, ECONNREFUSED);

  const auto server = Listen("", kept->port);  // Sets SO_REUSEADDR like torch, libuv and gRPC.
  ASSERT_TRUE(server.ok()) << server.status();
  RawConnection connection(kept->port);
}

TEST(Reserve, RefusesWhatIsReservedUnlessItIsNamed) {
  const auto kept = Reserve(0);
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Reserve(kept->port).status()));
  EXPECT_TRUE(Reserve(kept->port, /*named=*/true).ok());
  const auto server = Listen("127.0.0.1", 0);
  ASSERT_TRUE(server.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Reserve(server->port).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(Reserve(server->port, /*named=*/true).status()));
}

}  // namespace
}  // namespace hlaunch
