// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/rendezvous/no_threads.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Lookup, AnswersForALiteralAtOnce) {
  const auto found = Lookup::Start("10.1.2.3")->result();
  ASSERT_TRUE(found.has_value() && found->ok());
  EXPECT_THAT(**found, testing::ElementsAre("10.1.2.3"));
}

TEST(Lookup, AnswersForANameLater) {
  const auto found = Lookup::Start("localhost")->Await(MonotonicClock().Now() + seconds(300));
  ASSERT_TRUE(found.has_value() && found->ok());
  EXPECT_THAT(**found, testing::Contains("127.0.0.1"));
}

TEST(Lookup, SaysThatThereIsNoThreadForTheResolver) {
  const NoThreads out_of_threads;
  const auto found = Lookup::Start("localhost")->result();
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(absl::IsUnavailable(found->status())) << found->status();
}

// It waits for their ends: the descriptors of a lookup that still ran would come free in the next
// test of this program.
TEST(Lookup, OutlivesWhoeverAsked) {
  std::vector<std::weak_ptr<Lookup>> lookups;
  for (int i = 0; i < 50; ++i) lookups.push_back(Lookup::Start("localhost"));
  const auto ended = [&lookups] {
    return std::ranges::all_of(lookups, [](const auto& lookup) { return lookup.expired(); });
  };
  const Instant deadline = MonotonicClock().Now() + seconds(300);
  while (!ended() && MonotonicClock().Now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(ended());
}

}  // namespace
}  // namespace hlaunch
