// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/rendezvous/store/c10d/c10d_bytes.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FakeClock final : public Clock {
 public:
  Instant Now() const override { return now; }
  Instant now{std::chrono::seconds(100)};
};

// What happened to a client; it may outlive its connection.
struct Seen {
  std::string received;
  bool told_end = false;
  bool read = true;
  size_t room = 1 << 30;  // Bytes that it takes before it stops reading.
  bool gone = false;
};

class FakeConnection final : public C10dConnection {
 public:
  FakeConnection(Id its_id, const C10dServerOptions& options, size_t* unread, Seen& seen)
      : C10dConnection(its_id, options), out_(unread), seen_(seen) {}
  SendBuffer& replies() override { return out_; }
  bool SendReplies() override {
    if (seen_.gone) return false;
    const std::string all = out_.text();
    const size_t taken = std::min(all.size(), seen_.room);
    seen_.received += all.substr(0, taken);
    seen_.room -= taken;
    out_.text() = all.substr(taken);
    out_.Recount();
    return true;
  }
  void AwaitRequests(bool reads) override { seen_.read = reads; }
  void TellEnd() override { seen_.told_end = true; }
  std::string Source() const override { return "somewhere"; }

 private:
  SendBuffer out_;
  Seen& seen_;
};

class Connections : public testing::Test {
 protected:
  C10dConnections::Id Connect(Seen& seen) {
    const C10dConnections::Id id = all_.NextId();
    all_.Add(std::make_unique<FakeConnection>(id, options_, all_.unread(), seen));
    return id;
  }
  // A client of PyTorch 2.2 or later.
  C10dConnections::Id ConnectNew(Seen& seen) {
    const C10dConnections::Id id = Connect(seen);
    Take(id, Validate());
    return id;
  }
  void Take(C10dConnections::Id id, absl::string_view bytes) { all_.Take(*all_.Find(id), bytes); }

  C10dServerOptions options_;
  FakeClock clock_;
  std::vector<std::string> warnings_;
  C10dConnections all_{options_, clock_,
                       [this](const std::string& line) { warnings_.push_back(line); }};
};

TEST_F(Connections, RequestsBehindAWaitAreExecutedAfterIt) {
  Seen waiter, setter;
  const auto waits = ConnectNew(waiter), sets = ConnectNew(setter);
  Take(waits, Request(C10dOp::kWait, {"k"}) + Request(C10dOp::kAdd, {"n"}, {}, 1) +
                  Request(C10dOp::kAdd, {"n"}, {}, 1));
  EXPECT_FALSE(waiter.read);
  Take(sets, Request(C10dOp::kSet, {"k"}, {"v"}));
  EXPECT_EQ(waiter.received, Byte(kC10dStopWaiting));
  EXPECT_EQ(all_.next_turn(), Instant());
  all_.TakeTurns();
  EXPECT_EQ(waiter.received, Byte(kC10dStopWaiting) + Int64(1) + Int64(2));
  EXPECT_TRUE(waiter.read);
  EXPECT_EQ(all_.next_turn(), Instant::max());
}

TEST_F(Connections, OneThatDoesNotReadIsNotReadUntilThereIsRoom) {
  Seen slow;
  const auto id = ConnectNew(slow);
  slow.room = 0;
  Take(id, Request(C10dOp::kSet, {"k"}, {std::string(2 << 20, 'x')}) +
               Request(C10dOp::kGet, {"k"}) + Request(C10dOp::kAdd, {"n"}, {}, 1));
  EXPECT_FALSE(slow.read);
  EXPECT_GT(*all_.unread(), size_t{2} << 20);
  slow.room = 1 << 30;
  ASSERT_TRUE(all_.Find(id)->SendReplies());
  all_.Continue(*all_.Find(id));
  all_.TakeTurns();
  EXPECT_EQ(slow.received.substr(slow.received.size() - 8), Int64(1));
  EXPECT_TRUE(slow.read);
  EXPECT_EQ(*all_.unread(), 0u);
}

TEST_F(Connections, AnOldDeleteIsExecutedAfterSilence) {
  Seen old;
  const auto id = Connect(old);
  std::string bytes = Byte(0);
  PutText(&bytes, "k");
  PutText(&bytes, "v");
  PutByte(&bytes, 8);
  PutText(&bytes, "k");
  Take(id, bytes);
  EXPECT_EQ(all_.next_turn(), clock_.now + options_.silence);
  all_.TakeTurns();
  EXPECT_EQ(old.received, "");
  clock_.now += options_.silence;
  all_.TakeTurns();
  EXPECT_EQ(old.received, Int64(1));
  EXPECT_EQ(all_.next_turn(), Instant::max());
}

TEST_F(Connections, RanksWithDifferentReleasesOfTorchAreToldOnce) {
  Seen first, second, old, other;
  const std::string key = "/default_pg/0//cpu//0/0";
  Take(ConnectNew(first), Request(C10dOp::kSet, {key}, {"v"}));
  std::string bytes = Byte(0);  // SET, before 2.2.
  PutText(&bytes, "k");
  PutText(&bytes, "v");
  Take(Connect(other), bytes);  // No process group's.
  EXPECT_THAT(warnings_, IsEmpty());
  bytes = Byte(0);
  PutText(&bytes, key);
  PutText(&bytes, "v");
  Take(Connect(old), bytes + bytes);
  Take(ConnectNew(second), Request(C10dOp::kSet, {key}, {"v"}));
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("ranks have different releases of torch: 2.2 or newer "
                                    "at somewhere, and 2.1 or older at somewhere")));
}

TEST_F(Connections, NonsenseEndsOneConnectionWithALine) {
  Seen good, bad;
  ConnectNew(good);
  const auto id = Connect(bad);
  Take(id, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(all_.Find(id), nullptr);
  EXPECT_TRUE(bad.told_end);
  EXPECT_FALSE(good.told_end);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("store: closed the connection from somewhere: ")));
}

TEST_F(Connections, AQueuedItemOfAClientThatHasGoneWakesTheNext) {
  Seen first, second, pusher;
  const auto gone = ConnectNew(first), next = ConnectNew(second), pushes = ConnectNew(pusher);
  Take(gone, Request(C10dOp::kWait, {"q"}));
  Take(next, Request(C10dOp::kWait, {"q"}));
  first.gone = true;
  Take(pushes, Request(C10dOp::kQueuePush, {"q"}, {"item"}));
  EXPECT_EQ(all_.Find(gone), nullptr);
  EXPECT_EQ(second.received, Byte(kC10dStopWaiting));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(Connections, AWatcherThatDoesNotReadIsClosedAloneAtLast) {
  Seen watcher, setter;
  const auto watches = Connect(watcher), sets = ConnectNew(setter);
  std::string watch = Byte(7);
  PutText(&watch, "k");
  Take(watches, watch);
  EXPECT_EQ(watcher.received, Byte(kC10dCallbackRegistered));
  watcher.room = 0;
  const std::string value(8 << 20, 'x');
  for (int i = 0; i < 12; ++i) Take(sets, Request(C10dOp::kSet, {"k"}, {value}));
  EXPECT_EQ(all_.Find(watches), nullptr);
  EXPECT_NE(all_.Find(sets), nullptr);
  EXPECT_EQ(*all_.unread(), 0u);
}

std::string Repeated(const std::string& bytes, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += bytes;
  return all;
}

TEST_F(Connections, ABurstIsExecutedInTurnsBetweenWhichOthersAreServed) {
  constexpr int kBurst = 20'000;
  Seen burst, other;
  const auto bursts = ConnectNew(burst), pings = ConnectNew(other);
  Take(bursts, Repeated(Request(C10dOp::kAdd, {"n"}, {}, 1), kBurst));
  size_t turns = 0;
  for (; burst.received.size() < kBurst * sizeof(int64_t); ++turns) {
    EXPECT_FALSE(burst.read);
    ASSERT_EQ(all_.next_turn(), Instant());
    ASSERT_LE(burst.received.size(), (turns + 1) * 1000 * sizeof(int64_t));
    Take(pings, Request(C10dOp::kPing, {}, {}, 1));
    ASSERT_EQ(other.received.size(), (turns + 1) * sizeof(uint32_t));
    all_.TakeTurns();
  }
  EXPECT_GT(turns, kBurst / 1000U);
  EXPECT_EQ(burst.received.substr(burst.received.size() - 8), Int64(kBurst));
  EXPECT_TRUE(burst.read);
  EXPECT_EQ(all_.next_turn(), Instant::max());
}

TEST_F(Connections, AWaitAtTheEndOfATurnIsCancelledByTheNextRequest) {
  for (const int before : {0, 1}) {
    Seen seen;
    const auto id = ConnectNew(seen);
    Take(id, Repeated(Request(C10dOp::kPing, {}, {}, 1), before) +
                 Repeated(Request(C10dOp::kWait, {"k"}) + Request(C10dOp::kCancelWait), 5000));
    for (int i = 0; all_.next_turn() == Instant(); ++i) {
      ASSERT_LT(i, 10'000);
      all_.TakeTurns();
    }
    EXPECT_EQ(seen.received.substr(4U * static_cast<size_t>(before)),
              Repeated(Byte(kC10dWaitCanceled), 5000));
  }
}

TEST_F(Connections, ABurstOfAClientThatHasGoneIsExecuted) {
  Seen gone[2], other;
  const C10dConnections::Id ids[] = {ConnectNew(gone[0]), ConnectNew(gone[1])};
  for (const auto id : ids) Take(id, Repeated(Request(C10dOp::kAdd, {"n"}, {}, 1), 5000));
  all_.CloseAfterTurns(ids[0]);
  EXPECT_NE(all_.Find(ids[0]), nullptr);
  all_.CloseAfterAll(ids[1]);
  EXPECT_EQ(all_.Find(ids[1]), nullptr);
  while (all_.next_turn() == Instant()) all_.TakeTurns();
  EXPECT_EQ(all_.Find(ids[0]), nullptr);
  Take(ConnectNew(other), Request(C10dOp::kAdd, {"n"}, {}, 0));
  EXPECT_EQ(other.received, Int64(10'000));
}

TEST_F(Connections, WhoeverHasGoneAndWaitsBehindABurstIsForgotten) {
  Seen gone;
  const auto id = ConnectNew(gone);
  Take(id, Repeated(Request(C10dOp::kAdd, {"n"}, {}, 1), 5000) + Request(C10dOp::kWait, {"k"}) +
               Request(C10dOp::kPing, {}, {}, 1));
  all_.CloseAfterTurns(id);
  while (all_.next_turn() == Instant()) all_.TakeTurns();
  EXPECT_EQ(all_.Find(id), nullptr);
}

TEST_F(Connections, BurstsOfVeryManyAreNotAllHeld) {
  const std::string adds = Repeated(Request(C10dOp::kAdd, {"n"}, {}, 1), 1000);
  std::vector<Seen> seen(1000);
  for (Seen& each : seen) Take(ConnectNew(each), adds);
  EXPECT_FALSE(seen.front().read);
  EXPECT_LT(std::count_if(seen.begin(), seen.end(), [](const Seen& each) { return !each.read; }),
            300);
}

// The keys in the reply to a list.
std::vector<std::string> KeysIn(absl::string_view reply) {
  const int64_t count = ReadInt64(reply.substr(0, 8));
  reply.remove_prefix(8);
  std::vector<std::string> keys;
  for (int64_t i = 0; i < count; ++i) {
    const auto size = static_cast<size_t>(ReadInt64(reply.substr(0, 8)));
    keys.emplace_back(reply.substr(8, size));
    reply.remove_prefix(8 + size);
  }
  EXPECT_EQ(reply, "");
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::vector<std::string> KeysTo(int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back("k" + std::to_string(100'000 + i));
  return keys;
}

TEST_F(Connections, ALongListIsMadeInPortionsBetweenWhichOthersAreServed) {
  Seen lister, other;
  const auto lists = ConnectNew(lister), gets = ConnectNew(other);
  for (const std::string& key : KeysTo(20'000)) Take(gets, Request(C10dOp::kSet, {key}, {"v"}));
  Take(lists, Request(C10dOp::kListKeys) + Request(C10dOp::kAdd, {"k100000x"}, {}, 1));
  EXPECT_FALSE(lister.read);
  int turns = 0;
  for (; lister.received.empty(); ++turns) {
    ASSERT_EQ(all_.next_turn(), Instant());
    Take(gets, Request(C10dOp::kPing, {}, {}, 1));
    all_.TakeTurns();
  }
  EXPECT_GT(turns, 5);
  EXPECT_EQ(other.received.size(), 4U * static_cast<size_t>(turns));
  ASSERT_GT(lister.received.size(), 8U);
  EXPECT_EQ(lister.received.substr(lister.received.size() - 8), Int64(1));  // The next reply.
  lister.received.resize(lister.received.size() - 8);
  EXPECT_EQ(KeysIn(lister.received), KeysTo(20'000));
  EXPECT_EQ(*all_.unread(), 0U);
  EXPECT_TRUE(lister.read);
}

TEST_F(Connections, AListShowsOneMomentThoughKeysComeAndGo) {
  Seen lister, other;
  const auto lists = ConnectNew(lister), sets = ConnectNew(other);
  std::vector<std::string> keys = KeysTo(10'000);
  for (const std::string& key : keys) Take(sets, Request(C10dOp::kSet, {key}, {"v"}));
  Take(lists, Request(C10dOp::kListKeys));
  for (int i = 0; lister.received.empty(); ++i) {
    ASSERT_LT(i, 100);
    all_.TakeTurns();
    if (!lister.received.empty()) break;
    Take(sets, Request(C10dOp::kDeleteKey, {keys.front()}));
    Take(sets, Request(C10dOp::kSet, {keys.back() + "x"}, {"v"}));
    keys.erase(keys.begin());
    keys.push_back(keys.back() + "x");
  }
  EXPECT_EQ(KeysIn(lister.received), keys);
}

TEST_F(Connections, WhoeverGoesWhileItsListIsMadeIsForgotten) {
  Seen lister, other;
  const auto lists = ConnectNew(lister), sets = ConnectNew(other);
  for (const std::string& key : KeysTo(10'000)) Take(sets, Request(C10dOp::kSet, {key}, {"v"}));
  Take(lists, Request(C10dOp::kListKeys));
  all_.TakeTurns();
  EXPECT_GT(*all_.unread(), 0U);
  all_.Close(lists);
  EXPECT_EQ(*all_.unread(), 0U);
  all_.TakeTurns();
  EXPECT_EQ(all_.next_turn(), Instant::max());
}

// A request with a value of `size` bytes, without its end.
std::string Half(size_t size) {
  std::string whole = Request(C10dOp::kSet, {"k"}, {std::string(size, 'x')});
  whole.pop_back();
  return whole;
}

class ArrivingConnections : public Connections {
 protected:
  ArrivingConnections() {
    options_.limits.total_bytes = 1 << 20;
    few_.emplace(options_, clock_, [this](const std::string& line) { warnings_.push_back(line); });
  }
  C10dConnections::Id ConnectTo(Seen& seen) {
    const C10dConnections::Id id = few_->NextId();
    few_->Add(std::make_unique<FakeConnection>(id, options_, few_->unread(), seen));
    few_->Take(*few_->Find(id), Validate());
    return id;
  }
  void Send(C10dConnections::Id id, absl::string_view bytes) { few_->Take(*few_->Find(id), bytes); }

  std::optional<C10dConnections> few_;  // With a small store.
};

TEST_F(ArrivingConnections, HalfRequestsCountAgainstTheTotalAndTheOneThatStandsStillGoes) {
  Seen seen[4];
  C10dConnections::Id ids[4];
  for (int i = 0; i < 4; ++i) ids[i] = ConnectTo(seen[i]);
  for (int i = 0; i < 3; ++i) Send(ids[i], Half(300 << 10));
  EXPECT_THAT(warnings_, IsEmpty());
  Send(ids[3], Half(300 << 10));
  EXPECT_EQ(few_->Find(ids[0]), nullptr);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("it stands still with a part of a request"));
  EXPECT_THAT(warnings_[0], HasSubstr("at most 1048576; raise it with --store-max-total"));
  for (int i = 1; i < 4; ++i) {
    Send(ids[i], "x" + Request(C10dOp::kPing, {}, {}, 1));
    EXPECT_EQ(seen[i].received.size(), 4U) << i;
  }
}

TEST_F(ArrivingConnections, WhatIsStoredCountsBesideWhatArrives) {
  Seen first, second;
  const auto a = ConnectTo(first), b = ConnectTo(second);
  Send(a, Request(C10dOp::kSet, {"old"}, {std::string(600 << 10, 'x')}) + Half(300 << 10));
  Send(b, Half(300 << 10));
  EXPECT_EQ(few_->Find(a), nullptr);
  EXPECT_NE(few_->Find(b), nullptr);
}

TEST_F(ArrivingConnections, OneAloneMayReplaceALargeValue) {
  Seen seen;
  const auto id = ConnectTo(seen);
  for (int i = 0; i < 3; ++i) {
    const std::string set = Request(C10dOp::kSet, {"k"}, {std::string(900 << 10, 'x')});
    Send(id, set.substr(0, set.size() / 2));
    Send(id, set.substr(set.size() / 2));
  }
  Send(id, Request(C10dOp::kPing, {}, {}, 1));
  EXPECT_EQ(seen.received.size(), 4U);
}

// Requests after a wait are small, so their client may wait undisturbed.
TEST_F(ArrivingConnections, AFewRequestsBehindAWaitAreNoStandstill) {
  Seen waiter, other[4];
  const auto waits = ConnectTo(waiter);
  Send(waits, Request(C10dOp::kWait, {"k"}) + Request(C10dOp::kAdd, {"n"}, {}, 1) +
                  Request(C10dOp::kAdd, {"n"}, {}, 1));
  for (Seen& seen : other) Send(ConnectTo(seen), Half(300 << 10));
  EXPECT_NE(few_->Find(waits), nullptr);
}

TEST_F(Connections, ClearForgetsKeysAndTellsNobody) {
  Seen before, after;
  Take(ConnectNew(before), Request(C10dOp::kSet, {"k"}, {"v"}) + Request(C10dOp::kWait, {"l"}));
  all_.Clear();
  EXPECT_FALSE(before.told_end);
  Take(ConnectNew(after), Request(C10dOp::kNumKeys) + Request(C10dOp::kSet, {"l"}, {""}));
  EXPECT_EQ(after.received, Int64(0));
  EXPECT_EQ(before.received, "");
}

}  // namespace
}  // namespace hlaunch
