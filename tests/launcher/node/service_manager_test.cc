// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "agent/output/output_relay.h"
#include "asio/io_context.hpp"
#include "launcher/node/observation.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

NotifyPlace Find(std::vector<std::string> entries) {
  return FindNotifyPlace(Environment(std::move(entries)), 20, 10);
}

TEST(FindNotifyPlace, TakesPathsAndAbstractNames) {
  EXPECT_EQ(Find({}).socket, "");
  EXPECT_EQ(Find({"NOTIFY_SOCKET=/run/a"}).socket, "/run/a");
  EXPECT_EQ(Find({"NOTIFY_SOCKET=@a"}).socket, "@a");
  EXPECT_EQ(Find({"NOTIFY_SOCKET=vsock:2:3"}).socket, "");
  EXPECT_EQ(Find({"NOTIFY_SOCKET=/"}).socket, "");
}

TEST(FindNotifyPlace, TakesAWatchdogThatIsMeantForThisProcessOrItsKeeper) {
  const std::string socket = "NOTIFY_SOCKET=/run/a", micros = "WATCHDOG_USEC=3000000";
  EXPECT_EQ(Find({socket, micros}).watchdog, seconds(3));
  EXPECT_EQ(Find({socket, micros, "WATCHDOG_PID=20"}).watchdog, seconds(3));
  EXPECT_EQ(Find({socket, micros, "WATCHDOG_PID=10"}).watchdog, seconds(3));
  EXPECT_EQ(Find({socket, micros, "WATCHDOG_PID=1"}).watchdog, seconds(0));
  EXPECT_EQ(Find({socket, "WATCHDOG_USEC=x"}).watchdog, seconds(0));
  EXPECT_EQ(Find({socket, "WATCHDOG_USEC=-1"}).watchdog, seconds(0));
  EXPECT_EQ(Find({micros}).watchdog, seconds(0));
}

// The service manager's end: a socket with an abstract name.
class ServiceManagerTest : public testing::Test {
 protected:
  ServiceManagerTest() : name_(absl::StrCat("@hlaunch_test_", ::getpid())) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, name_.size());
    address.sun_path[0] = '\0';
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  }

  std::string Next() {
    char bytes[512];
    const ssize_t n = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    return n < 0 ? "nothing" : std::string(bytes, static_cast<size_t>(n));
  }

  const std::string name_;
  UniqueFd socket_;
  asio::io_context loop_;
};

TEST_F(ServiceManagerTest, IsToldInTheProtocolsWords) {
  ServiceManager manager(loop_, {name_, {}});
  manager.Ready("a\nb");
  EXPECT_EQ(Next(), "READY=1\nSTATUS=a b\n");
  manager.Status("c");
  EXPECT_EQ(Next(), "STATUS=c\n");
  manager.MayTake(seconds(2));
  EXPECT_EQ(Next(), "EXTEND_TIMEOUT_USEC=2000000\n");
  manager.Stopping("d", seconds(1));
  EXPECT_EQ(Next(), "STOPPING=1\nSTATUS=d\nEXTEND_TIMEOUT_USEC=1000000\n");
  loop_.run();
  EXPECT_EQ(Next(), "nothing");
}

TEST_F(ServiceManagerTest, GetsSignsOfLifeWhileTheLoopTurns) {
  ServiceManager manager(loop_, {name_, milliseconds(20)});
  EXPECT_EQ(Next(), "nothing");  // Not before it is ready.
  manager.Ready("");
  Next();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Next(), "WATCHDOG=1\n");
    loop_.run_one();
  }
}

TEST_F(ServiceManagerTest, HearsWhatTheNodeDoesOnceContactIsBack) {
  ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  const auto relay = OutputRelay::Make(loop_);
  ASSERT_TRUE(relay.ok());
  Observation observation(loop_, **relay, Options(), "", "job", "node0");
  ::unsetenv("NOTIFY_SOCKET");
  const auto hears = [this, &observation](const NodeEvent& event) {
    observation.Tell(event);
    return Next();
  };
  EXPECT_EQ(hears(NodeJoined{}), "STATUS=waiting for the first round\n");
  EXPECT_EQ(hears(ContactChanged{false, "it is silent"}), "STATUS=it is silent\n");
  EXPECT_EQ(hears(ContactChanged{true, ""}), "STATUS=waiting for the first round\n");
  hears(RoundStarted{Assignment(), 1});
  EXPECT_EQ(hears(RoundStopped{1, "why"}), "STATUS=stopping the workers: why\n");
  EXPECT_THAT(Next(), testing::StartsWith("EXTEND_TIMEOUT_USEC="));
  hears(ContactChanged{false, "it is silent"});
  EXPECT_EQ(hears(ContactChanged{true, ""}), "STATUS=stopping the workers: why\n");
}

TEST_F(ServiceManagerTest, MayBeNobody) {
  ServiceManager manager(loop_, {});
  manager.Ready("a");
  ServiceManager gone(loop_, {"@hlaunch_nobody_listens_here", {}});
  gone.Ready("a");
  EXPECT_EQ(Next(), "nothing");
}

}  // namespace
}  // namespace hlaunch
