// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with a real socket, a real loop and real processes, which call what the library calls.

#include "agent/watch/stall/heartbeat_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "comm/liveness.h"
#include "proto/base/status_macros.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kShort = std::chrono::milliseconds(200);  // For tests with a stall.
constexpr Duration kLong = std::chrono::hours(1);            // For tests without a stall.

// Does what hlaunch.at_boundary() does.
void SendBoundary() {
  const std::string name = std::getenv("HLAUNCH_HEARTBEAT");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size() - 1, 1);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const std::string word = kBoundaryWord;
  ::sendto(fd.get(), word.data(), word.size(), 0, reinterpret_cast<sockaddr*>(&address), length);
}

class HeartbeatServerTest : public ::testing::Test {
 protected:
  void Open(Duration limit) {
    auto server = HeartbeatServer::Open(loop_, 2, limit,
                                        {[this](const std::vector<Stall>& stalls) {
                                           for (const Stall& stall : stalls)
                                             stalled_.push_back(stall.worker);
                                         },
                                         [this](int worker) { recovered_.push_back(worker); },
                                         [this](int64_t step) { steps_.push_back(step); },
                                         [this](int worker) { boundaries_.push_back(worker); }});
    HLAUNCH_CHECK(server.ok());
    server_ = *std::move(server);
  }
  ~HeartbeatServerTest() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  // Forks a worker, which runs `body` once the server knows it, and then waits to be killed.
  template <typename Body>
  pid_t Worker(int worker, Body body) {
    ::setenv("HLAUNCH_HEARTBEAT", server_->address(worker).c_str(), 1);
    int ends[2];
    HLAUNCH_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    UniqueFd wait(ends[0]), go(ends[1]);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      char byte;
      HLAUNCH_CHECK(::read(wait.get(), &byte, 1) == 1);
      body();
      for (;;) ::pause();
    }
    children_.push_back(pid);
    server_->Listen(worker, pid);
    HLAUNCH_CHECK(::write(go.get(), "", 1) == 1);
    return pid;
  }

  // Runs the loop until `done`, or until patience is over.
  template <typename Done>
  bool Until(Done done) {
    const Instant deadline = MonotonicClock().Now() + kPatience;
    while (!done() && MonotonicClock().Now() < deadline) {
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    return done();
  }
  bool Hears(int worker) {
    return Until([&] { return server_->heartbeats().IsWatched(worker); });
  }

  // Sends `words` as they are.
  void SendRaw(int worker, absl::string_view words, int descriptor = -1) {
    const std::string& name = server_->address(worker);
    const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, name.size());
    address.sun_path[0] = '\0';
    iovec part = {const_cast<char*>(words.data()), words.size()};
    msghdr message = {};
    message.msg_name = &address;
    message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
    }
    HLAUNCH_CHECK(::sendmsg(fd.get(), &message, 0) == static_cast<ssize_t>(words.size()));
  }

  static size_t Descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  asio::io_context loop_{1};
  std::unique_ptr<HeartbeatServer> server_;
  std::vector<int> stalled_;
  std::vector<int> recovered_;
  std::vector<int64_t> steps_;
  std::vector<int> boundaries_;
  std::vector<pid_t> children_;
};

TEST_F(HeartbeatServerTest, NamesWhoWasHeardAndThenNotForTheLimit) {
  Open(kShort);
  Worker(1, [] { SendHeartbeat(12, 0); });
  Worker(0, [] {});
  ASSERT_TRUE(Until([&] { return !stalled_.empty(); }));
  EXPECT_THAT(stalled_, ElementsAre(1));
  EXPECT_EQ(server_->heartbeats().Last(1).step, 12);
  EXPECT_FALSE(server_->heartbeats().IsWatched(0));
}

TEST_F(HeartbeatServerTest, HearsOfARecovery) {
  Open(kShort);
  Worker(0, [] {  // Stalls again and again, since a loop that was late itself forgives the stall.
    for (;; ::usleep(600'000)) SendHeartbeat(-1, 0);
  });
  ASSERT_TRUE(Until([&] { return !recovered_.empty(); }));
  EXPECT_THAT(stalled_, ElementsAre(0));
  EXPECT_THAT(recovered_, ElementsAre(0));
}

TEST_F(HeartbeatServerTest, HearsADescendantInASessionOfItsOwn) {
  Open(kLong);
  Worker(0, [] {
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setsid();
      SendHeartbeat(3, 0);
      ::pause();
    }
  });
  EXPECT_TRUE(Hears(0));
  EXPECT_EQ(server_->heartbeats().Last(0).step, 3);
}

TEST_F(HeartbeatServerTest, IgnoresStrangersAndOtherWorkers) {
  Open(kShort);
  Worker(0, [] {});
  Worker(1, [this] {
    SendRaw(0, "heartbeat/1 step=666");  // In the name of its neighbour.
    SendHeartbeat(1, 0);
  });
  SendRaw(0, "heartbeat/1 step=667");  // This process is no worker.
  ASSERT_TRUE(Hears(1));
  EXPECT_TRUE(Until([&] { return !stalled_.empty(); }));
  EXPECT_FALSE(server_->heartbeats().IsWatched(0));
}

TEST_F(HeartbeatServerTest, IgnoresOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  Open(kLong);
  Worker(0, [] {});
  Worker(1, [] { SendHeartbeat(1, 0); });
  const pid_t other = ::fork();
  if (other == 0) {
    if (::setresuid(54321, 54321, 54321) == 0) SendRaw(0, "heartbeat/1 step=666");
    ::_exit(0);
  }
  ::waitpid(other, nullptr, 0);
  ASSERT_TRUE(Hears(1));
  EXPECT_THAT(steps_, ElementsAre(1));
  EXPECT_FALSE(server_->heartbeats().IsWatched(0));
}

TEST_F(HeartbeatServerTest, OutlastsWhatIsNoHeartbeatAndKeepsNoDescriptor) {
  Open(kLong);
  const size_t before = Descriptors();
  Worker(0, [this] {
    for (int i = 0; i < 2000; ++i) {
      SendRaw(0, std::string(static_cast<size_t>(i), static_cast<char>(i)), STDIN_FILENO);
    }
    SendHeartbeat(1, 60);  // With its own limit it waits for room in the queue.
  });
  ASSERT_TRUE(Hears(0));
  EXPECT_EQ(Descriptors(), before);
}

TEST_F(HeartbeatServerTest, AFloodOfHeartbeatsNeverBlocksTheSenderAndTurnsTheLoopRarely) {
  Open(kLong);
  const pid_t pid = Worker(0, [] {
    for (int64_t step = 0;; ++step) SendHeartbeat(step, 0);
  });
  ASSERT_TRUE(Hears(0));
  bool over = false;
  asio::steady_timer end(loop_, std::chrono::milliseconds(300));
  end.async_wait([&](const asio::error_code&) { over = true; });
  int turns = 0;
  while (!over) turns += static_cast<int>(loop_.run_one());
  EXPECT_LT(turns, 600) << "for each 10 ms two, and what a queue holds";
  EXPECT_THAT(stalled_, IsEmpty());
  ::kill(pid, SIGKILL);
}

TEST_F(HeartbeatServerTest, ATimeThatIsSentIntoAFullQueueArrives) {
  Open(kLong);
  Worker(0, [] {
    for (int64_t step = 0; step < 1000; ++step) SendHeartbeat(step, 0);
    SendHeartbeat(1000, INFINITY);
  });
  ASSERT_TRUE(Until([&] { return server_->heartbeats().Last(0).step == 1000; }));
  EXPECT_EQ(server_->heartbeats().Next(), std::nullopt);
}

TEST_F(HeartbeatServerTest, ForgetsWhoHasEnded) {
  Open(kLong);
  Worker(0, [] { SendHeartbeat(1, 0); });
  ASSERT_TRUE(Hears(0));
  server_->Forget(0);
  EXPECT_EQ(server_->heartbeats().Next(), std::nullopt);
}

TEST_F(HeartbeatServerTest, ReadsWhatCameWhileItWasStoppedBeforeItJudges) {
  Open(std::chrono::seconds(1));
  Worker(0, [] {
    for (int64_t step = 0;; ::usleep(20'000)) SendHeartbeat(++step, 0);
  });
  ASSERT_TRUE(Hears(0));
  ::usleep(2'500'000);  // As if this process had been stopped.
  loop_.run_for(std::chrono::milliseconds(100));
  EXPECT_THAT(stalled_, IsEmpty());
}

TEST_F(HeartbeatServerTest, AGoodMomentToStopIsNoHeartbeat) {
  Open(kShort);
  Worker(1, [] { SendBoundary(); });
  ASSERT_TRUE(Until([&] { return !boundaries_.empty(); }));
  EXPECT_THAT(boundaries_, ElementsAre(1));
  EXPECT_FALSE(server_->heartbeats().IsWatched(1));
}

TEST_F(HeartbeatServerTest, RestsWhileNothingIsHeard) {
  Open(kLong);
  loop_.restart();
  asio::steady_timer end(loop_, std::chrono::milliseconds(300));
  bool over = false;
  end.async_wait([&](const asio::error_code&) { over = true; });
  int turns = 0;
  while (!over) turns += static_cast<int>(loop_.run_one());
  EXPECT_EQ(turns, 1) << "the test's own timer";
}

TEST(SendHeartbeat, DoesNothingWhereNobodyListens) {
  ::unsetenv("HLAUNCH_HEARTBEAT");
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(SendHeartbeat(1, 0) ? 1 : 0);
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hlaunch
