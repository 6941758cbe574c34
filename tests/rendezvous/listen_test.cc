// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/listen.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
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
  RawConnection connection(socket->port);  // IPv4, whichever family was bound.
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

TEST(Listen, RefusesWhatIsNoAddressOfThisHost) {
  EXPECT_TRUE(absl::IsInvalidArgument(Listen("localhost", 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Listen("192.0.2.1", 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Listen("[::1]", 0).status()));
}

}  // namespace
}  // namespace hlaunch
