// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/grpc_transport.h"

#include <gtest/gtest.h>

#include "google/protobuf/stubs/logging.h"

namespace hlaunch {
namespace {

TEST(PeerAddress, KnowsWhatGrpcWrites) {
  EXPECT_EQ(PeerAddress("ipv4:10.0.0.1:58194"), "10.0.0.1");
  EXPECT_EQ(PeerAddress("ipv6:%5B::1%5D:52082"), "::1");
  EXPECT_EQ(PeerAddress("ipv6:[fd00::2]:52082"), "fd00::2");
  EXPECT_EQ(PeerAddress("ipv6:%5Bfe80::1%25lo%5D:1"), "fe80::1%lo");
  EXPECT_EQ(PeerAddress("unix:/tmp/socket"), "");
  EXPECT_EQ(PeerAddress("ipv4:nonsense"), "");
  EXPECT_EQ(PeerAddress(""), "");
}

TEST(PeerPortOf, KnowsWhatGrpcWrites) {
  EXPECT_EQ(PeerPortOf("ipv4:10.0.0.1:58194"), 58194);
  EXPECT_EQ(PeerPortOf("ipv6:%5B::1%5D:52082"), 52082);
  for (const char* other : {"", "ipv4:10.0.0.1", "ipv4:10.0.0.1:65536", "unix:/tmp/socket"}) {
    EXPECT_EQ(PeerPortOf(other), 0) << other;
  }
}

// A client that sent garbage once made protobuf write 4 MB in five seconds.
TEST(PrepareServer, ProtobufsErrorsDoNotFloodTheLog) {
  grpc::ServerBuilder builder;
  PrepareServer(&builder);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) GOOGLE_LOG(ERROR) << "String field contains invalid UTF-8 data";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace hlaunch
