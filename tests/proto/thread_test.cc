// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "proto/base/clock.h"
#include "tests/rendezvous/no_threads.h"

namespace hlaunch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

bool Within5Minutes(const std::function<bool()>& condition) {
  const Instant deadline = MonotonicClock().Now() + std::chrono::minutes(5);
  while (!condition() && MonotonicClock().Now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

std::string OwnName() {
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return name;
}

TEST(Thread, HasItsNameFromTheBeginning) {
  std::string name;
  {
    const Thread thread("hl-test", [&name] { name = OwnName(); });
  }
  EXPECT_EQ(name, "hl-test");
}

TEST(Thread, HasTheBeginningOfANameThatIsTooLong) {
  std::string name;
  {
    const Thread thread("hl-0123456789abcdef", [&name] { name = OwnName(); });
  }
  EXPECT_EQ(name, "hl-0123456789ab");
}

TEST(Thread, IsJoinedByItsOwner) {
  std::atomic<bool> ended = false;
  {
    absl::StatusOr<Thread> thread = Thread::Start("hl-test", [&ended] {
      std::this_thread::yield();
      ended = true;
    });
    ASSERT_TRUE(thread.ok()) << thread.status();
    EXPECT_TRUE(thread->joinable());
  }
  EXPECT_TRUE(ended);
}

TEST(Thread, IsJoinedBeforeAnotherTakesItsPlace) {
  std::atomic<int> runs = 0;  // The other one begins before the first is joined.
  Thread thread("hl-test", [&runs] { ++runs; });
  thread = Thread("hl-test", [&runs] { ++runs; });
  thread.Join();
  EXPECT_FALSE(thread.joinable());
  EXPECT_EQ(runs, 2);
}

TEST(Thread, SaysWhyTheSystemRefusesIt) {
  const NoThreads none;
  const absl::StatusOr<Thread> thread = Thread::Start("hl-test", [] {});
  EXPECT_TRUE(absl::IsResourceExhausted(thread.status())) << thread.status();
  EXPECT_THAT(thread.status().message(), HasSubstr("raise the limit of processes"));
  EXPECT_THROW(Thread("hl-test", [] {}), std::system_error);
}

TEST(StartUnawaited, ListsAThreadUntilItHasEnded) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  ASSERT_TRUE(StartUnawaited("hl-one", [released] { released.wait(); }).ok());
  ASSERT_TRUE(StartUnawaited("hl-another", [released] { released.wait(); }).ok());
  EXPECT_THAT(UnawaitedThreads(), ElementsAre("hl-another", "hl-one"));
  release.set_value();
  EXPECT_TRUE(Within5Minutes([] { return UnawaitedThreads().empty(); }));
}

TEST(StartUnawaited, KeepsNothingOfAThreadThatHasEnded) {
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> seen = held;
  ASSERT_TRUE(StartUnawaited("hl-test", [held] {}).ok());
  held.reset();
  EXPECT_TRUE(Within5Minutes([&seen] { return seen.expired(); }));
}

TEST(StartUnawaited, SaysWhyTheSystemRefusesIt) {
  const NoThreads none;
  const absl::Status started = StartUnawaited("hl-test", [] {});
  EXPECT_TRUE(absl::IsResourceExhausted(started)) << started;
  EXPECT_THAT(UnawaitedThreads(), Not(Contains("hl-test")));
}

// It has none of these threads, so it must not wait for them when it exits.
TEST(StartUnawaited, OfAParentAreNoConcernOfItsForkedChild) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  ASSERT_TRUE(StartUnawaited("hl-parent", [released] { released.wait(); }).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(UnawaitedThreads().empty() ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  release.set_value();
  EXPECT_TRUE(Within5Minutes([] { return UnawaitedThreads().empty(); }));
}

TEST(NoThreadWords, NameTheWayOut) {
  EXPECT_THAT(NoThreadWords(EAGAIN), HasSubstr("ulimit -u"));
  EXPECT_THAT(NoThreadWords(EPERM), HasSubstr("seccomp=unconfined"));
}

}  // namespace
}  // namespace hlaunch
