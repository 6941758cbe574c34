// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests what every Transport promises, on each of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "comm/transport/transport.h"
#include "tests/comm/ranks.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Instant In(Duration time) { return MonotonicClock().Now() + time; }
Instant Soon() { return In(300s); }

constexpr Call kBytes{};

std::vector<std::byte> Pattern(size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  uint32_t state = seed * 2654435761u + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = std::byte(state >> 24);
  }
  return bytes;
}

Outgoing To(Rank peer, std::span<const std::byte> bytes, uint64_t number = 0, Call call = kBytes) {
  return {{peer, call, number}, bytes};
}
Incoming From(Rank peer, std::span<std::byte> bytes, uint64_t number = 0, Call call = kBytes) {
  return {{peer, call, number}, bytes};
}

// Receives one byte from `peer`. Returns the status as text.
std::string AwaitByte(Transport& transport, Rank peer, Duration patience = 30s,
                      uint64_t number = 17, Call call = {Verb::kAllReduce}) {
  std::byte byte;
  Incoming message = From(peer, {&byte, 1}, number, call);
  transport.Start(&message);
  return transport.Wait(message, In(patience)).ToString();
}

// Returns once process `pid` has ended; at once where ranks are threads of this process.
void AwaitEndOf(pid_t pid) {
  const std::string descriptors = absl::StrCat("/proc/", pid, "/fd");
  std::error_code error;
  while (pid != ::getpid() && !std::filesystem::is_empty(descriptors, error) && !error) {
    std::this_thread::sleep_for(1ms);
  }
}

// Rank 1 sends a byte to rank 0 under two numbers, tells rank 2 its process, and is gone. Only then
// do ranks 0 and 2 talk to each other; rank 0 takes the two bytes and misses a third one.
std::string TakesWhatAGoneRankSent(TestRank& self, bool dies) {
  Transport& transport = self.transport;
  pid_t process = ::getpid();
  const auto bytes = std::as_writable_bytes(std::span(&process, 1));
  const auto send = [&](Rank peer, uint64_t number) {
    Outgoing message = To(peer, bytes, number);
    transport.Start(&message);
    return transport.Wait(message, Soon());
  };
  const auto receive = [&](Rank peer, uint64_t number) {
    Incoming message = From(peer, bytes, number);
    transport.Start(&message);
    return transport.Wait(message, In(30s));
  };
  absl::Status status;
  const auto then = [&](const absl::Status& next) { status.Update(next); };
  if (transport.rank() == 1) {
    for (const uint64_t number : {1, 2, 3}) then(send(number == 3 ? 2 : 0, number));
    if (status.ok() && dies) self.die();
    return status.ToString();
  }
  if (transport.rank() == 2) {
    then(receive(1, 3));
    AwaitEndOf(process);
    for (const uint64_t number : {4, 6}) {
      then(send(0, number));
      then(receive(0, number + 1));
    }
    send(0, 8).IgnoreError();  // Only now the group may fail, before this returns.
    return status.ToString();
  }
  for (const uint64_t number : {4, 6}) {
    then(receive(2, number));
    if (number == 4) then(receive(1, 2));
    if (number == 4) then(receive(1, 1));
    then(send(2, number + 1));
  }
  then(receive(2, 8));
  if (!status.ok()) return status.ToString();
  return receive(1, 9).ToString();
}

class TransportContract : public testing::TestWithParam<TransportKind> {
 protected:
  std::vector<std::string> Run(int size, const RankBody& body) {
    return GetParam().run(size, body);
  }
};

TEST_P(TransportContract, BytesArriveWhole) {
  for (const size_t size : {0, 1, 23, 24, 25, 63, 64, 65, 4095, 16384, 16385, 70001, 3000001}) {
    const auto results = Run(2, [size](TestRank& self) -> std::string {
      Transport& transport = self.transport;
      const Rank peer = 1 - transport.rank();
      const auto mine = Pattern(size, transport.rank());
      std::vector<std::byte> theirs(size);
      Outgoing sent = To(peer, mine);
      Incoming received = From(peer, theirs);
      transport.Start(&sent);
      transport.Start(&received);
      absl::Status status = transport.Wait(received, Soon());
      if (status.ok()) status = transport.Wait(sent, Soon());
      if (!status.ok()) return status.ToString();
      return theirs == Pattern(size, peer) ? "same" : "other bytes";
    });
    EXPECT_THAT(results, Each("same")) << size << " bytes";
  }
}

TEST_P(TransportContract, MessagesOfOneNumberKeepTheirOrder) {
  constexpr int kCount = 2000;
  // Small messages between large ones, all in flight at once.
  const auto size_of = [](int i) -> size_t { return i % 50 == 7 ? 40000 : i % 97; };
  const auto results = Run(2, [&](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    if (transport.rank() == 0) {
      std::vector<std::vector<std::byte>> data;
      std::vector<Outgoing> sent(kCount);
      for (int i = 0; i < kCount; ++i) data.push_back(Pattern(size_of(i), i));
      for (int i = 0; i < kCount; ++i) {
        sent[i] = To(1, data[i]);
        transport.Start(&sent[i]);
      }
      for (Outgoing& message : sent) {
        if (auto status = transport.Wait(message, Soon()); !status.ok()) return status.ToString();
      }
      return "sent";
    }
    for (int i = 0; i < kCount; ++i) {
      std::vector<std::byte> bytes(size_of(i));
      Incoming message = From(0, bytes);
      transport.Start(&message);
      if (auto status = transport.Wait(message, Soon()); !status.ok()) return status.ToString();
      if (bytes != Pattern(size_of(i), i)) return absl::StrCat("other bytes in ", i);
    }
    return "received";
  });
  EXPECT_THAT(results, ElementsAre("sent", "received"));
}

TEST_P(TransportContract, ReceiverTakesNumbersInItsOwnOrder) {
  const auto results = Run(2, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    const auto first = Pattern(200000, 1);
    const auto second = Pattern(10, 2);
    if (transport.rank() == 0) {
      Outgoing one = To(1, first, 1), two = To(1, second, 2);
      transport.Start(&one);
      transport.Start(&two);
      absl::Status status = transport.Wait(two, Soon());
      if (status.ok()) status = transport.Wait(one, Soon());
      return status.ToString();
    }
    std::vector<std::byte> one_bytes(first.size()), two_bytes(second.size());
    Incoming one = From(0, one_bytes, 1), two = From(0, two_bytes, 2);
    transport.Start(&two);
    absl::Status status = transport.Wait(two, Soon());
    transport.Start(&one);
    if (status.ok()) status = transport.Wait(one, Soon());
    if (first != one_bytes || second != two_bytes) return "other bytes";
    return status.ToString();
  });
  EXPECT_THAT(results, Each("OK"));
}

TEST_P(TransportContract, TagOfASendIsNoCollectivesNumber) {
  const auto results = Run(2, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    const Call barrier{Verb::kBarrier};
    std::byte one{1}, two{2}, got_one, got_two;
    if (transport.rank() == 0) {
      Outgoing first = To(1, {&one, 1}, 5), second = To(1, {&two, 1}, 5, barrier);
      transport.Start(&first);
      transport.Start(&second);
      absl::Status status = transport.Wait(first, Soon());
      if (status.ok()) status = transport.Wait(second, Soon());
      return status.ToString();
    }
    Incoming second = From(0, {&got_two, 1}, 5, barrier), first = From(0, {&got_one, 1}, 5);
    transport.Start(&second);
    absl::Status status = transport.Wait(second, Soon());
    transport.Start(&first);
    if (status.ok()) status = transport.Wait(first, Soon());
    if (got_one != one || got_two != two) return "other bytes";
    return status.ToString();
  });
  EXPECT_THAT(results, Each("OK"));
}

TEST_P(TransportContract, EveryoneTalksToEveryone) {
  constexpr int kSize = 6;
  const auto results = Run(kSize, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    const auto mine = Pattern(50000, transport.rank());
    std::vector<std::vector<std::byte>> theirs(kSize, std::vector<std::byte>(mine.size()));
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (Rank peer = 0; peer < kSize; ++peer) {
      if (peer == transport.rank()) continue;
      sent.push_back(To(peer, mine));
      received.push_back(From(peer, theirs[peer]));
    }
    for (Outgoing& message : sent) transport.Start(&message);
    for (Incoming& message : received) transport.Start(&message);
    for (const Incoming& message : received) {
      if (auto status = transport.Wait(message, Soon()); !status.ok()) return status.ToString();
      if (theirs[message.peer] != Pattern(mine.size(), message.peer)) return "other bytes";
    }
    for (const Outgoing& message : sent) {
      if (auto status = transport.Wait(message, Soon()); !status.ok()) return status.ToString();
    }
    return "OK";
  });
  EXPECT_THAT(results, Each("OK"));
}

// Rank 0 waits for 1, which waits until 2 has sent; 2 waits until 0 has received what it began to
// receive but does not wait for.
TEST_P(TransportContract, WhatWasStartedGoesOnWhileAnotherIsWaitedFor) {
  const auto results = Run(3, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    const auto large = Pattern(1000000, 5);
    std::vector<std::byte> from_two(large.size());
    std::byte byte{};
    Incoming meanwhile = From(2, from_two);
    Outgoing to_zero = To(0, large), word = To(1, {&byte, 1});
    std::string result;
    switch (transport.rank()) {
      case 0:
        transport.Start(&meanwhile);
        result = AwaitByte(transport, 1, 30s, 0, kBytes);
        return result == "OK" ? transport.Wait(meanwhile, Soon()).ToString() : result;
      case 1:
        result = AwaitByte(transport, 2, 30s, 0, kBytes);
        word.peer = 0;
        break;
      default:
        transport.Start(&to_zero);
        result = transport.Wait(to_zero, Soon()).ToString();
    }
    if (result != "OK") return result;
    transport.Start(&word);
    return transport.Wait(word, Soon()).ToString();
  });
  EXPECT_THAT(results, Each("OK"));
}

TEST_P(TransportContract, BothCallsAreShownWhenTheyDiffer) {
  const auto results = Run(2, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    const Call calls[] = {{Verb::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 0, 0, 1},
                          {Verb::kBroadcast, DataType::kInt8, ReduceOp::kNone, 0, 1, 1}};
    const Rank peer = 1 - transport.rank();
    std::byte out{}, in;
    Outgoing sent = To(peer, {&out, 1}, 9, calls[transport.rank()]);
    Incoming received = From(peer, {&in, 1}, 9, calls[transport.rank()]);
    transport.Start(&sent);
    transport.Start(&received);
    return transport.Wait(received, Soon()).ToString();
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("INVALID_ARGUMENT: call #9 does not match"),
                                  HasSubstr("all_reduce(1 x float32, SUM)"),
                                  HasSubstr("broadcast(1 x int8, root 1)"))));
}

TEST_P(TransportContract, OtherNumberOfBytesIsRefused) {
  const auto results = Run(2, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    std::byte bytes[3] = {};
    if (transport.rank() == 0) {
      Outgoing sent = To(1, {bytes, 3}, 4);
      transport.Start(&sent);
      return AwaitByte(transport, 1);
    }
    Incoming received = From(0, {bytes, 2}, 4);
    transport.Start(&received);
    return transport.Wait(received, Soon()).ToString();
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("send with tag 4 does not match"),
                                  HasSubstr("expects 2 bytes"), HasSubstr("sends 3"))));
}

// Rank 3 waits for 2, 2 for 1, 1 for 0. Each learns the reason from the rank it waits for.
TEST_P(TransportContract, DeathIsToldToThoseWhoWaitForOthers) {
  const auto results = Run(5, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    if (transport.rank() == 0) {
      self.die();
      return "";
    }
    return AwaitByte(transport, transport.rank() - 1);
  });
  EXPECT_EQ(results[0], "");
  for (Rank rank = 1; rank < 5; ++rank) {
    EXPECT_THAT(results[rank], AllOf(HasSubstr("UNAVAILABLE: rank 0"), HasSubstr("went away")));
  }
}

TEST_P(TransportContract, DeathInTheMiddleIsNoticed) {
  const auto results = Run(3, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    const int size = transport.size();
    const Rank next = (transport.rank() + 1) % size, before = (transport.rank() + size - 1) % size;
    const auto mine = Pattern(100000, 1);
    std::vector<std::byte> theirs(mine.size());
    for (uint64_t round = 0;; ++round) {
      if (transport.rank() == 1 && round == 20) {
        self.die();
        return "";
      }
      Outgoing sent = To(next, mine, round, {Verb::kAllGather});
      Incoming received = From(before, theirs, round, {Verb::kAllGather});
      transport.Start(&sent);
      transport.Start(&received);
      absl::Status status = transport.Wait(received, Soon());
      if (status.ok()) status = transport.Wait(sent, Soon());
      if (!status.ok()) return status.ToString();
    }
  });
  for (const Rank rank : {0, 2}) {
    EXPECT_THAT(results[rank], AllOf(HasSubstr("UNAVAILABLE: rank 1"), HasSubstr("went away")));
  }
}

TEST_P(TransportContract, FailureNamesTheRankBehindItAndStays) {
  const auto results = Run(2, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    if (transport.rank() == 1) {
      self.die();
      return "";
    }
    if (transport.failure() != nullptr) return "failed before it began";
    const std::string first = AwaitByte(transport, 1);
    if (transport.failure() == nullptr) return "no failure";
    if (AwaitByte(transport, 1) != first) return "another failure";
    return absl::StrCat(transport.failure()->rank);
  });
  EXPECT_EQ(results[0], "1");
}

TEST_P(TransportContract, LeavingIsNotDyingAndWhatWasSentStillArrives) {
  const auto results = Run(2, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    if (transport.rank() == 1) {
      const std::byte byte{7};
      Outgoing sent = To(0, {&byte, 1}, 17, {Verb::kAllReduce});
      transport.Start(&sent);
      transport.SayGoodbye("ValueError: bad batch");
      return transport.Wait(sent, Soon()).ToString();
    }
    const std::string first = AwaitByte(transport, 1);
    return first + ", then " + AwaitByte(transport, 1, 30s, 18);
  });
  EXPECT_EQ(results[1], "OK");
  EXPECT_THAT(results[0],
              AllOf(HasSubstr("OK, then UNAVAILABLE: rank 1"),
                    HasSubstr("left the group before all_reduce #18, after ValueError: bad "
                              "batch")));
}

TEST_P(TransportContract, ADeathThatNobodyMissesIsNoFailure) {
  const auto results = Run(3, [](TestRank& self) { return TakesWhatAGoneRankSent(self, true); });
  EXPECT_THAT(results[0], AllOf(HasSubstr("UNAVAILABLE: rank 1"),
                                HasSubstr("went away during send with tag 9")));
  EXPECT_EQ(results[2], "OK");
}

TEST_P(TransportContract, WhoAsksLateLearnsThatARankHasLeft) {
  const auto results = Run(3, [](TestRank& self) { return TakesWhatAGoneRankSent(self, false); });
  EXPECT_THAT(results[0], AllOf(HasSubstr("UNAVAILABLE: rank 1"),
                                HasSubstr("left the group before send with tag 9")));
  EXPECT_EQ(results[2], "OK");
}

TEST_P(TransportContract, TimeOutSaysWhoWaitedForWhomToAll) {
  const auto results = Run(3, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    switch (transport.rank()) {
      case 0: {
        const std::string here = AwaitByte(transport, 1, 30s, 16);
        return here == "OK" ? AwaitByte(transport, 1, 50ms) : here;
      }
      case 1: {
        std::byte byte{1};
        Outgoing here = To(0, {&byte, 1}, 16, {Verb::kAllReduce});
        transport.Start(&here);
        const absl::Status status = transport.Wait(here, Soon());
        return status.ok() ? AwaitByte(transport, 0, 30s) : status.ToString();
      }
      default:
        return AwaitByte(transport, 1, 30s);
    }
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("DEADLINE_EXCEEDED: rank 0 waited in vain for rank 1"),
                                  HasSubstr("in all_reduce #17"))));
}

TEST_P(TransportContract, AbortReleasesAllWhoWait) {
  const auto results = Run(3, [](TestRank& self) -> std::string {
    Transport& transport = self.transport;
    const std::byte byte{};
    Outgoing sent = To(0, {&byte, 1}, 16, {Verb::kBarrier});
    if (transport.rank() == 2) transport.Start(&sent);
    if (transport.rank() == 0) AwaitByte(transport, 2, 30s, 16, {Verb::kBarrier});
    // Ranks 0 and 1 wait for each other and learn of the abort from rank 2, which talked to them.
    if (transport.rank() != 2) return AwaitByte(transport, 1 - transport.rank());
    std::thread other([&] { transport.Abort("enough"); });
    const std::string result = AwaitByte(transport, 0);
    other.join();
    return result;
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("CANCELLED: rank 2"), HasSubstr("enough"))));
}

INSTANTIATE_TEST_SUITE_P(All, TransportContract, testing::ValuesIn(kTransportKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace hlaunch
