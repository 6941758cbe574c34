// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/notice/drain_watch.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/read_until.hpp"
#include "asio/write.hpp"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using asio::ip::tcp;

constexpr Duration kTestTurn = std::chrono::milliseconds(5);

TEST(ParseNoticeUrl, TakesAnAddressAndNothingElse) {
  const auto spot = ParseNoticeUrl("http://169.254.169.254/latest/meta-data/spot/instance-action");
  ASSERT_TRUE(spot.ok()) << spot.status();
  EXPECT_EQ(spot->address, "169.254.169.254");
  EXPECT_EQ(spot->port, 80);
  EXPECT_EQ(spot->target, "/latest/meta-data/spot/instance-action");
  EXPECT_EQ(ParseNoticeUrl("http://127.0.0.1:8080")->port, 8080);
  EXPECT_EQ(ParseNoticeUrl("http://127.0.0.1:8080")->target, "/");
  EXPECT_EQ(ParseNoticeUrl("http://[fd00:ec2::254]:81/a")->address, "fd00:ec2::254");
  for (const char* wrong : {"", "169.254.169.254", "https://169.254.169.254/", "http://cloud/a",
                            "http://user@127.0.0.1/", "http://127.0.0.1:0/", "http://127.0.0.1:x/",
                            "http://[::1/", "http://127.0.0.1/a b", "http://127.0.0.1/\r\nX: y"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseNoticeUrl(wrong).status())) << wrong;
  }
}

TEST(ReadNotice, TellsWhyOrThatTheNodeStaysOrNothing) {
  EXPECT_EQ(ReadNotice("HTTP/1.1 404 Not Found\r\n\r\n"), "");
  EXPECT_EQ(ReadNotice("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"action\": \"stop\"}\nmore"),
            "{\"action\": \"stop\"}");
  EXPECT_EQ(ReadNotice("HTTP/1.1 200 OK\r\n\r\nFALSE"), "");
  EXPECT_EQ(ReadNotice("HTTP/1.1 200 OK\r\n\r\nTRUE"), "TRUE");
  EXPECT_EQ(ReadNotice("HTTP/1.1 200 OK\r\n\r\n"), "its cloud says so");
  EXPECT_EQ(ReadNotice("HTTP/1.1 200 OK\r\n\r\na\tb\x1b[31m"), "a b [31m");
  for (const char* nothing : {"", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 401 No\r\n\r\n",
                              "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                              "SSH-2.0 200 \r\n\r\nTRUE"}) {
    EXPECT_EQ(ReadNotice(nothing), std::nullopt) << nothing;
  }
}

TEST(DrainWatch, SeesAFileComeAndGo) {
  const std::string file = absl::StrCat(testing::TempDir(), "/gone.", ::getpid());
  asio::io_context loop;
  std::vector<std::string> told;
  DrainWatch watch(
      loop, {file, std::nullopt},
      [&](std::string reason) {
        told.push_back(reason);
        if (reason.empty()) return loop.stop();
        std::filesystem::remove(file);
      },
      kTestTurn);
  watch.Begin();
  EXPECT_TRUE(told.empty());
  std::ofstream(file) << "maintenance at noon\nmore\n";
  loop.run();
  EXPECT_EQ(told, (std::vector<std::string>{"maintenance at noon", ""}));
}

TEST(DrainWatch, AsksAUrlAndIgnoresAnAnswerThatSaysNeither) {
  asio::io_context loop;
  tcp::acceptor acceptor(loop, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const std::vector<std::string> answers = {"HTTP/1.1 500 Oops\r\n\r\n",
                                            "HTTP/1.1 200 OK\r\n\r\n{\"action\": \"stop\"}"};
  size_t next = 0;
  std::string asked;
  std::function<void()> serve = [&] {
    acceptor.async_accept([&](const asio::error_code& error, tcp::socket accepted) {
      if (error) return;
      const auto socket = std::make_shared<tcp::socket>(std::move(accepted));
      asked.clear();
      asio::async_read_until(*socket, asio::dynamic_buffer(asked), "\r\n\r\n",
                             [&, socket](const asio::error_code&, size_t) {
                               asio::write(*socket, asio::buffer(answers[next]));
                               next = std::min(next + 1, answers.size() - 1);
                               serve();
                             });
    });
  };
  serve();
  std::vector<std::string> told;
  NoticeUrl url{"127.0.0.1", acceptor.local_endpoint().port(), "/action"};
  DrainWatch watch(
      loop, {"", url},
      [&](std::string reason) {
        told.push_back(reason);
        loop.stop();
      },
      kTestTurn);
  watch.Begin();
  loop.run();
  EXPECT_EQ(told, std::vector<std::string>{"{\"action\": \"stop\"}"});
  EXPECT_EQ(next, 1u);
  EXPECT_EQ(asked.substr(0, 21), "GET /action HTTP/1.0\r");
}

}  // namespace
}  // namespace hlaunch
