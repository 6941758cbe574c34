// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/events/event_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

Instant In(Duration time) { return MonotonicClock().Now() + time; }

class EventHookTest : public testing::Test {
 protected:
  EventHookTest() {
    std::string folder = testing::TempDir() + "/hookXXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~EventHookTest() override { std::filesystem::remove_all(folder_); }

  std::string told() const {
    std::stringstream text;
    text << std::ifstream(folder_ + "/told").rdbuf();
    return text.str();
  }

  EventReceiver Shell(const std::string& script) const {
    return {{"/bin/sh", "-c", absl::StrCat("cd ", folder_, "; ", script)}, {}};
  }

  std::string folder_;
};

TEST_F(EventHookTest, GivesEachEventInItsOrderAndThenEnds) {
  auto hook = EventHook::Begin(Shell("cat >> told"));
  ASSERT_TRUE(hook.ok()) << hook.status();
  hook->Send("{\"event\":\"a\"}\n");
  hook->Send("{\"event\":\"b\"}\n");
  hook->Finish();
  EXPECT_TRUE(hook->AwaitGiven(In(std::chrono::minutes(1))));
  EXPECT_EQ(told(), "{\"event\":\"a\"}\n{\"event\":\"b\"}\n");
  int status = -1;
  EXPECT_GT(::wait(&status), 0);
  EXPECT_EQ(status, 0);
}

TEST_F(EventHookTest, NeverWaitsForAReceiverThatHangs) {
  auto hook = EventHook::Begin(Shell("while ! [ -e go ]; do sleep 0.05; done; cat >> told"));
  ASSERT_TRUE(hook.ok()) << hook.status();
  const std::string event = absl::StrCat("{\"event\":\"", std::string(1000, 'x'), "\"}\n");
  for (int i = 0; i < 5000; ++i) hook->Send(event);  // A blocking call would never return.
  EXPECT_FALSE(hook->AwaitGiven(In(Duration::zero())));
  std::ofstream(folder_ + "/go").close();
  hook->Finish();
  EXPECT_TRUE(hook->AwaitGiven(In(std::chrono::minutes(1))));
  EXPECT_THAT(told(), HasSubstr("xxx"));
}

TEST_F(EventHookTest, SaysThatAnEventWasTooLargeAndCountsIt) {
  auto hook = EventHook::Begin(Shell("cat >> told"));
  ASSERT_TRUE(hook.ok()) << hook.status();
  testing::internal::CaptureStderr();
  hook->Send(absl::StrCat("{\"event\":\"", std::string(70000, 'x'), "\"}\n"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("an event of 70013 bytes is too large"));
  hook->Send("{\"event\":\"a\"}\n");
  hook->Finish();
  EXPECT_TRUE(hook->AwaitGiven(In(std::chrono::minutes(1))));
  EXPECT_EQ(told(), "{\"event\":\"a\",\"dropped\":1}\n");
}

TEST_F(EventHookTest, FailuresAreNoTrouble) {
  auto hook = EventHook::Begin(EventReceiver{{"/none/such"}, {}});
  ASSERT_TRUE(hook.ok()) << hook.status();
  hook->Send("{}\n");
  hook->Finish();
  EXPECT_TRUE(hook->AwaitGiven(In(std::chrono::minutes(1))));
}

TEST_F(EventHookTest, IsHandedOnOverExec) {
  EXPECT_FALSE(EventHook::FromEnv().any());
  auto hook = EventHook::Begin(Shell("cat >> told"));
  ASSERT_TRUE(hook.ok()) << hook.status();
  // Does what exec does: the descriptor stays open, but no object owns it.
  static EventHook* const before = new EventHook(*std::move(hook));
  std::string variable = before->ForExec();
  ASSERT_EQ(::putenv(variable.data()), 0);
  EventHook taken = EventHook::FromEnv();
  EXPECT_TRUE(taken.any());
  EXPECT_FALSE(EventHook::FromEnv().any()) << "it is gone from the environment";
  taken.Send("{}\n");
  taken.Finish();
  EXPECT_TRUE(taken.AwaitGiven(In(std::chrono::minutes(1))));
  EXPECT_EQ(told(), "{}\n");
}

TEST(EventHook, OfNobodyDoesNothing) {
  EventHook hook;
  hook.Send("{}\n");
  hook.Finish();
  EXPECT_EQ(hook.ForExec(), "");
  EXPECT_TRUE(hook.AwaitGiven(In(Duration::zero())));
}

TEST(WithDropped, CountsWhatIsMissing) {
  EXPECT_EQ(WithDropped("{\"event\":\"a\"}\n", 0), "{\"event\":\"a\"}\n");
  EXPECT_EQ(WithDropped("{\"event\":\"a\"}\n", 7), "{\"event\":\"a\",\"dropped\":7}\n");
}

TEST(DeliverEvent, SaysWhyItFailed) {
  const auto run = [](const std::string& script, Duration limit = std::chrono::minutes(1)) {
    return DeliverEvent({{"/bin/sh", "-c", script}, {}}, "{\"event\":\"a\"}\n", In(limit));
  };
  EXPECT_TRUE(run("read line; test \"$line\" = '{\"event\":\"a\"}'").ok());
  EXPECT_THAT(std::string(run("exit 3").message()), HasSubstr("exit code 3"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(run("sleep 1000", std::chrono::milliseconds(100))));
  EXPECT_TRUE(absl::IsNotFound(DeliverEvent({{"/none/such"}, {}}, "{}", In(Duration::zero()))));
}

TEST(DeliverEvent, PostsOnceWhereAnInterimAnswerComesFirst) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), any, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), any, &size), 0);
  std::thread server([&] {
    const UniqueFd peer(::accept(listener.get(), nullptr, nullptr));
    char byte = 0;
    while (byte != '}' && ::recv(peer.get(), &byte, 1, 0) == 1) {
    }
    for (const std::string answer :
         {"HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"}) {
      ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  });
  const EventReceiver receiver = {{}, EventUrl{"127.0.0.1", ntohs(address.sin_port), "/"}};
  const absl::Status given = DeliverEvent(receiver, "{}", In(std::chrono::minutes(1)));
  EXPECT_TRUE(given.ok()) << given;
  server.join();
}

TEST(DeliverEvent, AUrlWhereNobodyListensIsUnavailable) {
  const EventReceiver receiver = {{}, EventUrl{"127.0.0.1", 1, "/"}};
  EXPECT_TRUE(absl::IsUnavailable(DeliverEvent(receiver, "{}", In(std::chrono::seconds(2)))));
}

}  // namespace
}  // namespace hlaunch
