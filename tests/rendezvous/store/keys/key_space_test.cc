// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/key_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(KeySpace, WakesAWaiterWhenItsLastKeyComes) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(7, {"a", "b", "a"}));
  ASSERT_TRUE(keys.Set("a", "").ok());
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
  ASSERT_TRUE(keys.Add("b", 1).ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(7));
}

TEST(KeySpace, WakesWaitersInTheOrderTheyCame) {
  KeySpace keys;
  for (const KeySpace::WaiterId who : {3, 1, 2}) EXPECT_FALSE(*keys.Wait(who, {"k"}));
  ASSERT_TRUE(keys.Set("k", "v").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(3, 1, 2));
}

TEST(KeySpace, ForgetsACancelledWait) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(1, {"a", "b"}));
  EXPECT_FALSE(*keys.Wait(2, {"a"}));
  keys.CancelWait(1);
  ASSERT_TRUE(keys.Set("a", "").ok());
  keys.CancelWait(2);  // The wait is over but not reported yet.
  ASSERT_TRUE(keys.Set("b", "").ok());
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
}

TEST(KeySpace, ASecondWaitReplacesTheFirst) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(1, {"a"}));
  EXPECT_FALSE(*keys.Wait(1, {"b"}));
  ASSERT_TRUE(keys.Set("a", "").ok());
  EXPECT_THAT(keys.TakeReady(), IsEmpty());
  ASSERT_TRUE(keys.Set("b", "").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
}

TEST(KeySpace, CompareAndSetWakesOnlyWhenItHasSet) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(1, {"k"}));
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
  EXPECT_TRUE(*keys.Wait(1, {"q"}));
  EXPECT_EQ(keys.size(), 0u);
  EXPECT_EQ(keys.QueuePop(1, "q").value, "1");
  EXPECT_EQ(keys.QueuePop(1, "q").length_before, 0);
  EXPECT_FALSE(keys.Check({"q"}));
}

TEST(KeySpace, PushWakesOneWaiterEach) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(1, {"q"}));
  EXPECT_FALSE(*keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
  ASSERT_TRUE(keys.QueuePush("q", "b").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(2));
}

TEST(KeySpace, PushPassesOverAWaiterThatWaitsForMore) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(1, {"q", "other"}));
  EXPECT_FALSE(*keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(2));
  ASSERT_TRUE(keys.Set("other", "").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
}

TEST(KeySpace, ItemOfAWaiterThatGivesUpGoesToTheNext) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(1, {"q"}));
  EXPECT_FALSE(*keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
  keys.CancelWait(1);
  EXPECT_THAT(keys.TakeReady(), ElementsAre(2));
}

TEST(KeySpace, ItemStaysPromisedToAWaiterThatAsksAgain) {
  KeySpace keys;
  EXPECT_FALSE(*keys.Wait(1, {"q"}));
  EXPECT_FALSE(*keys.Wait(2, {"q"}));
  ASSERT_TRUE(keys.QueuePush("q", "a").ok());
  EXPECT_THAT(keys.TakeReady(), ElementsAre(1));
  EXPECT_TRUE(*keys.Wait(1, {"q"}));
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
  limits.total_bytes = 1000;
  KeySpace keys(limits);
  ASSERT_TRUE(keys.Set("k", std::string(800, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Set("l", std::string(100, 'x'))));
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Append("k", std::string(100, 'x'))));
  EXPECT_TRUE(absl::IsResourceExhausted(keys.QueuePush("q", std::string(10, 'x'))));
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Wait(1, {"w"}).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Barrier(1, "b", 2).status()));
  EXPECT_EQ(keys.Find("k")->size(), 800u);
  EXPECT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys.QueueLength("q"), 0);
  EXPECT_TRUE(keys.Set("k", std::string(850, 'x')).ok());
  EXPECT_TRUE(keys.Delete("k"));
  EXPECT_TRUE(keys.QueuePush("q", std::string(800, 'x')).ok());
  EXPECT_EQ(keys.QueuePop(1, "q").length_before, 1);
  EXPECT_EQ(keys.bytes(), 0u);
  EXPECT_TRUE(keys.Set("l", std::string(850, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Set(std::string(kMaxKeyBytes + 1, 'k'), "")));
}

TEST(KeySpace, AShortValueDoesNotKeepTheMemoryOfALongOne) {
  KeySpace keys;
  ASSERT_TRUE(keys.Set("k", "").ok());
  const size_t before = keys.bytes();
  ASSERT_TRUE(keys.Set("k", std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE(keys.Set("k", "short").ok());
  EXPECT_EQ(keys.bytes(), before);
  EXPECT_LT(keys.Find("k")->capacity(), 100u);
}

// What fills a store; `fill` does its part number `i` and `take_back` undoes it.
struct Filling {
  const char* name;
  std::function<absl::Status(KeySpace&, uint64_t i)> fill;
  std::function<void(KeySpace&, uint64_t i)> take_back;
};

std::vector<std::string> Keys(absl::string_view prefix) {
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(absl::StrCat(prefix, i));
  return keys;
}

Filling Values(const char* name, size_t key_bytes, size_t value_bytes) {
  const auto key = [key_bytes](uint64_t i) {
    return absl::StrCat(i, "/", std::string(key_bytes, 'k'));
  };
  return {
      name,
      [=](KeySpace& keys, uint64_t i) { return keys.Set(key(i), std::string(value_bytes, 'v')); },
      [=](KeySpace& keys, uint64_t i) { keys.Delete(key(i)); }};
}

Filling Waits(const char* name, bool shared) {
  return {name,
          [=](KeySpace& keys, uint64_t i) {
            return keys.Wait(i, Keys(shared ? "k" : absl::StrCat(i, "/"))).status();
          },
          [](KeySpace& keys, uint64_t i) { keys.CancelWait(i); }};
}

const Filling kFillings[] = {
    Values("TinyValues", 0, 1),
    Values("LongKeys", 200, 1),
    Values("Kilobytes", 20, 1000),
    Values("LargeValues", 20, 300'000),
    {"AppendedValues",
     [](KeySpace& keys, uint64_t i) {
       return keys.Append(absl::StrCat("k", i / 100), std::string(90, 'x'));
     },
     [](KeySpace& keys, uint64_t i) { keys.Delete(absl::StrCat("k", i)); }},
    {"OneQueue", [](KeySpace& keys, uint64_t) { return keys.QueuePush("q", "x"); },
     [](KeySpace& keys, uint64_t) { keys.QueuePop(0, "q"); }},
    {"ManyQueues",
     [](KeySpace& keys, uint64_t i) { return keys.QueuePush(absl::StrCat("q", i), "x"); },
     [](KeySpace& keys, uint64_t i) { keys.QueuePop(0, absl::StrCat("q", i)); }},
    {"OneKeyWaits", [](KeySpace& keys, uint64_t i) { return keys.Wait(i, {"k"}).status(); },
     [](KeySpace& keys, uint64_t i) { keys.CancelWait(i); }},
    Waits("WaitsForTheSameKeys", true),
    Waits("WaitsForKeysOfTheirOwn", false)};

class KeySpaceMemory : public testing::TestWithParam<Filling> {
 protected:
  static size_t Taken() {
    const struct mallinfo2 heap = ::mallinfo2();
    return heap.uordblks + heap.hblkhd;
  }
};

TEST_P(KeySpaceMemory, IsCountedAsTheAllocatorCountsItAndGivenBack) {
  const size_t unprobed = Taken();
  std::vector<char> probe(1 << 20);
  const size_t before = Taken();
  if (before < unprobed + probe.size()) GTEST_SKIP() << "another allocator";
  StoreLimits limits;
  limits.total_bytes = 32 << 20;
  KeySpace keys(limits);
  uint64_t parts = 0;
  absl::Status filled;
  for (; (filled = GetParam().fill(keys, parts)).ok(); ++parts) {
  }
  EXPECT_TRUE(absl::IsResourceExhausted(filled)) << filled;
  const auto limit = static_cast<double>(limits.total_bytes);
  const auto taken = static_cast<double>(Taken() - before);
  EXPECT_NEAR(taken, limit, limit / 10) << parts;
  EXPECT_NEAR(taken, static_cast<double>(keys.bytes()), limit / 10) << parts;
  for (uint64_t i = 0; i < parts; ++i) GetParam().take_back(keys, i);
  EXPECT_EQ(keys.bytes(), 0u);
  EXPECT_NEAR(static_cast<double>(Taken()), static_cast<double>(before), limit / 100);
}

INSTANTIATE_TEST_SUITE_P(All, KeySpaceMemory, testing::ValuesIn(kFillings),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(StoreLimits, NameTheOptionThatRaisesThem) {
  const StoreLimits limits{.key_bytes = 1, .value_bytes = 2, .total_bytes = 119, .by_option = true};
  KeySpace keys(limits);
  const auto refusal = [&keys](absl::string_view key, absl::string_view value) {
    return std::string(keys.Set(key, std::string(value)).message());
  };
  EXPECT_THAT(refusal("kk", ""), HasSubstr("2, at most 1; raise it with --store-max-key"));
  EXPECT_THAT(refusal("k", "vvv"), HasSubstr("3, at most 2; raise it with --store-max-value"));
  ASSERT_TRUE(keys.Set("k", "v").ok());
  EXPECT_THAT(refusal("l", "v"), HasSubstr("at most 119; raise it with --store-max-total"));
  EXPECT_THAT(std::string(StoreLimits().CheckKey(kMaxKeyBytes + 1).message()),
              Not(HasSubstr("--store")));  // Not every store has these options.
}

}  // namespace
}  // namespace hlaunch
