// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/socket_bytes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

TEST(SocketBytes, CountWhatComesByAConnection) {
  const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(server.get(), any, size), 0);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  ASSERT_EQ(::getsockname(server.get(), any, &size), 0);
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), any, size), 0);
  const UniqueFd peer(::accept(server.get(), nullptr, nullptr));
  const uint64_t before = ReadSockets({::getpid()}).bytes;
  const std::string text(1000, 'x');
  ASSERT_EQ(::send(client.get(), text.data(), text.size(), 0), 1000);
  std::string got(1000, '\0');
  ASSERT_EQ(::recv(peer.get(), got.data(), got.size(), MSG_WAITALL), 1000);
  EXPECT_GE(ReadSockets({::getpid()}).bytes, before + 1000);
}

TEST(SocketBytes, AreOfAPeerThatAcknowledgesNothingOnlyIfTheyAreSentAgainAndAgain) {
  constexpr int kKeepalive = 2, kZeroWindow = 4;
  EXPECT_TRUE(IsUnheard(1, 3));
  EXPECT_FALSE(IsUnheard(1, 2));
  EXPECT_FALSE(IsUnheard(0, 9));
  EXPECT_FALSE(IsUnheard(kKeepalive, 9));
  EXPECT_FALSE(IsUnheard(kZeroWindow, 9));  // It is stopped, and its kernel is well.
  EXPECT_TRUE(ReadSockets({::getpid()}).unheard.empty());
}

TEST(SocketBytes, AreNoneOfAProcessThatIsGone) { EXPECT_EQ(ReadSockets({-1}).bytes, 0u); }

}  // namespace
}  // namespace hlaunch
