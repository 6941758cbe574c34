// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/metrics_server.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/watch/observe/drop_connection.h"
#include "agent/watch/observe/http_request.h"
#include "asio/io_context.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/post.hpp"
#include "asio/read.hpp"
#include "asio/write.hpp"

namespace hlaunch {
namespace {

using asio::ip::tcp;

// A server on its own loop, and plain blocking clients.
class MetricsServerTest : public testing::Test {
 protected:
  MetricsServerTest() {
    auto started = MetricsServer::Start(
        loop_, "127.0.0.1", 0,
        {[] { return "a 1\n"; }, [this] { return not_ready_; }, [this] { return unhealthy_; }});
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = std::move(started).value();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~MetricsServerTest() override {
    asio::post(loop_, [this] { server_.reset(); });
    thread_.join();  // Nothing is left in the loop.
  }

  tcp::socket Connect() {
    tcp::socket socket(clients_);
    socket.connect({asio::ip::make_address("127.0.0.1"), server_->port()});
    return socket;
  }

  static std::string Exchange(tcp::socket& socket, const std::string& request) {
    asio::error_code ignored;
    asio::write(socket, asio::buffer(request), ignored);
    std::string response;
    asio::read(socket, asio::dynamic_buffer(response), ignored);
    return response;
  }

  std::string not_ready_;  // Set before a request, read by the loop's thread after it.
  std::string unhealthy_;  // Used like not_ready_.
  asio::io_context loop_;
  asio::io_context clients_;
  std::unique_ptr<MetricsServer> server_;
  std::thread thread_;
};

TEST_F(MetricsServerTest, ServesMetricsAndHealth) {
  tcp::socket first = Connect();
  EXPECT_EQ(Exchange(first, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
            HttpReply(200, "text/plain; version=0.0.4; charset=utf-8", "a 1\n", false));
  tcp::socket second = Connect();
  EXPECT_EQ(Exchange(second, "GET /healthz HTTP/1.1\r\n\r\n"),
            HttpReply(200, "text/plain", "ok\n", false));
  tcp::socket third = Connect();
  EXPECT_EQ(Exchange(third, "GET / HTTP/1.1\r\n\r\n").substr(0, 12), "HTTP/1.1 404");
}

TEST_F(MetricsServerTest, SaysWhyItIsNotReady) {
  tcp::socket first = Connect();
  EXPECT_EQ(Exchange(first, "GET /readyz HTTP/1.1\r\n\r\n"),
            HttpReply(200, "text/plain", "ok\n", false));
  not_ready_ = "waiting 2 s for 1 of 2 nodes";
  tcp::socket second = Connect();
  EXPECT_EQ(Exchange(second, "GET /readyz HTTP/1.1\r\n\r\n"),
            HttpReply(503, "text/plain", "waiting 2 s for 1 of 2 nodes\n", false));
}

TEST_F(MetricsServerTest, SaysWhatIsWrong) {
  unhealthy_ = "cannot start a thread";
  tcp::socket socket = Connect();
  EXPECT_EQ(Exchange(socket, "GET /healthz HTTP/1.1\r\n\r\n"),
            HttpReply(503, "text/plain", "cannot start a thread\n", false));
}

TEST_F(MetricsServerTest, SlowClientsKeepNoProbeWaiting) {
  std::vector<tcp::socket> slow;
  for (int i = 0; i < 300; ++i) {
    slow.push_back(Connect());
    asio::write(slow.back(), asio::buffer("GET /me", 7));
    if (i % 50 != 0) continue;
    tcp::socket probe = Connect();
    EXPECT_EQ(Exchange(probe, "GET /healthz HTTP/1.1\r\n\r\n").substr(0, 12), "HTTP/1.1 200") << i;
  }
  // The first connections were dropped for this one, long before their time was up.
  std::string response;
  asio::error_code error;
  asio::read(slow.front(), asio::dynamic_buffer(response), error);
  EXPECT_EQ(response, "");
}

TEST(ConnectionToDrop, IsTheOldestOfWhoeverHasMost) {
  const auto of = [](const std::string& sources, const std::string& answered = "") {
    std::vector<OpenConnection> open;
    for (const char source : sources) {
      const bool has = answered.find(static_cast<char>('0' + open.size())) != std::string::npos;
      open.push_back({std::string(1, source), has});
    }
    return ConnectionToDrop(open);
  };
  EXPECT_EQ(of("a"), 0U);
  EXPECT_EQ(of("abab"), 0U);
  EXPECT_EQ(of("pabbb"), 2U);
  EXPECT_EQ(of("pbbb", "1"), 2U);  // Its answer is on its way.
  EXPECT_EQ(of("pbb", "12"), 1U);
}

TEST_F(MetricsServerTest, RefusesARequestThatNeverEnds) {
  tcp::socket socket = Connect();
  EXPECT_EQ(Exchange(socket, std::string(kMaxHttpRequest, 'a')).substr(0, 12), "HTTP/1.1 431");
}

TEST_F(MetricsServerTest, ServesTheNextOnceOneOfTooManyHasGone) {
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 64; ++i) silent.push_back(Connect());
  tcp::socket next = Connect();
  silent.clear();
  EXPECT_EQ(Exchange(next, "GET /healthz HTTP/1.1\r\n\r\n").substr(0, 12), "HTTP/1.1 200");
}

TEST_F(MetricsServerTest, SilentClientsAreClosed) {
  tcp::socket silent = Connect();
  EXPECT_EQ(Exchange(silent, "GET /metrics HTTP/1.1\r\n"), "");
}

TEST(MetricsServer, SaysWhoseFaultItIs) {
  asio::io_context loop;
  const auto nothing = [] { return std::string(); };
  const MetricsServer::Answers text = {nothing, nothing};
  EXPECT_EQ(MetricsServer::Start(loop, "here", 0, text).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto first = MetricsServer::Start(loop, "127.0.0.1", 0, text);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(MetricsServer::Start(loop, "127.0.0.1", (*first)->port(), text).status().code(),
            absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace hlaunch
