// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests what a group promises besides right results: order, threads, other groups and failure.

#include "comm/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/call/algorithm.h"
#include "comm/call/hosts.h"
#include "comm/record/recorded_calls.h"
#include "tests/comm/ranks.h"
#include "tests/rendezvous/no_threads.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

template <typename T>
std::span<std::byte> Bytes(std::vector<T>& values) {
  return std::as_writable_bytes(std::span<T>(values));
}
std::span<std::byte> Bytes(int32_t& value) {
  return std::as_writable_bytes(std::span<int32_t>(&value, 1));
}
constexpr DataType kInt = DataType::kInt32;
constexpr ReduceOp kSum = ReduceOp::kSum;

class Groups : public testing::TestWithParam<TransportKind> {
 protected:
  std::vector<std::string> Run(int size, const std::function<std::string(ProcessGroup&)>& body) {
    return GetParam().run(size, [&](TestRank& self) {
      const auto group = self.join({.timeout = 30s});
      return body(*group);
    });
  }
};

TEST_P(Groups, AnotherProcessCanSeeWhatAGroupHasCalled) {
  const auto results = GetParam().run(2, [](TestRank& self) -> std::string {
    const auto group = self.join({.timeout = 30s, .recorded = true});
    int32_t value = 1, heard = 0;
    for (int i = 0; i < 3; ++i) {
      if (!group->Run(AllReduce(kInt, kSum, Bytes(value), Bytes(value))).ok()) return "run";
    }
    if (!group->Start(Barrier())->Wait().ok()) return "start";
    if (!group->MonitoredBarrier(30s).ok()) return "monitored";
    const WorkPtr work = group->rank() == 0 ? group->StartSend(kInt, Bytes(value), 1)
                                            : group->StartRecv(kInt, Bytes(heard), 0);
    if (!work->Wait().ok()) return "message";
    for (const RecordedCalls& calls : ReadCallRecords(::getpid(), 10)) {
      // Where ranks are threads, others may still be in a call.
      if (calls.begun != 5 || calls.over != 5 || calls.latest.size() != 5) continue;
      std::vector<std::string> verbs;
      for (const RecordedCall& call : calls.latest) verbs.push_back(call.verb);
      return absl::StrJoin(verbs, " ");
    }
    return "nothing is recorded";
  });
  EXPECT_THAT(results, Each("all_reduce all_reduce all_reduce barrier monitored_barrier"));
}

TEST_P(Groups, MessagesToTheRankItselfArriveByTag) {
  const auto results = Run(2, [](ProcessGroup& group) -> std::string {
    const Rank self = group.rank();
    std::vector<int32_t> given(5000, 7), large(5000);
    int32_t small = 0, three = 3;
    const WorkPtr waits = group.StartRecv(kInt, Bytes(small), self, 1);
    if (waits->Done()) return "nothing was sent";
    if (auto status = group.Send(kInt, Bytes(given), self, 2); !status.ok()) return "send";
    if (auto status = group.Send(kInt, Bytes(three), self, 1); !status.ok()) return "send";
    const auto source = group.Recv(kInt, Bytes(large), self, 2);
    if (!source.ok() || *source != self || large != given) return "large";
    if (!waits->Wait().ok() || waits->source() != self || small != 3) return "small";
    group.Send(kInt, Bytes(three), self, 4).IgnoreError();
    if (group.Recv(kInt, Bytes(large), self, 4).ok()) return "another size";
    const WorkPtr never = group.StartRecv(kInt, Bytes(small), self, 5);
    if (!absl::IsDeadlineExceeded(never->Wait(1ms)) || never->Done()) return "patience";
    group.StartRecv(kInt, Bytes(small), self, 6);  // The work may be dropped.
    if (self == 1) return "as it ought to be";
    group.Abort("enough");
    return std::string(never->Wait().message());
  });
  EXPECT_THAT(results, ElementsAre("rank 0: enough", "as it ought to be"));
}

TEST_P(Groups, NothingArrivesAtTheRankItselfAfterAnAbort) {
  const auto results = Run(2, [](ProcessGroup& group) -> std::string {
    const Rank self = group.rank();
    if (self == 1) return "";
    int32_t sent = 3, got = 0;
    group.Send(kInt, Bytes(sent), self, 1).IgnoreError();
    group.Abort("enough");
    return group.Recv(kInt, Bytes(got), self, 1).status().ToString();
  });
  EXPECT_EQ(results[0], "CANCELLED: rank 0: enough");
}

TEST_P(Groups, WorksThatWereStartedAreDoneInTheirOrder) {
  const auto results = Run(3, [](ProcessGroup& group) -> std::string {
    std::vector<std::vector<int32_t>> data;
    std::vector<WorkPtr> works;
    for (int i = 0; i < 50; ++i) data.emplace_back(i * 100 + 1, group.rank() + i);
    for (auto& values : data)
      works.push_back(group.Start(AllReduce(kInt, kSum, Bytes(values), Bytes(values))));
    // A call that waits comes after the calls that were started.
    int32_t last = 1;
    if (auto status = group.Run(AllReduce(kInt, kSum, Bytes(last), Bytes(last))); !status.ok()) {
      return status.ToString();
    }
    for (int i = 0; i < 50; ++i) {
      if (!works[i]->Done()) return absl::StrCat(i, " is not over, though a later one is");
      if (data[i].back() != 3 + 3 * i) return absl::StrCat("wrong sum in ", i);
    }
    return absl::StrCat(last);
  });
  EXPECT_THAT(results, Each("3"));
}

TEST_P(Groups, WhoLeavesWhenItsLastWorkIsDoneHarmsNobody) {
  for (int time = 0; time < 20; ++time) {
    const auto results =
        Run(3, [](ProcessGroup& group) { return group.Start(Barrier())->Wait().ToString(); });
    ASSERT_THAT(results, Each("OK"));
  }
}

// No thread waits, so the polling itself connects, learns of a death and notices time-outs.
TEST_P(Groups, WorksThatAreOnlyAskedForEndAsWell) {
  const auto results = GetParam().run(3, [](TestRank& self) -> std::string {
    const auto group = self.join({.timeout = 20s});
    std::vector<int32_t> given(70'000, group->rank()), got(given.size());
    const Rank other = 1 - group->rank();
    if (group->rank() < 2) {
      const WorkPtr sent = group->StartSend(kInt, Bytes(given), other);
      const WorkPtr received = group->StartRecv(kInt, Bytes(got), other);
      while (!sent->Done() || !received->Done()) std::this_thread::yield();
      if (got[0] != other) return "other numbers";
    }
    group->Run(Barrier()).IgnoreError();  // Rank 2's last message may be lost with it.
    if (group->rank() == 0) return "done";
    if (group->rank() == 2) {
      self.die();
      return "";
    }
    const WorkPtr never = group->StartRecv(kInt, Bytes(got), 2, 9);
    while (!never->Done()) std::this_thread::yield();
    return never->Wait().ToString();
  });
  EXPECT_EQ(results[0], "done");
  EXPECT_THAT(results[1], MatchesRegex("UNAVAILABLE: rank 2.* went away.*"));
}

// Rank 0 sends while its all_reduce waits for rank 1, and rank 1 waits for that message.
TEST_P(Groups, AMessagePassesACollectiveThatWaits) {
  const auto results = Run(2, [](ProcessGroup& group) -> std::string {
    int32_t sum = 1, word = 7;
    if (group.rank() == 0) {
      const WorkPtr work = group.Start(AllReduce(kInt, kSum, Bytes(sum), Bytes(sum)));
      const absl::Status sent = group.Send(kInt, Bytes(word), 1);
      return sent.ok() ? work->Wait().ToString() : sent.ToString();
    }
    const auto source = group.Recv(kInt, Bytes(word), 0);
    if (!source.ok()) return source.status().ToString();
    return group.Run(AllReduce(kInt, kSum, Bytes(sum), Bytes(sum))).ToString();
  });
  EXPECT_THAT(results, Each("OK"));
}

TEST_P(Groups, ManyThreadsSendAndReceiveAtOnce) {
  constexpr int kThreads = 4, kTimes = 100;
  const auto results = Run(2, [](ProcessGroup& group) -> std::string {
    std::vector<std::string> wrong(kThreads);
    std::vector<std::thread> threads;
    for (int tag = 0; tag < kThreads; ++tag) {
      threads.emplace_back([&, tag] {
        for (int i = 0; i < kTimes; ++i) {
          std::vector<int32_t> out(1 + i * 97 % 9000, tag * 1000 + i), in(out.size());
          const WorkPtr sent = group.StartSend(kInt, Bytes(out), 1 - group.rank(), tag);
          const auto got = group.Recv(kInt, Bytes(in), 1 - group.rank(), tag);
          const absl::Status status = got.ok() ? sent->Wait() : got.status();
          if (!status.ok()) {
            wrong[tag] = status.ToString();
          } else if (in != out) {
            wrong[tag] = absl::StrCat("other numbers in message ", i);
          }
          if (!wrong[tag].empty()) return;
        }
      });
    }
    for (int i = 0; i < kTimes; ++i) {
      if (auto status = group.Run(Barrier()); !status.ok()) wrong.push_back(status.ToString());
    }
    for (std::thread& thread : threads) thread.join();
    return absl::StrJoin(wrong, "");
  });
  EXPECT_THAT(results, Each(""));
}

TEST_P(Groups, WhoeverIsFirstIsReceivedFrom) {
  const auto results = Run(4, [](ProcessGroup& group) -> std::string {
    int32_t value = 10 * group.rank();
    if (group.rank() != 0) return group.Send(kInt, Bytes(value), 0, 5).ToString();
    std::vector<int> seen(4);
    for (int i = 0; i < 3; ++i) {
      const auto source = group.Recv(kInt, Bytes(value), kAnyRank, 5);
      if (!source.ok()) return source.status().ToString();
      if (value != 10 * *source) return "not from whom it says";
      ++seen[*source];
    }
    return absl::StrJoin(seen, ",");
  });
  EXPECT_THAT(results, ElementsAre("0,1,1,1", "OK", "OK", "OK"));
}

TEST_P(Groups, GroupsOfSomeRanksWorkAtOnce) {
  if (GetParam().name == std::string("Loopback")) GTEST_SKIP() << "needs a store";
  const auto results = Run(5, [](ProcessGroup& group) -> std::string {
    const std::vector<Rank> odd{3, 1}, all{0, 1, 2, 3, 4};
    const auto few = group.NewGroup(odd);
    const auto many = group.NewGroup(all);
    if (!few.ok() || !many.ok())
      return absl::StrCat(few.status().ToString(), many.status().ToString());
    if ((*few == nullptr) != (group.rank() % 2 == 0)) return "wrong members";
    std::vector<int32_t> a(40000, 1), b(40000, group.rank());
    int32_t c = 1;
    std::vector<WorkPtr> works;
    works.push_back((*many)->Start(AllReduce(kInt, kSum, Bytes(b), Bytes(b))));
    if (*few != nullptr) works.push_back((*few)->Start(AllReduce(kInt, kSum, Bytes(a), Bytes(a))));
    works.push_back(group.Start(AllReduce(kInt, kSum, Bytes(c), Bytes(c))));
    for (const WorkPtr& work : works) {
      if (auto status = work->Wait(); !status.ok()) return status.ToString();
    }
    const Rank place = *few != nullptr ? (*few)->rank() : -1;
    return absl::StrCat(a.back(), " ", b.back(), " ", c, " ", place);
  });
  EXPECT_THAT(results, ElementsAre("1 10 5 -1", "2 10 5 1", "1 10 5 -1", "2 10 5 0", "1 10 5 -1"));
}

TEST_P(Groups, BothCallsAreShownWhereRanksDoNotCallTheSame) {
  const auto results = Run(5, [](ProcessGroup& group) -> std::string {
    std::vector<int32_t> data(3);
    if (auto status = group.Run(Barrier()); !status.ok()) return status.ToString();
    return group
        .Run(group.rank() == 3 ? Broadcast(kInt, Bytes(data), 1)
                               : AllReduce(kInt, kSum, Bytes(data), Bytes(data)))
        .ToString();
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("INVALID_ARGUMENT: call #2 does not match"),
                                  HasSubstr("all_reduce(3 x int32, SUM)"),
                                  HasSubstr("broadcast(3 x int32, root 1)"))));
}

TEST_P(Groups, WhoDiesInACollectiveIsNamedToAll) {
  for (const size_t count : {1, 300000}) {
    const auto results = GetParam().run(4, [&](TestRank& self) -> std::string {
      const auto group = self.join({.timeout = 30s});
      std::vector<int32_t> data(count, 1);
      for (int call = 1; call <= 40; ++call) {
        if (group->rank() == 2 && call == 17) {
          self.die();
          return "";
        }
        const absl::Status status = group->Run(AllReduce(kInt, kSum, Bytes(data), Bytes(data)));
        // Its last message may be lost with it.
        if (!status.ok()) return absl::StrCat(call, " ", status.ToString());
      }
      return "never heard of it";
    });
    for (const Rank rank : {0, 1, 3}) {
      EXPECT_THAT(results[rank],
                  AllOf(MatchesRegex("1[67] UNAVAILABLE: rank 2.*"), HasSubstr("went away")));
    }
  }
}

TEST_P(Groups, MonitoredBarrierNamesAllWhoDoNotCome) {
  const auto results = Run(5, [](ProcessGroup& group) -> std::string {
    if (auto status = group.MonitoredBarrier(20s); !status.ok()) return status.ToString();
    if (group.rank() == 1 || group.rank() == 4) {
      // It does not finish until the others have given up.
      int32_t word;
      return group.Recv(kInt, Bytes(word), 0).status().ToString();
    }
    return group.MonitoredBarrier(10s).ToString();
  });
  EXPECT_THAT(results, Each(HasSubstr("DEADLINE_EXCEEDED: monitored_barrier #2: ranks 1, 4 did not "
                                      "come within 10 s")));
}

TEST_P(Groups, WaitingForAWorkInVainEndsNothing) {
  const auto results = Run(2, [](ProcessGroup& group) -> std::string {
    int32_t value = 5;
    if (group.rank() == 0) {
      const WorkPtr received = group.StartRecv(kInt, Bytes(value), 1, 1);
      const WorkPtr sum = group.Start(AllReduce(kInt, kSum, Bytes(value), Bytes(value)));
      const absl::Status first = received->Wait(20ms), second = sum->Wait(20ms);
      if (!absl::IsDeadlineExceeded(first) || !absl::IsDeadlineExceeded(second)) {
        return absl::StrCat(first.ToString(), " ", second.ToString());
      }
      int32_t go = 1;
      if (auto status = group.Send(kInt, Bytes(go), 1, 2); !status.ok()) return status.ToString();
      const absl::Status status = sum->Wait();
      return status.ok() ? received->Wait().ToString() : status.ToString();
    }
    int32_t go = 0, other = 1;
    if (auto source = group.Recv(kInt, Bytes(go), 0, 2); !source.ok()) return "no word";
    const absl::Status status = group.Run(AllReduce(kInt, kSum, Bytes(other), Bytes(other)));
    return status.ok() ? group.Send(kInt, Bytes(go), 0, 1).ToString() : status.ToString();
  });
  EXPECT_THAT(results, Each("OK"));
}

TEST_P(Groups, AbortReleasesEverybody) {
  const auto results = Run(3, [](ProcessGroup& group) -> std::string {
    int32_t value = 0;
    if (group.rank() != 1)
      return group.Run(AllReduce(kInt, kSum, Bytes(value), Bytes(value))).ToString();
    const WorkPtr work = group.StartRecv(kInt, Bytes(value), 0);
    group.Abort("enough");
    return work->Wait().ToString();
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("CANCELLED: rank 1"), HasSubstr("enough"))));
}

TEST_P(Groups, NonsenseIsRefusedAndHarmsNothing) {
  const auto results = Run(2, [](ProcessGroup& group) -> std::string {
    std::vector<int32_t> data(4), half(2);
    std::vector<float> floats(4);
    const Collective wrong[] = {
        Broadcast(kInt, Bytes(data), 2),
        AllReduce(DataType::kFloat32, ReduceOp::kBxor, Bytes(floats), Bytes(floats)),
        AllReduce(kInt, ReduceOp::kAvg, Bytes(data), Bytes(data)),
        AllReduce(kInt, kSum, Bytes(data), Bytes(half)),
        AllGather(kInt, Bytes(data), Bytes(half)),
        AllGather(kInt, Bytes(half), Bytes(data), {2}),
        AllToAll(kInt, Bytes(data), Bytes(data), {2, 2}, {}),
        AllReduce(kInt, kSum, Bytes(data).first(3), Bytes(data).first(3)),
    };
    for (const Collective& call : wrong) {
      const absl::Status status = group.Run(call);
      if (!absl::IsInvalidArgument(status)) return absl::StrCat("taken: ", status.ToString());
    }
    for (const Rank peer : {2, -3}) {
      if (!absl::IsInvalidArgument(group.Send(kInt, Bytes(data), peer))) return "sent";
    }
    return group.Run(AllReduce(kInt, kSum, Bytes(data), Bytes(data))).ToString();
  });
  EXPECT_THAT(results, Each("OK"));
}

INSTANTIATE_TEST_SUITE_P(All, Groups, testing::ValuesIn(kTransportKinds),
                         [](const auto& kind) { return kind.param.name; });

// The caller got the error and frees the buffers that the call would use. The test runs in its own
// process, which becomes another user for a while.
TEST(Queue, NeverRunsACallForWhichThereWasNoThread) {
  const auto results = RunAsProcesses(1, [](TestRank& self) -> std::string {
    const auto group = self.join({.timeout = 30s});
    int32_t from = 5, into = 0;
    try {
      const NoThreads none;
      group->Start(AllReduce(kInt, kSum, Bytes(from), Bytes(into)));
      return "there was a thread";
    } catch (const std::system_error&) {
    }
    const absl::Status next = group->Start(Barrier())->Wait();
    return next.ok() ? absl::StrCat(into) : next.ToString();
  });
  EXPECT_THAT(results, ElementsAre("0"));
}

TEST(Hosts, AreGroupedByWhatRanksSayOfThem) {
  const Hosts hosts = GroupByHost({"b", "a", "b", "", "a", ""});
  EXPECT_THAT(hosts.ranks,
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 4), ElementsAre(3), ElementsAre(5)));
  EXPECT_THAT(hosts.host_of, ElementsAre(0, 1, 0, 2, 1, 3));
  EXPECT_THAT(hosts.index_of, ElementsAre(0, 0, 1, 0, 1, 0));
  EXPECT_EQ(hosts.per_host, 0);
  EXPECT_EQ(GroupByHost({"x", "x"}).per_host, 2);
}

TEST(Algorithm, NetworkIsSparedWhereHostsHoldSeveralRanks) {
  EXPECT_EQ(Choose(Verb::kAllReduce, 1 << 20, {8, 2, 4}), Algorithm::kTwoLevel);
  EXPECT_EQ(Choose(Verb::kAllReduce, 1 << 20, {8, 1, 8}), Algorithm::kDirect);
  EXPECT_EQ(Choose(Verb::kAllReduce, 1 << 20, {8, 3, 0}), Algorithm::kDirect);
  EXPECT_EQ(Choose(Verb::kAllReduce, 8, {8, 2, 4}), Algorithm::kExchange);
  EXPECT_EQ(Choose(Verb::kAllReduce, 8, {64, 64, 1}), Algorithm::kBruck);
  EXPECT_EQ(Choose(Verb::kAllReduce, 1 << 24, {64, 64, 1}), Algorithm::kRing);
}

TEST(Algorithm, EnvironmentIsCheckedByName) {
  ::setenv("HLAUNCH_COMM_ALL_REDUCE", "rng", 1);
  EXPECT_THAT(ChoicesFromEnvironment().status().ToString(),
              AllOf(HasSubstr("HLAUNCH_COMM_ALL_REDUCE=rng"), HasSubstr("ring")));
  ::setenv("HLAUNCH_COMM_ALL_REDUCE", "ring", 1);
  EXPECT_EQ(ChoicesFromEnvironment()->at(Verb::kAllReduce), Algorithm::kRing);
  ::unsetenv("HLAUNCH_COMM_ALL_REDUCE");
}

}  // namespace
}  // namespace hlaunch
