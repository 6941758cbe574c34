// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/local_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "tests/rendezvous/no_descriptors.h"

namespace hlaunch {
namespace {

UniqueFd ConnectTo(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST(LocalServer, LetsAConnectionWaitWhereThereIsNoDescriptorForIt) {
  asio::io_context loop;
  const std::string path = absl::StrCat("/tmp/hl-local-server-", ::getpid());
  UniqueFd listener = ListenLocally(path).value();
  PeerUsers users(loop, "");
  const LocalServer server(loop, std::move(listener), users,
                           [](const Envelope&, const LocalServer::Done&) {});
  const UniqueFd client = ConnectTo(path);
  ::unlink(path.c_str());
  size_t turns = 0;
  {
    const NoDescriptors none;
    for (int i = 0; i < 1000; ++i) turns += loop.poll_one();
  }
  EXPECT_LT(turns, 100u);                                        // It does not spin.
  ASSERT_EQ(::send(client.get(), "\xff\xff\xff\xff", 4, 0), 4);  // These bytes are no frame.
  char byte = 0;
  ssize_t n = 0;
  while ((n = ::recv(client.get(), &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN) loop.run_one();
  EXPECT_EQ(n, 0);
}

}  // namespace
}  // namespace hlaunch
