// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/job_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "asio/executor_work_guard.hpp"
#include "asio/io_context.hpp"
#include "launcher/job/socket/ask_socket.h"
#include "launcher/job/socket/find_sockets.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// A job with a loop of its own. Other tests of this user may run jobs beside it.
class JobServerTest : public testing::Test {
 protected:
  void SetUp() override {
    JobServer::Answers answers;
    answers.here = [] {
      JobHere here;
      here.job_id = "job-of-this-test";
      here.pid = ::getpid();
      return here;
    };
    answers.meeting = [] { return absl::FailedPreconditionError("it meets nobody"); };
    answers.status = [] { return std::optional<JobStatus>(); };
    answers.ranks = [](const RankQuestion&, const JobServer::Answers::RanksDone& done) {
      JobAnswer answer;
      answer.explanation = "asked";
      std::thread([done, answer] { done(answer); }).join();  // From any thread.
      return absl::OkStatus();
    };
    answers.end = [](int signal) {
      return signal == SIGTERM ? absl::OkStatus() : absl::UnavailableError("no");
    };
    auto server = JobServer::Open(loop_, std::move(answers));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { loop_.run(); });
  }

  void TearDown() override { Close(); }

  void Close() {
    if (!thread_.joinable()) return;
    loop_.stop();
    thread_.join();
    server_.reset();
  }

  std::optional<JobSocketName> Socket() {
    for (const FoundJob& job : FindJobs(::geteuid()).jobs) {
      if (job.pid == ::getpid() && job.here.job_id == "job-of-this-test") return job.socket;
    }
    return std::nullopt;
  }

  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.get_executor()};
  std::unique_ptr<JobServer> server_;
  std::thread thread_;
};

TEST_F(JobServerTest, IsFoundAndAnswers) {
  const auto socket = Socket();
  ASSERT_TRUE(socket.has_value());
  const auto ask = [&](const char* verb, const nlohmann::json& body) {
    return AskSocket(*socket, verb, body, seconds(30));
  };
  const nlohmann::json nothing = nlohmann::json::object();
  EXPECT_EQ(ask("meeting", nothing).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ask("status", nothing).status().code(), absl::StatusCode::kFailedPrecondition);
  const auto ranks = ask("ranks", ToJson(RankQuestion()));
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_EQ(ReadJobAnswer(*ranks)->explanation, "asked");
  EXPECT_TRUE(ask("end", ToJson(EndRequest{SIGTERM})).ok());
  EXPECT_EQ(ask("end", ToJson(EndRequest{SIGINT})).status().message(), "no");
  EXPECT_EQ(ask("end", nothing).status().message(), "no");
  EXPECT_THAT(std::string(ask("dance", nothing).status().message()), HasSubstr("'dance'"));
}

TEST_F(JobServerTest, IsGoneWithItsProcess) {
  const auto socket = Socket();
  ASSERT_TRUE(socket.has_value());
  Close();
  EXPECT_FALSE(Socket().has_value());
  EXPECT_EQ(AskSocket(*socket, "who", nlohmann::json::object(), seconds(30)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(JobServerTest, CutsOffWhatSpeaksNoneOfItsWords) {
  const auto socket = Socket();
  ASSERT_TRUE(socket.has_value());
  for (const std::string& words : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(8, '\0')}) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const AbstractAddress address = AddressOf(*socket);
    ASSERT_EQ(::connect(fd.get(), address.get(), address.length), 0);
    ASSERT_GT(::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL), 0);
    char byte = 0;
    EXPECT_LE(::read(fd.get(), &byte, 1), 0);
  }
}

// A process of another user listens at a name that says it were this user's.
TEST_F(JobServerTest, AStrangerUnderOurNameIsNotAsked) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const JobSocketName name = NewJobSocketName(0, ::getpid(), 0x5742);
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    const AbstractAddress address = AddressOf(name);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const bool listens = ::setresuid(65534, 65534, 65534) == 0 &&
                         ::bind(fd, address.get(), address.length) == 0 && ::listen(fd, 1) == 0;
    const char byte = listens ? 1 : 0;
    (void)!::write(ready[1], &byte, 1);
    ::pause();
    ::_exit(0);
  }
  char listens = 0;
  EXPECT_EQ(::read(ready[0], &listens, 1), 1);
  EXPECT_EQ(listens, 1);
  EXPECT_EQ(AskSocket(name, "who", nlohmann::json::object(), seconds(30)).status().code(),
            absl::StatusCode::kPermissionDenied);
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace hlaunch
