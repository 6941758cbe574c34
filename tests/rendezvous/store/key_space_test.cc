// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/key_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(KeySpace, WakesAWaiterWhenItsLastKeyComes) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(7, {"a", "b", "a"}));
  ASSERT_TRUE(keys.Set("a", "").ok());
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
  ASSERT_TRUE(keys.Add("b", 1).ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(7));
}

TEST(KeySpace, WakesWaitersInTheOrderTheyCame) {
  KeySpace keys;
  for (const KeySpace::WaiterId who : {3, 1, 2}) EXPECT_FALSE(keys.Wait(who, {"k"}));
  ASSERT_TRUE(keys.Set("k", "v").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(3, 1, 2));
}

TEST(KeySpace, ForgetsACancelledWait) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(1, {"a", "b"}));
  EXPECT_FALSE(keys.Wait(2, {"a"}));
  keys.CancelWait(1);
  ASSERT_TRUE(keys.Set("a", "").ok());
  keys.CancelWait(2);  // The wait is over but not reported yet.
  ASSERT_TRUE(keys.Set("b", "").ok());
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
}

TEST(KeySpace, ASecondWaitReplacesTheFirst) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(1, {"a"}));
  EXPECT_FALSE(keys.Wait(1, {"b"}));
  ASSERT_TRUE(keys.Set("a", "").ok());
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
  ASSERT_TRUE(keys.Set("b", "").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
}

TEST(KeySpace, CompareAndSetWakesOnlyWhenItHasSet) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(1, {"k"}));
  EXPECT_EQ(*keys.CompareAndSet("k", "other", "new"), "other");
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
  EXPECT_EQ(*keys.CompareAndSet("k", "", "new"), "new");
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
  EXPECT_EQ(*keys.CompareAndSet("k", "other", "x"), "new");
}

TEST(KeySpace, RefusesAddToText) {
  KeySpace keys;
  ASSERT_TRUE(keys.Set("text", "x").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(keys.Add("text", 1).status()));
}

TEST(KeySpace, ASumOverSixtyFourBitsWrapsAround) {
  KeySpace keys;
  ASSERT_TRUE(keys.Set("full", "9223372036854775807").ok());
  EXPECT_EQ(*keys.Add("full", 1), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*keys.Find("full"), "-9223372036854775808");
  EXPECT_EQ(*keys.Add("full", -1), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*keys.Add("full", std::numeric_limits<int64_t>::min()), -1);
}

TEST(ParseCounter, ReadsTheNumberThatTheValueBeginsWith) {
  EXPECT_EQ(ParseCounter("-12"), -12);
  EXPECT_EQ(ParseCounter(" +5"), 5);
  EXPECT_EQ(ParseCounter("12ab"), 12);
  EXPECT_EQ(ParseCounter("7\n"), 7);
  EXPECT_EQ(ParseCounter(""), std::nullopt);
  EXPECT_EQ(ParseCounter("ab"), std::nullopt);
  EXPECT_EQ(ParseCounter("9223372036854775808"), std::nullopt);
}

TEST(KeySpace, QueueCountsAsAKeyWhileItHoldsSomething) {
  KeySpace keys;
  EXPECT_FALSE(keys.Check({"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "1").ok());
  EXPECT_TRUE(keys.Check({"q"}));
  EXPECT_TRUE(keys.Wait(1, {"q"}));
  EXPECT_EQ(keys.size(), 0u);
  EXPECT_EQ(keys.QueuePop(1, "q").value, "1");
  EXPECT_EQ(keys.QueuePop(1, "q").length_before, 0);
  EXPECT_FALSE(keys.Check({"q"}));
}

TEST(KeySpace, PushWakesOneWaiterEach) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(1, {"q"}));
  EXPECT_FALSE(keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
  ASSERT_TRUE(keys.QueuePush("q", "b").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(2));
}

TEST(KeySpace, PushPassesOverAWaiterThatWaitsForMore) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(1, {"q", "other"}));
  EXPECT_FALSE(keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(2));
  ASSERT_TRUE(keys.Set("other", "").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
}

TEST(KeySpace, ItemOfAWaiterThatGivesUpGoesToTheNext) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(1, {"q"}));
  EXPECT_FALSE(keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
  keys.CancelWait(1);
  EXPECT_THAT(keys.TakeReady(), ElementsAre(2));
}

TEST(KeySpace, ItemStaysPromisedToAWaiterThatAsksAgain) {
  KeySpace keys;
  EXPECT_FALSE(keys.Wait(1, {"q"}));
  EXPECT_FALSE(keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
  EXPECT_TRUE(keys.Wait(1, {"q"}));
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
}

TEST(KeySpace, BarrierOpensForAllWithTheLastArrivalAndStaysOpen) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Barrier(1, "b", 3));
  EXPECT_FALSE(*keys.Barrier(2, "b", 3));
  ASSERT_TRUE(keys.Add("b", 0).ok());  // Other clients may read the counter.
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
  EXPECT_TRUE(*keys.Barrier(3, "b", 3));
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1, 2));
  EXPECT_TRUE(*keys.Barrier(1, "b", 3));
}

TEST(KeySpace, RefusesWhatIsOverItsLimitsAndKeepsWhatItHas) {
  StoreLimits limits;
  limits.total_bytes = kEntryBytes + 100;
  KeySpace keys(limits);
  ASSERT_TRUE(keys.Set("k", std::string(90, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Set("l", "")));
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Append("k", std::string(10, 'x'))));
  EXPECT_TRUE(absl::IsResourceExhausted(keys.QueuePush("q", std::string(10, 'x'))));
  EXPECT_EQ(keys.Find("k")->size(), 90u);
  EXPECT_EQ(keys.QueueLength("q"), 0);
  EXPECT_TRUE(keys.Set("k", std::string(99, 'x')).ok());
  EXPECT_TRUE(keys.Delete("k"));
  EXPECT_TRUE(keys.QueuePush("q", std::string(99, 'x')).ok());
  EXPECT_EQ(keys.QueuePop(1, "q").length_before, 1);
  EXPECT_TRUE(keys.Set("l", std::string(99, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Set(std::string(kMaxKeyBytes + 1, 'k'), "")));
}

TEST(StoreLimits, NameTheOptionThatRaisesThem) {
  const StoreLimits limits{.key_bytes = 1, .value_bytes = 2, .total_bytes = 99, .by_option = true};
  KeySpace keys(limits);
  const auto refusal = [&keys](absl::string_view key, absl::string_view value) {
    return std::string(keys.Set(key, std::string(value)).message());
  };
  EXPECT_THAT(refusal("kk", ""), HasSubstr("2, at most 1; raise it with --store-max-key"));
  EXPECT_THAT(refusal("k", "vvv"), HasSubstr("3, at most 2; raise it with --store-max-value"));
  ASSERT_TRUE(keys.Set("k", "v").ok());
  EXPECT_THAT(refusal("l", "v"), HasSubstr("at most 99; raise it with --store-max-total"));
  EXPECT_THAT(std::string(StoreLimits().CheckKey(kMaxKeyBytes + 1).message()),
              Not(HasSubstr("--store")));  // Not every store has these options.
}

}  // namespace
}  // namespace hlaunch
