// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/guarded/guarded_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>

#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// Two ends of a connection over loopback.
struct BothEnds {
  BothEnds() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    client = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    server = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  void Say(const std::string& bytes) const {
    EXPECT_EQ(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  UniqueFd client;
  UniqueFd server;
};

// Reads into two pieces, as gRPC may.
ssize_t ReadFrom(const UniqueFd& fd, size_t size) {
  std::string first(size / 2, 0), second(size - size / 2, 0);
  iovec pieces[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  msghdr message = {};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  return ::recvmsg(fd.get(), &message, MSG_WAITALL);
}

std::string Streams(int count) {
  std::string streams;
  for (int i = 0; i < count; ++i) streams += std::string("\0\0\0\1\5\0\0\0\1", 9);
  return streams;
}

class GuardSocketTest : public testing::Test {
 protected:
  std::shared_ptr<ConnectionGuard> NewGuard() {
    return std::make_shared<ConnectionGuard>(ConnectionGuard::Kind::kClear, floods_);
  }

  const std::string preface_ = std::string(24, 'x');
  std::shared_ptr<std::atomic<uint64_t>> floods_ = std::make_shared<std::atomic<uint64_t>>(0);
};

TEST_F(GuardSocketTest, TheReaderOfAFloodGetsAnErrorAndTheConnectionEnds) {
  const BothEnds connection;
  GuardSocket(connection.server.get(), NewGuard());
  const std::string few = preface_ + Streams(10);
  connection.Say(few);
  EXPECT_EQ(ReadFrom(connection.server, few.size()), static_cast<ssize_t>(few.size()));
  EXPECT_EQ(*floods_, 0u);
  const std::string many = Streams(100);
  connection.Say(many);
  EXPECT_EQ(ReadFrom(connection.server, many.size()), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(*floods_, 1u);
  char byte = 0;
  EXPECT_LE(::recv(connection.client.get(), &byte, 1, 0), 0);
}

TEST_F(GuardSocketTest, WhatTheServerSendsEndsStreams) {
  const BothEnds connection;
  GuardSocket(connection.server.get(), NewGuard());
  connection.Say(preface_);
  EXPECT_EQ(ReadFrom(connection.server, preface_.size()), 24);
  for (int i = 0; i < 1000; ++i) {
    const std::string one = Streams(1);
    connection.Say(one);
    ASSERT_EQ(ReadFrom(connection.server, one.size()), 9) << i;
    std::string end = one;
    iovec piece = {end.data(), end.size()};
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    ASSERT_EQ(::sendmsg(connection.server.get(), &message, MSG_NOSIGNAL), 9);
    ASSERT_EQ(::recv(connection.client.get(), end.data(), end.size(), MSG_WAITALL), 9);
  }
}

TEST_F(GuardSocketTest, ASocketWithTheNumberOfAFormerOneIsNotGuarded) {
  const auto guard = NewGuard();
  const BothEnds former, other;
  GuardSocket(former.server.get(), guard);
  ASSERT_EQ(::dup3(other.server.get(), former.server.get(), O_CLOEXEC), former.server.get());
  const std::string many = preface_ + Streams(100);
  other.Say(many);
  EXPECT_EQ(ReadFrom(former.server, many.size()), static_cast<ssize_t>(many.size()));
  EXPECT_FALSE(guard->flooded());
}

}  // namespace
}  // namespace hlaunch
