// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

// Tests of what every Store promises. A test file that includes this names its stores with
// INSTANTIATE_TEST_SUITE_P.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/store/keys/key_space.h"
#include "rendezvous/store/keys/store.h"
#include "tests/rendezvous/store_fixtures.h"

namespace hlaunch {

// A store and the object that must live as long as it.
struct TestedStore {
  std::shared_ptr<void> host;
  std::shared_ptr<Store> store;
  StoreLimits limits;
  bool torch_wire = false;  // PyTorch's wire, on which a deleted key and an empty value look alike.
};

struct StoreKind {
  const char* name;
  TestedStore (*make)();
};

namespace store_contract {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  TestedStore tested_ = GetParam().make();
  Store& store_ = *tested_.store;
};

TEST_P(StoreContract, GetReturnsWhatWasSetLast) {
  ASSERT_TRUE(store_.Set("k", "1").ok());
  ASSERT_TRUE(store_.Set("k", std::string("\0\xff", 2)).ok());
  EXPECT_EQ(*store_.Get("k", In(100s)), std::string("\0\xff", 2));
}

TEST_P(StoreContract, GetWaitsForTheKey) {
  std::thread setter([this] { EXPECT_TRUE(store_.Set("k", "v").ok()); });
  EXPECT_EQ(*store_.Get("k", In(100s)), "v");
  setter.join();
}

TEST_P(StoreContract, GetWhoseTimeIsUpSaysWhichKey) {
  const auto missing = store_.Get("lost", In(10ms));
  EXPECT_TRUE(absl::IsDeadlineExceeded(missing.status())) << missing.status();
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("'lost'"));
  ASSERT_TRUE(store_.Set("here", "v").ok());
  EXPECT_EQ(*store_.Get("here", In(0s)), "v");  // An existing key needs no time.
}

TEST_P(StoreContract, AddCountsInDecimalText) {
  EXPECT_EQ(*store_.Add("n", 0), 0);
  EXPECT_EQ(*store_.Add("n", 5), 5);
  EXPECT_EQ(*store_.Add("n", -7), -2);
  EXPECT_EQ(*store_.Get("n", In(100s)), "-2");
  ASSERT_TRUE(store_.Set("n", "40").ok());
  EXPECT_EQ(*store_.Add("n", 2), 42);
}

TEST_P(StoreContract, AddWrapsAroundAsPyTorchs) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(*store_.Add("n", kMin), kMin);
  EXPECT_EQ(*store_.Add("n", -1), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*store_.Get("n", In(100s)), "9223372036854775807");
}

TEST_P(StoreContract, AddToTextIsRefusedAndChangesNothing) {
  ASSERT_TRUE(store_.Set("text", "x").ok());
  const absl::Status refused = store_.Add("text", 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(*store_.Get("text", In(100s)), "x");
}

TEST_P(StoreContract, AddOfManyThreadsLosesNothing) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int j = 0; j < 50; ++j) EXPECT_TRUE(store_.Add("n", 1).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*store_.Add("n", 0), 200);
}

TEST_P(StoreContract, CompareAndSetSetsOnlyWhatItExpects) {
  EXPECT_EQ(*store_.CompareAndSet("k", "other", "a"), "other");
  EXPECT_FALSE(*store_.Check({"k"}));
  EXPECT_EQ(*store_.CompareAndSet("k", "", "a"), "a");
  EXPECT_EQ(*store_.CompareAndSet("k", "b", "c"), "a");
  EXPECT_EQ(*store_.CompareAndSet("k", "a", "b"), "b");
}

TEST_P(StoreContract, AppendBeginsEmpty) {
  ASSERT_TRUE(store_.Append("k", "ab").ok());
  ASSERT_TRUE(store_.Append("k", "cd").ok());
  EXPECT_EQ(*store_.Get("k", In(100s)), "abcd");
}

TEST_P(StoreContract, DeleteSaysWhetherTheKeyExisted) {
  ASSERT_TRUE(store_.Set("k", "v").ok());
  EXPECT_TRUE(*store_.Delete("k"));
  EXPECT_FALSE(*store_.Delete("k"));
  EXPECT_FALSE(*store_.Check({"k"}));
}

TEST_P(StoreContract, CheckWantsAllKeys) {
  ASSERT_TRUE(store_.MultiSet({{"a", "1"}, {"b", ""}}).ok());
  EXPECT_TRUE(*store_.Check({"a", "b"}));
  EXPECT_FALSE(*store_.Check({"a", "c"}));
  EXPECT_TRUE(*store_.Check({}));
}

TEST_P(StoreContract, WaitReturnsOnceAllKeysExist) {
  std::thread setter([this] {
    for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(store_.Set(key, "").ok());
  });
  EXPECT_TRUE(store_.Wait({"c", "a", "b", "a"}, In(100s)).ok());
  setter.join();
  EXPECT_TRUE(store_.Wait({"a"}, In(0s)).ok());
}

TEST_P(StoreContract, WaitWhoseTimeIsUpNamesThreeMissingKeys) {
  ASSERT_TRUE(store_.Set("here", "").ok());
  const absl::Status late = store_.Wait({"m1", "here", "m2", "m3", "m4"}, In(10ms));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), AllOf(HasSubstr("'m1', 'm2', 'm3'"), HasSubstr("more"),
                                                 Not(HasSubstr("here")), Not(HasSubstr("m4"))));
  // The store is as usable as before.
  ASSERT_TRUE(store_.Set("m1", "v").ok());
  EXPECT_EQ(*store_.Get("m1", In(100s)), "v");
}

TEST_P(StoreContract, MultiGetKeepsTheOrder) {
  ASSERT_TRUE(store_.MultiSet({{"a", "1"}, {"b", "2"}}).ok());
  EXPECT_THAT(*store_.MultiGet({"b", "a", "b"}, In(100s)), ElementsAre("2", "1", "2"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(store_.MultiGet({"a", "lost"}, In(10ms)).status()));
}

// The values are the same whether the key is deleted before, during or after the wait.
TEST_P(StoreContract, MultiGetWaitsAgainForAKeyThatWasDeletedMeanwhile) {
  ASSERT_TRUE(store_.Set("a", "old").ok());
  auto getting = std::async(std::launch::async, [this] {
    return store_.MultiGet({"a", "b"}, In(100s));
  });
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(*store_.Check({"b"}));  // By now it usually waits.
  EXPECT_TRUE(*store_.Delete("a"));
  ASSERT_TRUE(store_.Set("b", "1").ok());
  ASSERT_TRUE(store_.Set("a", "new").ok());
  auto values = getting.get();
  ASSERT_TRUE(values.ok()) << values.status();
  if (tested_.torch_wire && values->front().empty()) values->front() = "new";
  EXPECT_THAT(*values, ElementsAre("new", "1"));
}

TEST_P(StoreContract, NumKeysCountsKeys) {
  EXPECT_EQ(*store_.NumKeys(), 0);
  ASSERT_TRUE(store_.MultiSet({{"a", "1"}, {"b", "2"}, {"a", "3"}}).ok());
  EXPECT_EQ(*store_.NumKeys(), 2);
}

TEST_P(StoreContract, LargeValuesFitAndLargerOnesAreRefused) {
  const std::string largest(tested_.limits.value_bytes, 'x');
  ASSERT_TRUE(store_.Set("k", largest).ok());
  EXPECT_TRUE(*store_.Get("k", In(100s)) == largest);
  EXPECT_TRUE(absl::IsResourceExhausted(store_.Set("k", largest + "x")));
  EXPECT_TRUE(
      absl::IsResourceExhausted(store_.Set(std::string(tested_.limits.key_bytes + 1, 'k'), "")));
  EXPECT_TRUE(absl::IsResourceExhausted(
      store_.Wait(std::vector<std::string>(tested_.limits.list_keys + 1, "k"), In(100s))));
}

}  // namespace store_contract
}  // namespace hlaunch
