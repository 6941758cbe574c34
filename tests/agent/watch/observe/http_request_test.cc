// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/http_request.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

TEST(ReadHttpRequest, TakesWhatScrapersSend) {
  const HttpQuestion request = ReadHttpRequest(
      "GET /metrics?name=x HTTP/1.1\r\nHost: node0:9100\r\nAccept: text/plain\r\n\r\n");
  EXPECT_EQ(request.status, 200);
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_FALSE(request.head);
  EXPECT_EQ(ReadHttpRequest("GET /healthz HTTP/1.0\n\n").path, "/healthz");
  EXPECT_TRUE(ReadHttpRequest("HEAD / HTTP/1.1\r\n\r\n").head);
}

TEST(ReadHttpRequest, ReadsTheHeadersThatAPageNeeds) {
  const HttpQuestion request = ReadHttpRequest(
      "GET / HTTP/1.1\r\nhOST:  node0:9400 \r\nOrigin: http://a\r\nAuthorization: Bearer x y\r\n"
      "Hosts: b\r\nno colon\r\n\r\n");
  EXPECT_EQ(request.host, "node0:9400");
  EXPECT_EQ(request.origin, "http://a");
  EXPECT_EQ(request.authorization, "Bearer x y");
  EXPECT_EQ(ReadHttpRequest("GET / HTTP/1.1\r\nHost : a\r\n\r\n").host, "");
  for (const char* twice : {"Host: a\r\nHost: a", "Origin: a\r\norigin: b", "Host:"}) {
    EXPECT_EQ(ReadHttpRequest(absl::StrCat("GET / HTTP/1.1\r\n", twice, "\r\n\r\n")).status, 400);
  }
}

TEST(ReadHttpRequest, WaitsForTheEndOfTheHead) {
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(ReadHttpRequest(whole.substr(0, size)).status, 0) << size;
  }
  EXPECT_EQ(ReadHttpRequest(whole).status, 200);
}

TEST(ReadHttpRequest, RefusesWithTheRightStatus) {
  const struct {
    std::string bytes;
    int status;
  } cases[] = {
      {"POST /metrics HTTP/1.1\r\n\r\n", 405},
      {"GET /metrics\r\n\r\n", 400},
      {"GET  /metrics HTTP/1.1\r\n\r\n", 400},
      {"GET metrics HTTP/1.1\r\n\r\n", 400},
      {"\r\n\r\n", 400},
      {"\n\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\n", 505},
      {std::string("GET /\0 x\r\n\r\n", 12), 400},
      {std::string(kMaxHttpRequest, 'a'), 431},
      {absl::StrCat("GET / HTTP/1.1\r\nA: ", std::string(kMaxHttpRequest, 'a'), "\r\n\r\n"), 431},
  };
  for (const auto& c : cases) EXPECT_EQ(ReadHttpRequest(c.bytes).status, c.status) << c.bytes;
}

TEST(ReadHttpRequest, SurvivesNoise) {
  std::mt19937 random(17);  // NOLINT: the same noise each time.
  const std::string alphabet("GET /HTTP1.\r\n :?\0\xff", 19);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    const size_t size = random() % 64;
    while (bytes.size() < size) bytes += alphabet[random() % alphabet.size()];
    const HttpQuestion request = ReadHttpRequest(bytes);
    EXPECT_TRUE(request.status != 200 || request.path[0] == '/') << bytes;
  }
}

TEST(HttpReply, IsWholeAndCloses) {
  EXPECT_EQ(HttpReply(200, "text/plain", "ok\n", false),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
            "Connection: close\r\nCache-Control: no-store\r\n\r\nok\n");
  const std::string head = HttpReply(405, "text/plain", "no\n", true);
  EXPECT_NE(head.find("Allow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_EQ(head.substr(head.size() - 4), "\r\n\r\n");
}

}  // namespace
}  // namespace hlaunch
