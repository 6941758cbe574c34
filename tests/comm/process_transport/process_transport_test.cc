// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests what transport_contract_test.cc cannot test on every transport.

#include "comm/process_transport/process_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "comm/connection/acceptor.h"
#include "comm/connection/connect.h"
#include "comm/process_transport/event_poll.h"
#include "comm/process_transport/failure_record.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/store/c10d/c10d_client.h"
#include "tests/fakes/memory_store.h"
#include "tests/rendezvous/store_fixtures.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

size_t FilesIn(const char* folder) {
  const std::filesystem::directory_iterator files(folder);
  return std::distance(begin(files), end(files));
}

// The shared memory of hlaunch that has a name; that of other programs comes and goes.
size_t NamedSharedMemory() {
  const std::filesystem::directory_iterator files("/dev/shm");
  return std::count_if(begin(files), end(files), [](const auto& file) {
    return file.path().filename().string().find("hlaunch") != std::string::npos;
  });
}

std::string Contents(const char* path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Both ranks send 100,000 bytes to each other. Returns each status as text.
std::string Swap(Transport& transport) {
  const Rank peer = 1 - transport.rank();
  std::vector<std::byte> mine(100000, std::byte(1 + transport.rank())), theirs(mine.size());
  Outgoing sent{{peer}, mine};
  Incoming received{{peer}, theirs};
  transport.Start(&sent);
  transport.Start(&received);
  absl::Status status = transport.Wait(received, In(300s));
  if (status.ok()) status = transport.Wait(sent, In(300s));
  if (status.ok() && theirs.back() != std::byte(1 + peer)) return "other bytes";
  return status.ToString();
}

// Calls `run` in a thread for each rank. Returns the results by rank.
std::vector<std::string> ResultsOf(int ranks, const std::function<std::string(Rank)>& run) {
  std::vector<std::string> results(ranks);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { results[rank] = run(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::vector<std::string> SwapAsThreads(Store& store, ProcessTransportOptions options) {
  return ResultsOf(2, [&](Rank rank) {
    auto transport = ProcessTransport::Create(store, rank, 2, options);
    return transport.ok() ? Swap(**transport) : transport.status().ToString();
  });
}

// A server to which clients can connect, but which never answers.
class SilentServer {
 public:
  SilentServer() : listener_(*Listen("127.0.0.1", 0)) {}
  std::unique_ptr<Store> Client() {
    C10dClientOptions options;
    options.request_timeout = 1h;
    return *C10dClient::Connect("127.0.0.1", listener_.port, In(300s), options);
  }

 private:
  ListeningSocket listener_;
};

TEST(FailureRecord, DoesNotWaitForAStoreThatIsCutOff) {
  SilentServer server;
  const std::unique_ptr<Store> store = server.Client();
  FailureRecord record(*store, "group/");
  const Failure failure{absl::DeadlineExceededError("rank 0 waited in vain for rank 1"), 1};
  EXPECT_FALSE(record.RecordWait(0, failure));
  EXPECT_EQ(record.RecordFirst(failure).status, failure.status);
}

TEST(EventPoll, DoesNotWaitOnceTheTimeIsOver) {
  EventPoll poll = EventPoll::Create().value();
  EXPECT_EQ(poll.Wait(-2, [](const EventPoll::Event&) {}), 0);
}

TEST(ProcessTransport, LeavesNothingBehind) {
  const size_t descriptors = FilesIn("/proc/self/fd"), shared = NamedSharedMemory();
  for (const bool shared_memory : {true, false}) {
    MemoryStore store;
    EXPECT_THAT(SwapAsThreads(store, {.address = "127.0.0.1", .shared_memory = shared_memory}),
                testing::Each("OK"));
  }
  EXPECT_EQ(FilesIn("/proc/self/fd"), descriptors);
  EXPECT_EQ(NamedSharedMemory(), shared);
  EXPECT_THAT(Contents("/proc/self/maps"), Not(HasSubstr("memfd:hlaunch-comm")));
}

// A store on a busy machine: each answer takes 200 ms.
class SlowStore : public MemoryStore {
 public:
  absl::StatusOr<std::string> Get(absl::string_view key, Instant deadline) override {
    const Instant answered = In(200ms);
    std::this_thread::sleep_until(std::min(deadline, answered));
    if (deadline < answered) return absl::DeadlineExceededError("no answer");
    return MemoryStore::Get(key, deadline);
  }
};

TEST(ProcessTransport, FindsTheOtherRanksThoughTheStoreAnswersLate) {
  SlowStore store;
  EXPECT_THAT(SwapAsThreads(store, {.address = "127.0.0.1"}), testing::Each("OK"));
}

// Rank 2 never comes, and the others have something for it before they send to each other.
TEST(ProcessTransport, ServesTheRanksThatCameWhileItLooksForOneThatHasNot) {
  for (const bool shared_memory : {true, false}) {
    MemoryStore store;
    const auto run = [&](Rank rank) -> absl::Status {
      std::byte mine{}, theirs{};
      Outgoing missed{{2}, {&mine, 1}}, sent{{1 - rank}, {&mine, 1}};
      Incoming received{{1 - rank}, {&theirs, 1}};
      const auto transport = ProcessTransport::Create(
          store, rank, 3, {.address = "127.0.0.1", .shared_memory = shared_memory});
      if (!transport.ok()) return transport.status();
      (*transport)->Start(&missed);
      (*transport)->Start(&sent);
      (*transport)->Start(&received);
      if (auto done = (*transport)->Wait(received, In(100s)); !done.ok()) return done;
      return (*transport)->Wait(sent, In(100s));
    };
    EXPECT_THAT(ResultsOf(2, [&](Rank rank) { return run(rank).ToString(); }), testing::Each("OK"))
        << (shared_memory ? "shared memory" : "TCP");
  }
}

// Eight threads that compute share the only core of rank 0, so each yield takes 10 ms and more.
TEST(ProcessTransport, TakesConnectionsWhileOthersWantItsCore) {
  MemoryStore store;
  int yields = 0;
  std::thread waits([&] {
    cpu_set_t one, all;
    CPU_ZERO(&one);
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    std::atomic<bool> over = false;
    std::vector<std::thread> busy;
    for (int i = 0; i < 8; ++i) {
      busy.emplace_back([&] {
        while (!over.load()) std::atomic_signal_fence(std::memory_order_seq_cst);
      });
    }
    const auto transport = *ProcessTransport::Create(store, 0, 2, {.address = "127.0.0.1"});
    std::byte byte;
    Incoming message{{1}, {&byte, 1}};
    transport->Start(&message);
    rusage before, after;
    ::getrusage(RUSAGE_THREAD, &before);
    EXPECT_EQ(transport->Wait(message, In(300s)), absl::OkStatus());
    ::getrusage(RUSAGE_THREAD, &after);
    yields = static_cast<int>(after.ru_nivcsw - before.ru_nivcsw);
    over = true;
    for (std::thread& thread : busy) thread.join();
  });
  const auto transport = *ProcessTransport::Create(store, 1, 2, {.address = "127.0.0.1"});
  std::byte byte{};
  Outgoing message{{0}, {&byte, 1}};
  transport->Start(&message);
  EXPECT_EQ(transport->Wait(message, In(300s)), absl::OkStatus());
  waits.join();
  EXPECT_LT(yields, 500);  // It yields 1,000 times before it sleeps.
}

// Rank 2's large message is for a receive from any rank and has begun to arrive before that. The
// message that rank 0 waits for comes only once rank 2's was taken.
TEST(ProcessTransport, TakesWhatIsAskedForFromAnyRankWhileItWaitsForAnother) {
  for (const bool shared_memory : {true, false}) {
    MemoryStore store;
    const auto run = [&](Rank rank) -> absl::Status {
      auto made = ProcessTransport::Create(
          store, rank, 3, {.address = "127.0.0.1", .shared_memory = shared_memory});
      if (!made.ok()) return made.status();
      Transport& transport = **made;
      std::vector<std::byte> large(32 << 20), small(1);
      const auto send = [&](Rank peer, uint64_t tag, std::span<const std::byte> bytes) {
        Outgoing message{{.peer = peer, .number = tag}, bytes};
        transport.Start(&message);
        return transport.Wait(message, In(200s));
      };
      const auto receive = [&](Rank peer, uint64_t tag) {
        Incoming message{{.peer = peer, .number = tag}, small};
        transport.Start(&message);
        return transport.Wait(message, In(200s));
      };
      if (rank == 1) {
        std::this_thread::sleep_for(300ms);
        if (auto sent = send(0, 1, small); !sent.ok()) return sent;
        if (auto done = receive(2, 2); !done.ok()) return done;
        return send(0, 3, small);
      }
      if (rank == 2) {
        if (auto sent = send(0, 4, large); !sent.ok()) return sent;
        return send(1, 2, small);
      }
      if (auto begun = receive(1, 1); !begun.ok()) return begun;
      Incoming any{{.peer = kAnyRank, .number = 4}, large};
      transport.Start(&any);
      if (auto done = receive(1, 3); !done.ok()) return done;
      return transport.Wait(any, In(200s));
    };
    EXPECT_THAT(ResultsOf(3, [&](Rank rank) { return run(rank).ToString(); }), testing::Each("OK"))
        << (shared_memory ? "shared memory" : "TCP");
  }
}

// Rank 0 waits for rank 1, which has said that it waited for rank 2, or for rank 0 itself.
TEST(ProcessTransport, TimeOutNamesWhoIsWaitedForInTheEnd) {
  for (const Rank other : {2, 0}) {
    MemoryStore store;
    ASSERT_TRUE(store
                    .Append("hlaunch/comm/default/waits",
                            absl::StrCat("1 ", other, " rank 1 waited for rank ", other, "\n"))
                    .ok());
    auto transport = *ProcessTransport::Create(store, 0, 3, {.address = "127.0.0.1"});
    std::byte byte;
    Incoming message{{1, {Verb::kAllToAll}, 7}, {&byte, 1}};
    transport->Start(&message);
    const absl::Status status = transport->Wait(message, In(10ms));
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(status.message(),
                HasSubstr(other == 2 ? "rank 1 waited for rank 2" : "rank 1 has not come"));
  }
}

// The time of rank 0 is up long before that of the ranks that it waits for: rank 0 waits for rank
// 1, which waits for rank 2, and so on. The last rank computes, or never came.
TEST(ProcessTransport, TimeOutNamesWhoIsWaitedForThoughTheOthersStillHaveTime) {
  constexpr int kWaiting = 3;
  for (const bool shared_memory : {true, false}) {
    for (const bool last_comes : {true, false}) {
      MemoryStore store;
      const Rank present = last_comes ? kWaiting + 1 : kWaiting;
      std::latch met(present), over(kWaiting);
      const auto wait = [&](Rank rank) -> std::string {
        const auto transport = *ProcessTransport::Create(
            store, rank, kWaiting + 1, {.address = "127.0.0.1", .shared_memory = shared_memory});
        const auto receive = [&](Rank from, uint64_t number, Duration patience) {
          std::byte byte;
          Incoming message{{from, {Verb::kAllReduce}, number}, {&byte, 1}};
          transport->Start(&message);
          return transport->Wait(message, In(patience));
        };
        // First, each of them hears from the one that it waits for later.
        std::byte byte{};
        Outgoing first{{(rank + present - 1) % present, {Verb::kAllReduce}, 7}, {&byte, 1}};
        transport->Start(&first);
        absl::Status status = receive((rank + 1) % present, 7, 300s);
        if (status.ok()) status = transport->Wait(first, In(300s));
        met.count_down();
        if (!status.ok()) return status.ToString();
        if (rank == 0) met.wait();
        if (rank == kWaiting) over.wait();
        if (rank == kWaiting) return "computed";
        return receive(rank + 1, 8, rank == 0 ? 500ms : 300s).ToString();
      };
      auto results = ResultsOf(present, [&](Rank rank) {
        std::string result = wait(rank);
        if (rank < kWaiting) over.count_down();
        return result;
      });
      if (last_comes) results.pop_back();
      EXPECT_THAT(
          results,
          testing::Each(HasSubstr(last_comes ? "DEADLINE_EXCEEDED: rank 2 waited in vain for rank 3"
                                             : "DEADLINE_EXCEEDED: rank 3 has not come to group")))
          << (shared_memory ? "shared memory" : "TCP");
    }
  }
}

TEST(ProcessTransport, SpeaksIpv6) {
  MemoryStore store;
  if (!Acceptor::Open("::1", {}).ok()) GTEST_SKIP() << "this host has no IPv6";
  EXPECT_THAT(SwapAsThreads(store, {.address = "::1", .shared_memory = false}),
              testing::Each("OK"));
}

TEST(ProcessTransport, GroupsOfOneStoreDoNotMeet) {
  MemoryStore store;
  EXPECT_THAT(SwapAsThreads(store, {.name = "a", .address = "127.0.0.1"}), testing::Each("OK"));
  EXPECT_THAT(SwapAsThreads(store, {.name = "b", .address = "127.0.0.1"}), testing::Each("OK"));
}

TEST(ProcessTransport, NamesTheRankThatNeverCame) {
  MemoryStore store;
  auto transport = ProcessTransport::Create(store, 0, 2, {.address = "127.0.0.1"});
  ASSERT_TRUE(transport.ok());
  std::byte byte;
  Incoming message{{1, {Verb::kBarrier}, 3}, {&byte, 1}};
  (*transport)->Start(&message);
  EXPECT_THAT((*transport)->Wait(message, In(100ms)).ToString(),
              AllOf(HasSubstr("DEADLINE_EXCEEDED: rank 1 has not come to group 'default'"),
                    HasSubstr("barrier #3")));
}

// Rank 2 finds rank 1 gone, which left because rank 0 had not come.
TEST(ProcessTransport, WhoComesLateLearnsTheCause) {
  MemoryStore store;
  std::byte byte;
  const auto await = [&](Transport& transport, Rank peer) {
    Incoming message{{peer, {Verb::kBarrier}, 3}, {&byte, 1}};
    transport.Start(&message);
    return transport.Wait(message, In(50ms));
  };
  auto early = ProcessTransport::Create(store, 1, 3, {.address = "127.0.0.1"});
  auto late = ProcessTransport::Create(store, 2, 3, {.address = "127.0.0.1"});
  ASSERT_TRUE(early.ok() && late.ok());
  const absl::Status cause = await(**early, 0);
  EXPECT_THAT(cause.ToString(), HasSubstr("rank 0 has not come"));
  early->reset();
  EXPECT_EQ(await(**late, 1), cause);
  EXPECT_EQ((*late)->failure()->rank, 0);
}

TEST(RankAddress, TravelsAsText) {
  const auto acceptor = Acceptor::Open("127.0.0.1", {});
  ASSERT_TRUE(acceptor.ok());
  const auto address = ParseRankAddress(ToText(acceptor->address()));
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(ToText(*address), ToText(acceptor->address()));
}

TEST(RankAddress, NonsenseIsRefused) {
  for (const char* text : {"", "hlaunch-comm-2", "hlaunch-comm-1 a b c 1 d",
                           "hlaunch-comm-2 short name 127.0.0.1 1 host",
                           "hlaunch-comm-2 0123456789abcdef0123456789abcdef n 127.0.0.1 70000 h"}) {
    EXPECT_THAT(ParseRankAddress(text).status().ToString(), HasSubstr("makes no sense")) << text;
  }
}

// Without a secret of the round, a process that has not read the store cannot connect.
TEST(Acceptor, ClosesSocketsWithAWrongToken) {
  const GroupPlace zero{.group = "g", .secret = "", .rank = 0, .size = 2};
  const GroupPlace one{.group = "g", .secret = "", .rank = 1, .size = 2};
  auto acceptor = Acceptor::Open("127.0.0.1", zero);
  ASSERT_TRUE(acceptor.ok());
  RankAddress forged = acceptor->address();
  forged.token = std::string(32, '0');
  for (const bool shared_memory : {true, false}) {
    auto dialing = *Dialing::Begin(forged, 0, one, shared_memory, 1, In(100s));
    Dialing::State state = Dialing::State::kGreeting;
    while (state == Dialing::State::kGreeting) {
      EXPECT_TRUE(acceptor->Accept().empty());
      state = dialing->Continue();
    }
    EXPECT_EQ(state, Dialing::State::kRefused);
    EXPECT_THAT(dialing->why(), HasSubstr("it has another secret"));
    while (acceptor->has_pending()) EXPECT_TRUE(acceptor->Accept().empty());
  }
}

}  // namespace
}  // namespace hlaunch
