// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/tap_request.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <vector>

#include "agent/watch/hang/tap.h"
#include "asio/io_context.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// A server's socket; connections wait until Answer accepts them.
class Server {
 public:
  explicit Server(int backlog)
      : tap_(Tap::Make("").value()),
        path_(TapSocketPath(tap_->directory(), 0, 1)),
        listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), backlog), 0);
  }

  const std::string& path() const { return path_; }

  // Accepts the waiting question and answers it.
  void Answer(const std::string& answer) {
    const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
    char question[1024];
    EXPECT_GT(::read(peer.get(), question, sizeof question), 0);
    EXPECT_EQ(::write(peer.get(), answer.data(), answer.size()),
              static_cast<ssize_t>(answer.size()));
  }

 private:
  const std::unique_ptr<Tap> tap_;
  const std::string path_;
  const UniqueFd listener_;
};

TEST(TapRequest, GivesTheBodyOfTheAnswer) {
  asio::io_context loop;
  Server server(1);
  absl::StatusOr<std::string> got = absl::UnknownError("");
  const TapRequest request(loop, server.path(), "ping", [&](auto answer) { got = answer; });
  loop.run_one();  // The request writes its question.
  server.Answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong");
  while (!got.ok() && loop.run_one() > 0) {
  }
  EXPECT_EQ(got.value(), "pong");
}

TEST(TapRequest, NeverWaitsForAServerThatLetsNobodyIn) {
  asio::io_context loop;
  const Server server(0);
  std::vector<std::unique_ptr<TapRequest>> requests;
  std::optional<absl::Status> refused;
  for (int i = 0; i < 4; ++i) {  // A constructor that waits would hang here.
    requests.push_back(std::make_unique<TapRequest>(loop, server.path(), "ping", [&](auto answer) {
      if (!refused) refused = answer.status();
    }));
  }
  while (!refused && loop.run_one() > 0) {
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(*refused)) << *refused;
}

TEST(TapRequest, TellsThatThereIsNoServer) {
  asio::io_context loop;
  absl::Status status;
  const TapRequest request(loop, "/no such directory/0.1", "ping",
                           [&](auto answer) { status = answer.status(); });
  EXPECT_TRUE(status.ok());  // Never called from within the constructor.
  loop.run();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(BodyOf, RefusesWhatIsNoAnswer) {
  EXPECT_EQ(BodyOf("HTTP/1.1 200 OK\r\n\r\nx\r\n\r\ny").value(), "x\r\n\r\ny");
  EXPECT_TRUE(absl::IsNotFound(BodyOf("HTTP/1.1 404 Not Found\r\n\r\n").status()));
  for (const char* answer : {"", "HTTP/1.1 200 OK\r\n", "SSH-2.0\r\n\r\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(BodyOf(answer).status())) << answer;
  }
}

}  // namespace
}  // namespace hlaunch
