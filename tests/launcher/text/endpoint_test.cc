// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/endpoint.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

struct Row {
  const char* text;
  const char* host;  // Null if it is refused.
  int port;
};

TEST(ParseListenPlace, TakesAPortAloneForAllAddresses) {
  for (const char* text : {"7000", ":7000", "[::]:7000"}) {
    const auto place = ParseListenPlace(text, 29401);
    ASSERT_TRUE(place.ok()) << text << place.status();
    EXPECT_EQ(place->host, "") << text;
    EXPECT_EQ(place->port, 7000) << text;
  }
  EXPECT_EQ(ParseListenPlace("10.0.0.1", 29401)->port, 29401);
  EXPECT_FALSE(ParseListenPlace("70000", 29401).ok());
  EXPECT_FALSE(ParseListenPlace("", 29401).ok());
}

TEST(ParseEndpoint, ReadsEveryForm) {
  const Row rows[] = {
      {"node0", "node0", 29400},
      {"node0:1", "node0", 1},
      {"10.0.0.1:65535", "10.0.0.1", 65535},
      {"[::1]", "::1", 29400},
      {"[fd00::1]:80", "fd00::1", 80},
      {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
      {"a_b-c.d:0", "a_b-c.d", 0},
      {"", nullptr, 0},
      {":80", nullptr, 0},
      {"a:", nullptr, 0},
      {"a:x", nullptr, 0},
      {"a:-1", nullptr, 0},
      {"a:65536", nullptr, 0},
      {"a: 80", nullptr, 0},
      {"::1", nullptr, 0},
      {"fd00::1:80", nullptr, 0},
      {"[::1", nullptr, 0},
      {"[::1]x", nullptr, 0},
      {"[node0]:80", nullptr, 0},
      {"[]:80", nullptr, 0},
      {"tcp://a:80", nullptr, 0},
      {"a b:80", nullptr, 0},
      {"a/b", nullptr, 0},
      {"a:80:90", nullptr, 0},
  };
  for (const Row& row : rows) {
    const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(row.text, 29400);
    ASSERT_EQ(endpoint.ok(), row.host != nullptr) << row.text << ": " << endpoint.status();
    if (row.host == nullptr) {
      EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kInvalidArgument) << row.text;
    } else {
      EXPECT_EQ(endpoint->host, row.host) << row.text;
      EXPECT_EQ(endpoint->port, row.port) << row.text;
    }
  }
}

TEST(ParseEndpoints, ReadsThoseOfSeveralServices) {
  const auto endpoints = ParseEndpoints("a,b:1,[::1]:2", 29400);
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  ASSERT_EQ(endpoints->size(), 3u);
  EXPECT_EQ((*endpoints)[0].host, "a");
  EXPECT_EQ((*endpoints)[0].port, 29400);
  EXPECT_EQ((*endpoints)[1].port, 1);
  EXPECT_EQ((*endpoints)[2].host, "::1");
  EXPECT_EQ(ParseEndpoints("a", 29400)->size(), 1u);
  for (const char* wrong : {"", "a,", ",a", "a,,b", "a,b:x"}) {
    EXPECT_FALSE(ParseEndpoints(wrong, 29400).ok()) << wrong;
  }
}

TEST(ParseEndpoint, RefusesEndlessNames) {
  EXPECT_FALSE(ParseEndpoint(std::string(254, 'a'), 1).ok());
}

TEST(ParseHost, TakesIpv6WithAndWithoutBrackets) {
  EXPECT_EQ(*ParseHost("[::1]"), "::1");
  EXPECT_EQ(*ParseHost("::1"), "::1");
  EXPECT_FALSE(ParseHost("node0:80").ok());
}

TEST(HostPort, PutsIpv6InBrackets) {
  EXPECT_EQ(HostPort({"::1", 80}), "[::1]:80");
  EXPECT_EQ(HostPort({"node0", 80}), "node0:80");
}

TEST(IsLoopbackLiteral, KnowsTheWholeNetwork) {
  EXPECT_TRUE(IsLoopbackLiteral("127.0.0.1"));
  EXPECT_TRUE(IsLoopbackLiteral("127.0.1.1"));
  EXPECT_TRUE(IsLoopbackLiteral("::1"));
  EXPECT_FALSE(IsLoopbackLiteral("10.0.0.1"));
  EXPECT_FALSE(IsLoopbackLiteral("localhost"));
  EXPECT_FALSE(IsLoopbackLiteral("fd00::1"));
}

}  // namespace
}  // namespace hlaunch
