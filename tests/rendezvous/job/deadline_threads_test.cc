// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/deadline_threads.h"

#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/no_threads.h"

namespace hlaunch {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;

Instant Now() { return MonotonicClock().Now(); }

// Records calls in their order and waits for them.
class Calls {
 public:
  void Add(int which) {
    MutexLock lock(&mu_);
    calls_.push_back(which);
    came_.SignalAll();
  }
  std::vector<int> Await(size_t count) {
    MutexLock lock(&mu_);
    while (calls_.size() < count) {
      if (!came_.WaitUntil(&mu_, Now() + std::chrono::minutes(2))) break;
    }
    return calls_;
  }

 private:
  Mutex mu_;
  CondVar came_;
  std::vector<int> calls_ ABSL_GUARDED_BY(mu_);
};

TEST(DeadlineThreads, CallsInTheOrderOfDeadlines) {
  Calls calls;
  std::atomic<bool> held{true};
  DeadlineThreads threads(MonotonicClock(), 1);
  // Its call keeps the only thread until all deadlines are set, however long that takes.
  const auto holder = threads.Add([&] { held.wait(true); });
  EXPECT_TRUE(threads.Set(holder, Now()).ok());
  const auto first = threads.Add([&] { calls.Add(1); });
  const auto second = threads.Add([&] { calls.Add(2); });
  const auto never = threads.Add([&] { calls.Add(3); });
  const Instant soon = Now() + milliseconds(20);
  EXPECT_TRUE(threads.Set(second, soon + milliseconds(1)).ok());
  EXPECT_TRUE(threads.Set(never, soon).ok());
  EXPECT_TRUE(threads.Set(never, Now() + hours(1)).ok());  // It replaces the earlier deadline.
  EXPECT_TRUE(threads.Set(first, soon).ok());
  held = false;
  held.notify_all();
  EXPECT_THAT(calls.Await(2), ElementsAre(1, 2));
  for (const auto id : {holder, first, second, never}) threads.Remove(id);
}

TEST(DeadlineThreads, ADeadlineThatIsSetWhileNobodyHasOneHolds) {
  Calls calls;
  DeadlineThreads threads(MonotonicClock(), 1);
  const auto id = threads.Add([&] { calls.Add(1); });
  for (size_t i = 1; i <= 20; ++i) {
    EXPECT_TRUE(threads.Set(id, Now()).ok());
    ASSERT_THAT(calls.Await(i), testing::SizeIs(i));
  }
  threads.Remove(id);
}

TEST(DeadlineThreads, ADeadlineThatIsSetWithinTheCallHolds) {
  Calls calls;
  DeadlineThreads threads(MonotonicClock(), 2);
  std::atomic<DeadlineThreads::Id> id{0};
  int count = 0;  // No lock: two calls never run at the same time.
  id = threads.Add([&] {
    calls.Add(++count);
    const absl::Status set = count < 3 ? threads.Set(id, Now()) : absl::OkStatus();
    EXPECT_TRUE(set.ok());
  });
  EXPECT_TRUE(threads.Set(id, Now()).ok());
  EXPECT_THAT(calls.Await(3), ElementsAre(1, 2, 3));
  threads.Remove(id);
}

TEST(DeadlineThreads, ACallThatTakesLongHoldsUpNobodyElse) {
  Calls calls;
  DeadlineThreads threads(MonotonicClock(), 2);
  std::atomic<bool> waits{true};
  const auto slow = threads.Add([&] {
    while (waits) waits.wait(true);
    calls.Add(2);
  });
  const auto other = threads.Add([&] { calls.Add(1); });
  EXPECT_TRUE(threads.Set(slow, Now()).ok());
  EXPECT_TRUE(threads.Set(other, Now() + milliseconds(10)).ok());
  EXPECT_THAT(calls.Await(1), ElementsAre(1));
  waits = false;
  waits.notify_all();
  threads.Remove(slow);  // Remove waits for its running call.
  EXPECT_TRUE(threads.Set(other, Now() + hours(1)).ok());
  threads.Remove(other);
}

TEST(DeadlineThreads, OutOfThreadsIsAnErrorAndTheDeadlineHoldsOnceThereIsOne) {
  Calls calls;
  DeadlineThreads threads(MonotonicClock(), 2);
  const auto id = threads.Add([&] { calls.Add(1); });
  {
    const NoThreads none;
    EXPECT_EQ(threads.Start().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(threads.Set(id, Now()).code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(threads.Start().ok());
  EXPECT_THAT(calls.Await(1), ElementsAre(1));
  threads.Remove(id);
}

}  // namespace
}  // namespace hlaunch
