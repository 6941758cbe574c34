// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What every Store promises, run over each of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "rendezvous/c10d_client.h"
#include "rendezvous/c10d_server.h"
#include "rendezvous/key_space.h"
#include "rendezvous/memory_store.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Instant In(Duration time) { return MonotonicClock().Now() + time; }

// A store and whatever must live as long as it does.
struct TestedStore {
  std::unique_ptr<C10dServer> server;
  std::unique_ptr<Store> store;
};

TestedStore MakeMemoryStore() { return {nullptr, std::make_unique<MemoryStore>()}; }

TestedStore MakeC10dStore() {
  auto server = *C10dServer::Start(*Listen("127.0.0.1", 0));
  auto client = *C10dClient::Connect("127.0.0.1", server->port(), In(10s));
  return {std::move(server), std::move(client)};
}

struct Kind {
  const char* name;
  TestedStore (*make)();
};

class StoreContract : public testing::TestWithParam<Kind> {
 protected:
  TestedStore tested_ = GetParam().make();
  Store& store_ = *tested_.store;
};

TEST_P(StoreContract, GetReturnsWhatWasSetLast) {
  ASSERT_TRUE(store_.Set("k", "1").ok());
  ASSERT_TRUE(store_.Set("k", std::string("\0\xff", 2)).ok());
  EXPECT_EQ(*store_.Get("k", In(10s)), std::string("\0\xff", 2));
}

TEST_P(StoreContract, GetWaitsForTheKey) {
  std::thread setter([this] { EXPECT_TRUE(store_.Set("k", "v").ok()); });
  EXPECT_EQ(*store_.Get("k", In(10s)), "v");
  setter.join();
}

TEST_P(StoreContract, GetWhoseTimeIsUpSaysWhichKey) {
  const auto missing = store_.Get("lost", In(10ms));
  EXPECT_TRUE(absl::IsDeadlineExceeded(missing.status())) << missing.status();
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("'lost'"));
  ASSERT_TRUE(store_.Set("here", "v").ok());
  EXPECT_EQ(*store_.Get("here", In(0s)), "v");  // A key that is there needs no time.
}

TEST_P(StoreContract, AddCountsInDecimalText) {
  EXPECT_EQ(*store_.Add("n", 0), 0);
  EXPECT_EQ(*store_.Add("n", 5), 5);
  EXPECT_EQ(*store_.Add("n", -7), -2);
  EXPECT_EQ(*store_.Get("n", In(10s)), "-2");
  ASSERT_TRUE(store_.Set("n", "40").ok());
  EXPECT_EQ(*store_.Add("n", 2), 42);
}

TEST_P(StoreContract, AddToTextIsRefusedAndChangesNothing) {
  ASSERT_TRUE(store_.Set("text", "x").ok());
  const absl::Status refused = store_.Add("text", 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(*store_.Get("text", In(10s)), "x");
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
  EXPECT_EQ(*store_.Get("k", In(10s)), "abcd");
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
  EXPECT_TRUE(store_.Wait({"c", "a", "b", "a"}, In(10s)).ok());
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
  EXPECT_EQ(*store_.Get("m1", In(10s)), "v");
}

TEST_P(StoreContract, MultiGetKeepsTheOrder) {
  ASSERT_TRUE(store_.MultiSet({{"a", "1"}, {"b", "2"}}).ok());
  EXPECT_THAT(*store_.MultiGet({"b", "a", "b"}, In(10s)), ElementsAre("2", "1", "2"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(store_.MultiGet({"a", "lost"}, In(10ms)).status()));
}

TEST_P(StoreContract, NumKeysCountsKeys) {
  EXPECT_EQ(*store_.NumKeys(), 0);
  ASSERT_TRUE(store_.MultiSet({{"a", "1"}, {"b", "2"}, {"a", "3"}}).ok());
  EXPECT_EQ(*store_.NumKeys(), 2);
}

TEST_P(StoreContract, LargeValuesFitAndLargerOnesAreRefused) {
  const std::string largest(kMaxValueBytes, 'x');
  ASSERT_TRUE(store_.Set("k", largest).ok());
  EXPECT_TRUE(*store_.Get("k", In(10s)) == largest);
  EXPECT_TRUE(absl::IsResourceExhausted(store_.Set("k", largest + "x")));
  EXPECT_TRUE(absl::IsResourceExhausted(store_.Set(std::string(kMaxKeyBytes + 1, 'k'), "")));
  EXPECT_TRUE(absl::IsResourceExhausted(
      store_.Wait(std::vector<std::string>(kMaxListKeys + 1, "k"), In(10s))));
}

INSTANTIATE_TEST_SUITE_P(All, StoreContract,
                         testing::Values(Kind{"MemoryStore", MakeMemoryStore},
                                         Kind{"C10dClient", MakeC10dStore}),
                         [](const auto& tested) { return tested.param.name; });

TEST(C10dClient, SendsWhatItsServersLimitsAllow) {
  C10dServerOptions served;
  served.limits.value_bytes = 2 * kMaxValueBytes;
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", 0), served);
  C10dClientOptions options;
  options.limits = served.limits;
  const auto client = *C10dClient::Connect("127.0.0.1", server->port(), In(10s), options);
  const std::string value(2 * kMaxValueBytes, 'x');
  ASSERT_TRUE(client->Set("k", value).ok());
  EXPECT_TRUE(*client->Get("k", In(10s)) == value);
  EXPECT_TRUE(absl::IsResourceExhausted(client->Set("k", value + "x")));
}

// Who comes before the server is there tries again until it is.
TEST(C10dClient, ConnectsOnceTheServerIsThere) {
  auto kept = *Reserve(0);
  auto connecting = std::async(std::launch::async, [port = kept.port] {
    return C10dClient::Connect("127.0.0.1", port, In(10s));
  });
  EXPECT_EQ(connecting.wait_for(50ms), std::future_status::timeout);  // Was refused, tries again.
  const auto server = *C10dServer::Start(*Listen("127.0.0.1", kept.port));
  const auto client = connecting.get();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Set("k", "v").ok());
}

TEST(C10dClient, SaysThatNobodyListens) {
  uint16_t port = 0;
  { port = Listen("127.0.0.1", 0)->port; }
  const absl::Status status = C10dClient::Connect("127.0.0.1", port, In(30ms)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1 port"));
}

TEST(C10dClient, SeesTheEmptyStoreAfterAReset) {
  TestedStore tested = MakeC10dStore();
  ASSERT_TRUE(tested.store->Set("k", "v").ok());
  tested.server->Reset();
  EXPECT_EQ(*tested.store->NumKeys(), 0);
}

TEST(C10dClient, GivesUpWhenItsServerIsGone) {
  TestedStore tested = MakeC10dStore();
  tested.server.reset();
  const absl::Status status = tested.store->Wait({"k"}, In(30ms));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace hlaunch
