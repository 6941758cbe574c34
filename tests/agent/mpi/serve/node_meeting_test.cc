// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/node_meeting.h"

#include <gtest/gtest.h>

#include "rendezvous/net/socket/listen.h"
#include "rendezvous/store/c10d/c10d_client.h"
#include "rendezvous/store/c10d/c10d_server.h"

namespace hlaunch {
namespace {

std::unique_ptr<C10dServer> ServeAt(uint16_t port) {
  return C10dServer::Start(Listen("127.0.0.1", port).value()).value();
}

// The store is gone until the first try has ended, which takes two seconds.
TEST(NodeMeeting, GoesOnWhenTheStoreComesBack) {
  const ListeningSocket kept = Reserve(0).value();
  std::unique_ptr<C10dServer> server = ServeAt(kept.port);
  NodeMeeting* to_it = nullptr;
  const auto bring_back = [&]() -> absl::Status {
    if (server != nullptr) return absl::OkStatus();
    server = ServeAt(kept.port);
    return to_it->Store().value()->Set("key", "value");
  };
  NodeMeeting meeting({"127.0.0.1", kept.port, 0}, {bring_back, nullptr});
  to_it = &meeting;
  ASSERT_TRUE(meeting.Store().ok());
  server = nullptr;
  const absl::StatusOr<std::string> value = meeting.Await("key");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, "value");
}

}  // namespace
}  // namespace hlaunch
