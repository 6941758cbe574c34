// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/attribute_hang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "rendezvous/round/hang/describe_hang.h"
#include "rendezvous/round/hang/judge_hang.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kAge = std::chrono::seconds(75);

CollectiveCall Call(int64_t sequence, bool inside, std::string op = "all_reduce",
                    std::string sizes = "[4] Float") {
  return {sequence, std::move(op), std::move(sizes), inside};
}

RankSnapshot Snapshot(Rank rank, std::vector<GroupSnapshot> groups) {
  RankSnapshot snapshot;
  snapshot.rank = rank;
  snapshot.local_rank = rank;
  snapshot.host = "node0";
  snapshot.pid = 100 + rank;
  snapshot.recorded = snapshot.still = true;
  snapshot.state = 'S';
  snapshot.groups = std::move(groups);
  return snapshot;
}

// A snapshot with `call` in the group of all ranks.
RankSnapshot InAll(Rank rank, CollectiveCall call) {
  return Snapshot(rank, {{"0", "default_pg", {}, {std::move(call)}}});
}

TEST(AttributeHang, FindsNothingWhereNobodyWaits) {
  EXPECT_EQ(AttributeHang({}).kind, HangKind::kNone);
  EXPECT_EQ(AttributeHang({InAll(0, Call(3, false)), InAll(1, Call(3, false))}).kind,
            HangKind::kNone);
}

TEST(AttributeHang, NamesAStoppedRankBesideTheOneThatHasNotCome) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(4, true))};
  ranks[2].state = 'T';
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_THAT(
      DescribeHang(verdict, ranks, kAge),
      HasSubstr("\n  rank 2 (node0, local rank 2, pid 102) has come to it, but is stopped"));
}

TEST(AttributeHang, NamesTheRankThatHasNotCome) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(4, true))};
  ranks[1].place = "load (loader.py:88)";
  ranks[1].holds_interpreter = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kBehind);
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_THAT(verdict.waiting, ElementsAre(0, 2));
  EXPECT_EQ(DescribeHang(verdict, ranks, kAge),
            "no rank has gone on for 75 s. 2 of 3 ranks are in all_reduce number 4 of default_pg "
            "([4] Float);\n  rank 1 (node0, local rank 1, pid 101) has not come to it: it holds "
            "the interpreter in load (loader.py:88)");
}

TEST(AttributeHang, NamesTheRankThatHasExitedOrHasCalledNothingAtAll) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(1, true)), Snapshot(1, {}), Snapshot(2, {})};
  ranks[2].ended = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(1, 2));
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge), HasSubstr("it has exited with 0"));
  EXPECT_THAT(RanksToFail(verdict, ranks), ElementsAre(1));
}

TEST(AttributeHang, FailsOneThatWaitsWhereTheCulpritHasExited) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(1, true)), Snapshot(1, {})};
  ranks[1].ended = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(RanksToFail(verdict, ranks), ElementsAre(0));
  EXPECT_THAT(DescribeCulprit(verdict, ranks, 0, kAge),
              HasSubstr("hangs: rank 1 has exited, and it waits in all_reduce number 1"));
}

TEST(AttributeHang, FollowsAChainToItsEnd) {
  // Rank 0 waits for rank 1 in one group; rank 1 waits for rank 2 in another.
  const std::vector<RankSnapshot> ranks = {
      Snapshot(0, {{"1", "dp", {0, 1}, {Call(5, true)}}}),
      Snapshot(1, {{"1", "dp", {0, 1}, {Call(4, false)}}, {"2", "tp", {1, 2}, {Call(9, true)}}}),
      Snapshot(2, {{"2", "tp", {1, 2}, {Call(8, false)}}})};
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(2));
  EXPECT_EQ(verdict.group, "tp");
}

TEST(AttributeHang, CallsAGroupWithoutADescriptionByItsName) {
  for (const char* description : {"", "undefined"}) {
    EXPECT_EQ(AttributeHang({Snapshot(0, {{"3", description, {0, 1}, {Call(5, true)}}}),
                             Snapshot(1, {{"3", description, {0, 1}, {Call(4, false)}}})})
                  .group,
              "group 3");
  }
}

TEST(AttributeHang, FindsGroupsThatAreUsedInDifferentOrders) {
  const std::vector<RankSnapshot> ranks = {Snapshot(0, {{"1", "dp", {0, 1}, {Call(1, true)}}}),
                                           Snapshot(1, {{"2", "tp", {0, 1}, {Call(1, true)}}})};
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kCrossed);
  EXPECT_THAT(verdict.culprits, IsEmpty());
  const std::string text = DescribeHang(verdict, ranks, kAge);
  EXPECT_THAT(text, HasSubstr("different orders"));
  EXPECT_THAT(text, HasSubstr("\n  rank 0: in all_reduce number 1 of dp"));
  EXPECT_THAT(text, HasSubstr("\n  rank 1: in all_reduce number 1 of tp"));
}

TEST(AttributeHang, NamesTheMinorityThatCallsSomethingElse) {
  for (const CollectiveCall& other :
       {Call(2, true, "all_gather"), Call(2, true, "all_reduce", "[8] Float")}) {
    const std::vector<RankSnapshot> ranks = {InAll(0, Call(2, true)), InAll(1, Call(2, true)),
                                             InAll(2, other)};
    const HangVerdict verdict = AttributeHang(ranks);
    EXPECT_EQ(verdict.kind, HangKind::kMismatch);
    EXPECT_THAT(verdict.culprits, ElementsAre(2));
    EXPECT_THAT(DescribeHang(verdict, ranks, kAge), HasSubstr("\n  ranks 0,1: all_reduce"));
  }
}

TEST(AttributeHang, BlamesNobodyOfTwoThatDiffer) {
  EXPECT_THAT(
      AttributeHang({InAll(0, Call(2, true)), InAll(1, Call(2, true, "broadcast"))}).culprits,
      IsEmpty());
}

TEST(AttributeHang, AcceptsSizesThatMayDiffer) {
  EXPECT_EQ(AttributeHang({InAll(0, Call(2, true, "all_to_all", "[1] Float")),
                           InAll(1, Call(2, true, "all_to_all", "[2] Float"))})
                .kind,
            HangKind::kAllInside);
}

TEST(AttributeHang, LooksAtTheNetworkWhereAllHaveCome) {
  const std::vector<RankSnapshot> ranks = {InAll(0, Call(2, true)), InAll(1, Call(2, true))};
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kAllInside);
  EXPECT_THAT(verdict.culprits, IsEmpty());
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge), HasSubstr("look at the network"));
}

TEST(AttributeHang, NamesThePairOfHostsThatDoNotHearEachOther) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(2, true)), InAll(1, Call(2, true)),
                                     InAll(2, Call(2, true)), InAll(3, Call(2, true))};
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].host = i < 2 ? "node0" : "node1";
    ranks[i].addresses = {i < 2 ? "10.0.0.1" : "10.0.0.2"};
  }
  ranks[1].unheard = ranks[0].unheard = {"10.0.0.2"};
  ranks[3].unheard = {"10.0.0.9"};
  EXPECT_THAT(
      DescribeHang(AttributeHang(ranks), ranks, kAge),
      HasSubstr("\n  10.0.0.9 acknowledges nothing that node1 sends to it (rank 3): look at "
                "the network between them\n  node1 (10.0.0.2) acknowledges nothing that "
                "node0 sends to it (ranks 0,1): look at the network between them"));
}

TEST(AttributeHang, NamesNoPairToARankThatDoesNotWait) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     Snapshot(2, {})};
  ranks[2].groups = {{"1", "alone", {2}, {Call(1, false)}}};
  ranks[0].groups[0] = {"2", "pair", {0, 1}, {Call(4, true)}};
  ranks[1].groups[0] = {"2", "pair", {0, 1}, {Call(3, false)}};
  ranks[2].unheard = {"10.0.0.9"};
  EXPECT_THAT(DescribeHang(AttributeHang(ranks), ranks, kAge),
              testing::Not(HasSubstr("acknowledges")));
}

TEST(AttributeHang, NamesWhoIsNotInTheStoreWhileOthersAre) {
  std::vector<RankSnapshot> ranks = {Snapshot(0, {}), Snapshot(1, {})};
  ranks[0].in_store = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(1));
  ranks[1].in_store = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kStore);
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge), HasSubstr("for keys that nobody has set"));
}

TEST(AttributeHang, PrefersWhoWaitsForNobodyToWhoWaitsForASingleRank) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(3, false))};
  ranks[1].in_p2p = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2));
  ranks[2].in_p2p = true;
  ranks.push_back(InAll(3, Call(4, true)));
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(1, 2));
  EXPECT_TRUE(verdict.busy);  // One of the two may wait for a rank that works.
}

TEST(AttributeHang, NamesWhoIsMissingFromAMonitoredBarrierInWhichMostAre) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(2, false)), InAll(1, Call(2, false)),
                                     InAll(2, Call(3, true))};
  ranks[0].in_p2p = ranks[1].in_p2p = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2));
}

TEST(AttributeHang, StillNamesOneThatIsStoppedWhileItWaitsElsewhere) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(3, false))};
  ranks[1].in_store = true;
  ranks[1].state = 'T';
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(1, 2));
}

TEST(AttributeHang, NamesTheDeadFirst) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(3, false))};
  ranks[2].died = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(2, 1));
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge),
              HasSubstr(";\n  rank 2 (node0, local rank 2, pid 102) has not come to it: it has "
                        "died\n  rank 1 "));
  EXPECT_THAT(RanksToFail(verdict, ranks), ElementsAre(1));
}

TEST(AttributeHang, FailsNoRankForWhichAProcessWorks) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false))};
  ranks[1].busy = ranks[1].child_works = true;
  ranks[1].place = "load (loader.py:88)";
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_TRUE(verdict.busy);
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge),
              HasSubstr("it waits in load (loader.py:88) while a process that it started works"));
  EXPECT_THAT(RanksToFail(verdict, ranks), IsEmpty());
}

TEST(AttributeHang, SaysThatARankIsFrozen) {
  for (const char* kernel : {"do_freezer_trap", "__refrigerator"}) {
    std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false))};
    ranks[1].state = 'D';
    ranks[1].kernel = kernel;
    EXPECT_THAT(DescribeHang(AttributeHang(ranks), ranks, kAge), HasSubstr("it is frozen"));
    ranks[0].kernel = kernel;
    EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
  }
}

TEST(AttributeHang, TakesACollectiveWhoseBytesFlowForOneThatGoesOn) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(2, true)), InAll(1, Call(2, true))};
  ranks[1].flows = true;
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
}

TEST(AttributeHang, NamesWhoIsMissingFromANewGroupThatMostAreMaking) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(2, false)), InAll(1, Call(2, false)),
                                     InAll(2, Call(3, true))};
  ranks[0].in_store = ranks[1].in_store = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(2));
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge), HasSubstr("Ranks 0,1 wait for the master store"));
}

TEST(AttributeHang, StillNamesTheOneThatWaitsForAKeyWhileMostAreInACollective) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(3, true)), InAll(1, Call(3, true)),
                                     InAll(2, Call(2, false))};
  ranks[2].in_store = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2));
}

TEST(AttributeHang, NamesWhoDoesNotSendWhileOthersReceive) {
  std::vector<RankSnapshot> ranks = {Snapshot(0, {}), Snapshot(1, {}), Snapshot(2, {})};
  ranks[0].in_p2p = ranks[2].in_p2p = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kBehind);
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge),
              HasSubstr("Ranks 0,2 wait for other ranks, in send or recv;\n  rank 1 (node0, local "
                        "rank 1, pid 101) does not: it sleeps"));
  ranks[0].moved = 1;  // Rank 0 has received something.
  EXPECT_NE(AttributeHang(ranks).wavefront, verdict.wavefront);
}

TEST(AttributeHang, BlamesNobodyWhereAllReceive) {
  std::vector<RankSnapshot> ranks = {Snapshot(0, {}), Snapshot(1, {})};
  ranks[0].in_p2p = ranks[1].in_p2p = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kPeers);
  EXPECT_THAT(verdict.culprits, IsEmpty());
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge), HasSubstr("each for another one of them"));
}

TEST(AttributeHang, IsSilentWhereAllAreStoppedOrADebuggerHoldsTheCulprit) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false))};
  ranks[1].traced = true;
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
  ranks[1].traced = false;
  ranks[1].state = 'T';
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_THAT(DescribeHang(verdict, ranks, kAge), HasSubstr("is stopped"));
  ranks[0].state = 'T';
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
}

TEST(AttributeHang, FindsTheOneAmongSixteenRanksOfAMesh) {
  // Each row of four is a group, and so is each column. Rank 6 has not begun its row's third call.
  std::vector<RankSnapshot> ranks;
  for (Rank rank = 0; rank < 16; ++rank) {
    const Rank row = rank / 4, column = rank % 4;
    const bool late = rank == 6;
    GroupSnapshot one{"r" + std::to_string(row), "tp", {}, {Call(late ? 2 : 3, row == 1 && !late)}};
    GroupSnapshot other{"c" + std::to_string(column), "dp", {}, {Call(1, false)}};
    for (Rank i = 0; i < 4; ++i) {
      one.members.push_back(row * 4 + i);
      other.members.push_back(i * 4 + column);
    }
    // The other rows have gone on to their column groups and wait there for row 1.
    if (row != 1) other.latest = {Call(2, true)};
    ranks.push_back(Snapshot(rank, {one, other}));
  }
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(6));
}

// A snapshot with calls that its device does in the group of all ranks; the rank waits for it.
RankSnapshot OnDevice(Rank rank, std::vector<CollectiveCall> calls) {
  RankSnapshot snapshot = Snapshot(rank, {{"0", "default_pg", {}, std::move(calls), "nccl"}});
  snapshot.on_device = true;
  return snapshot;
}

TEST(AttributeHang, NamesTheRankThatHasNotComeWhereTheOthersHaveRunAhead) {
  std::vector<RankSnapshot> ranks;
  for (Rank rank = 0; rank < 3; ++rank) {
    ranks.push_back(OnDevice(rank, {Call(3, false), Call(4, true), Call(40, true)}));
  }
  ranks[1].groups[0].latest = {Call(2, false), Call(3, false)};
  ranks[1].on_device = false;
  ranks[1].place = "load (loader.py:88)";
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kBehind);
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_FALSE(verdict.busy);
  EXPECT_EQ(DescribeStandstill(verdict, ranks),
            "The devices of 2 of 3 ranks are in all_reduce number 4 of default_pg ([4] Float);\n"
            "  rank 1 (node0, local rank 1, pid 101) has not come to it: it stands in load "
            "(loader.py:88)");
}

TEST(AttributeHang, ExcusesNoRankByItsDeviceWhichIsNotSeenToWaitForIt) {
  // Rank 1 has handed its device a call of tp, in which it waits for rank 0, and sleeps before dp.
  std::vector<RankSnapshot> ranks = {Snapshot(0, {{"1", "dp", {0, 1}, {Call(5, true)}, "nccl"},
                                                  {"2", "tp", {0, 1}, {Call(6, false)}, "nccl"}}),
                                     Snapshot(1, {{"1", "dp", {0, 1}, {Call(4, false)}, "nccl"},
                                                  {"2", "tp", {0, 1}, {Call(7, true)}, "nccl"}})};
  ranks[0].on_device = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(1));
  ranks[1].on_device = true;
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kCrossed);
  ranks[1].on_device = false;
  ranks[1].waits = true;
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kCrossed);
}

// Rank 2 sleeps before a call of tp for which rank 3 waits, and ranks 0 and 1 wait for both in a
// call of all.
std::vector<RankSnapshot> ChainOnDevices() {
  const auto rank = [](Rank number, int64_t of_all, bool inside, int64_t of_tp) {
    RankSnapshot snapshot = OnDevice(number, {Call(of_all, inside)});
    if (number >= 2) {
      snapshot.groups.push_back({"1", "tp", {2, 3}, {Call(of_tp, of_tp == 8)}, "nccl"});
    }
    snapshot.on_device = false;
    return snapshot;
  };
  return {rank(0, 4, true, 0), rank(1, 4, true, 0), rank(2, 3, false, 7), rank(3, 3, false, 8)};
}

TEST(AttributeHang, TakesRanksThatSleepForWaitingWhereNoneIsSeenToSpin) {
  std::vector<RankSnapshot> ranks = ChainOnDevices();
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2));
  // What rank 3 does is no waiting.
  ranks[3].busy = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2, 3));
  ranks[3].busy = false;
  ranks[3].state = 'T';
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2, 3));
  ranks[3].state = 'D';
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2, 3));
  ranks[3].state = 'S';
  ranks[3].holds_interpreter = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2, 3));
  ranks[3].holds_interpreter = false;
  // Others are seen to spin, and rank 3 is not.
  ranks[0].on_device = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2, 3));
}

TEST(AttributeHang, HoldsAStandstillOnDevicesForTheSameWhoeverSeemsToWait) {
  std::vector<RankSnapshot> ranks = ChainOnDevices();
  const std::string before = AttributeHang(ranks).wavefront;
  ranks[0].on_device = true;
  EXPECT_EQ(AttributeHang(ranks).wavefront, before);
  ranks[2].groups[1].latest = {Call(8, true)};
  EXPECT_NE(AttributeHang(ranks).wavefront, before);
  // Crossed groups, too.
  std::vector<RankSnapshot> crossed = {Snapshot(0, {{"1", "dp", {0, 1}, {Call(1, true)}, "nccl"}}),
                                       Snapshot(1, {{"2", "tp", {0, 1}, {Call(1, true)}, "nccl"}})};
  const HangVerdict verdict = AttributeHang(crossed);
  EXPECT_EQ(verdict.kind, HangKind::kCrossed);
  crossed[0].on_device = true;
  EXPECT_THAT(AttributeHang(crossed).culprits, ElementsAre(1));
  EXPECT_EQ(AttributeHang(crossed).wavefront, verdict.wavefront);
}

TEST(AttributeHang, ComparesOnlyTheFirstCallThatIsNotOver) {
  // Rank 2 has left out a call, so all of its later ones differ as well.
  std::vector<RankSnapshot> ranks = {OnDevice(0, {Call(4, true), Call(5, true, "broadcast")}),
                                     OnDevice(1, {Call(4, true), Call(5, true, "broadcast")}),
                                     OnDevice(2, {Call(4, true, "broadcast"), Call(5, true)})};
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kMismatch);
  EXPECT_EQ(verdict.collective.sequence, 4);
  EXPECT_THAT(verdict.culprits, ElementsAre(2));
  // The devices of two ranks are still in a call in which they agree.
  for (const size_t rank : {0, 1}) {
    ranks[rank].groups[0].latest.insert(ranks[rank].groups[0].latest.begin(), Call(3, true));
  }
  ranks[2].groups[0].latest.insert(ranks[2].groups[0].latest.begin(), Call(3, false));
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kDevice);
}

TEST(AttributeHang, NamesTheDeviceOnWhichACollectiveDoesNotEnd) {
  std::vector<RankSnapshot> ranks;
  for (Rank rank = 0; rank < 4; ++rank) {
    ranks.push_back(OnDevice(rank, {Call(22, false), Call(23, true)}));
  }
  ranks[2].groups[0].latest = {Call(22, true), Call(23, true)};
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kDevice);
  EXPECT_THAT(verdict.culprits, ElementsAre(2));
  EXPECT_EQ(DescribeStandstill(verdict, ranks),
            "All 4 ranks have called all_reduce number 22 of default_pg ([4] Float), and it has "
            "ended on 3 of their devices: look at the device and the links of the others\n"
            "  rank 2 (node0, local rank 2, pid 102) waits for its device");
  EXPECT_EQ(DescribeCulprit(verdict, ranks, 2, kAge),
            "hangs: its device has not ended all_reduce number 22 of default_pg for 75 s: it waits "
            "for its device");
  // A broadcast ends on its root before the others have come to it.
  for (RankSnapshot& rank : ranks) rank.groups[0].latest[0].op = "broadcast";
  EXPECT_THAT(AttributeHang(ranks).culprits, IsEmpty());
}

TEST(AttributeHang, BlamesNoDeviceWhereAllAreInTheCall) {
  const HangVerdict verdict =
      AttributeHang({OnDevice(0, {Call(2, true)}), OnDevice(1, {Call(2, true)})});
  EXPECT_EQ(verdict.kind, HangKind::kAllInside);
  EXPECT_THAT(verdict.culprits, IsEmpty());
}

TEST(AttributeHang, KeepsTheNumbersOfTwoBackendsOfOneGroupApart) {
  std::vector<RankSnapshot> ranks = {OnDevice(0, {Call(4, true)}), OnDevice(1, {Call(3, false)})};
  for (RankSnapshot& rank : ranks) {
    rank.groups.push_back({"0", "default_pg", {}, {Call(90, false)}});
  }
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(1));
}

// A snapshot with messages in the group of all ranks.
RankSnapshot WithMessages(Rank rank, std::vector<PeerCalls> peers, std::string backend = "") {
  RankSnapshot snapshot = Snapshot(rank, {{"0", "default_pg", {}, {}, std::move(backend)}});
  snapshot.groups[0].peers = std::move(peers);
  snapshot.groups[0].messages = 7;
  return snapshot;
}

constexpr bool kSends = true, kReceives = false;

TEST(AttributeHang, NamesWhoHasNotSentWhatAnotherReceives) {
  std::vector<RankSnapshot> ranks = {WithMessages(0, {{1, kReceives, 4, 1}}),
                                     WithMessages(1, {{0, kSends, 3, 0}})};
  ranks[1].place = "load (loader.py:88)";
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kBehind);
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_EQ(DescribeStandstill(verdict, ranks),
            "Rank 0 waits for other ranks, in send or recv;\n"
            "  rank 0: in recv from rank 1, which has called no send to it\n"
            "  rank 1 (node0, local rank 1, pid 101) does not: it stands in load (loader.py:88)");
  ranks[1].groups[0].messages = 8;
  EXPECT_NE(AttributeHang(ranks).wavefront, verdict.wavefront);
}

TEST(AttributeHang, NamesWhoDoesNotReceiveWhatAnotherSends) {
  const HangVerdict verdict =
      AttributeHang({WithMessages(0, {{1, kSends, 1, 1}}), Snapshot(1, {})});
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_EQ(verdict.calls.at(0).call, "send to rank 1, which has called no recv from it");
}

TEST(AttributeHang, FollowsAPipelineToItsEnd) {
  // Rank 0 receives from 1, which receives from 2, which does neither.
  const std::vector<RankSnapshot> ranks = {WithMessages(0, {{1, kReceives, 1, 1}}),
                                           WithMessages(1, {{2, kReceives, 1, 1}}),
                                           Snapshot(2, {})};
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2));
}

TEST(AttributeHang, SaysWhereTheOneIsWhoseMessageIsMissing) {
  // Rank 1 has sent to the wrong rank; rank 2 waits for a collective that rank 3 does not call.
  std::vector<RankSnapshot> ranks = {WithMessages(0, {{1, kReceives, 1, 1}}),
                                     WithMessages(1, {{2, kSends, 1, 1}}),
                                     Snapshot(2, {{"1", "tp", {2, 3}, {Call(9, true)}}}),
                                     Snapshot(3, {{"1", "tp", {2, 3}, {Call(8, false)}}})};
  HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(3));
  // Without the collective the three wait for each other.
  ranks.pop_back();
  ranks[2] = WithMessages(2, {{0, kSends, 1, 1}});
  verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kPeers);
  EXPECT_THAT(verdict.culprits, IsEmpty());
  EXPECT_EQ(DescribeStandstill(verdict, ranks),
            "Ranks 0-2 wait for other ranks, in send or recv, each for another one of them\n"
            "  rank 0: in recv from rank 1, which is in send to rank 2\n"
            "  rank 1: in send to rank 2, which is in send to rank 0\n"
            "  rank 2: in send to rank 0, which is in recv from rank 1\n"
            "  rank 0 (node0, local rank 0, pid 100) sleeps\n"
            "  rank 1 (node0, local rank 1, pid 101) sleeps\n"
            "  rank 2 (node0, local rank 2, pid 102) sleeps");
  EXPECT_THAT(RanksToFail(verdict, ranks), ElementsAre(0));
}

TEST(AttributeHang, BlamesNobodyForAMessageThatBothHaveCalled) {
  std::vector<RankSnapshot> ranks = {WithMessages(0, {{1, kReceives, 1, 1}}),
                                     WithMessages(1, {{0, kSends, 1, 1}}), Snapshot(2, {})};
  HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kPeers);
  EXPECT_THAT(verdict.waiting, ElementsAre(0, 1));
  EXPECT_EQ(verdict.calls.at(0).call, "recv from rank 1, which has called send to it");
  ranks[0].moved = 1;
  EXPECT_NE(AttributeHang(ranks).wavefront, verdict.wavefront);
  ranks[0].flows = true;
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
  // What was sent is not sent again: the receiver has to take it.
  ranks[0].flows = false;
  ranks[1].groups[0].peers = {{0, kSends, 1, 0}};
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kPeers);
  ranks[0].groups[0].peers = {{1, kReceives, 2, 1}};
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(1));
  // A recorder that has wrapped does not tell how many there were.
  ranks[1].groups[0].peers = {{0, kSends, -1, 0}};
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(1));
}

TEST(AttributeHang, CountsTheRanksOfAGroupAsTheGroupDoes) {
  GroupSnapshot group{"1", "pp", {3, 5}, {}, "nccl"};
  group.peers = {{1, kReceives, 1, 1}};
  std::vector<RankSnapshot> ranks = {Snapshot(3, {group}), Snapshot(5, {})};
  ranks[0].on_device = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_THAT(verdict.culprits, ElementsAre(5));
  EXPECT_EQ(verdict.calls.at(0).call, "recv from rank 5, which has called no send to it");
  EXPECT_THAT(DescribeStandstill(verdict, ranks),
              HasSubstr("The device of rank 3 waits for other ranks, in send or recv;"));
  ranks[0].groups[0].peers = {{2, kReceives, 1, 1}};  // The group has no such rank.
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
}

TEST(AttributeHang, KnowsNoRankThatTheGroupOfAllHasNot) {
  const std::vector<RankSnapshot> ranks = {WithMessages(0, {{9, kReceives, 1, 1}}),
                                           Snapshot(1, {})};
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
}

TEST(AttributeHang, JudgesPartsTogetherIfOneWaitsForAMessageThatWasNotRecorded) {
  std::vector<RankSnapshot> ranks = {
      Snapshot(0, {{"1", "a", {0, 1}, {Call(4, true)}}}), WithMessages(1, {{0, kReceives, 4, 0}}),
      Snapshot(2, {{"2", "b", {2, 3}, {Call(4, true)}}}), Snapshot(3, {})};
  EXPECT_EQ(AttributeHangs(ranks, true).size(), 2u);
  ranks[1].in_p2p = true;  // It may wait for rank 3. What was recorded is over.
  const std::vector<HangVerdict> verdicts = AttributeHangs(ranks, true);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_THAT(verdicts[0].culprits, ElementsAre(3));
}

TEST(DescribeStandstill, LeavesOutNoneOfSixPairsOfHosts) {
  std::vector<RankSnapshot> ranks = {Snapshot(0, {{"0", "default_pg", {}, {Call(4, true)}}}),
                                     Snapshot(1, {{"0", "default_pg", {}, {Call(4, true)}}})};
  for (int i = 0; i < 6; ++i) ranks[0].unheard.push_back("10.0.0." + std::to_string(i));
  const std::string text = DescribeStandstill(AttributeHang(ranks), ranks);
  EXPECT_THAT(text, HasSubstr("10.0.0.5 acknowledges nothing"));
  EXPECT_THAT(text, Not(HasSubstr("more")));
  ranks[0].unheard.push_back("10.0.0.6");
  EXPECT_THAT(DescribeStandstill(AttributeHang(ranks), ranks), HasSubstr("and 1 more"));
}

TEST(AttributeHang, ListsCallsOfEquallyManyRanksByName) {
  CollectiveCall gather = Call(4, true);
  gather.op = "all_gather";
  const HangVerdict verdict =
      AttributeHang({Snapshot(0, {{"0", "default_pg", {}, {Call(4, true)}}}),
                     Snapshot(1, {{"0", "default_pg", {}, {gather}}})});
  ASSERT_EQ(verdict.calls.size(), 2u);
  EXPECT_EQ(verdict.calls[0].call, "all_gather");
}

TEST(AttributeHang, NamesWhoWaitsForAMessageWhileMostAreInACollective) {
  std::vector<RankSnapshot> ranks;
  for (Rank rank = 0; rank < 4; ++rank) ranks.push_back(OnDevice(rank, {Call(4, rank != 2)}));
  ranks[2].groups[0].latest = {Call(3, false)};
  ranks[2].groups[0].peers = {{3, kReceives, 1, 1}};
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kBehind);
  EXPECT_THAT(verdict.culprits, ElementsAre(2));
  EXPECT_THAT(
      DescribeStandstill(verdict, ranks),
      HasSubstr("The devices of 3 of 4 ranks are in all_reduce number 4 of default_pg "
                "([4] Float);\n  rank 2: in recv from rank 3, which is in all_reduce number "
                "4 of default_pg\n  rank 2 (node0, local rank 2, pid 102) has not come to "
                "it: it waits for its device"));
  // As many are in the message as in the collective.
  ranks.resize(3);
  ranks[0].groups[0].latest = {Call(3, false)};
  ranks[0].groups[0].peers = {{1, kReceives, 1, 1}};
  ranks[2].groups[0].peers = {{1, kReceives, 1, 1}};
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kCrossed);
}

TEST(AttributeHang, ExcusesARankByAMessageOnlyIfItWaitsForItItself) {
  // Rank 1 has handed its device a recv from rank 0, and rank 0 waits for it in a collective.
  std::vector<RankSnapshot> ranks = {OnDevice(0, {Call(4, true)}), OnDevice(1, {Call(3, false)})};
  ranks[1].groups[0].peers = {{0, kReceives, 1, 1}};
  ranks[1].on_device = false;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(1));
  ranks[1].on_device = true;
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kCrossed);
  EXPECT_EQ(verdict.calls.size(), 2u);
}

// Ranks 0 and 1 form a group, and ranks 2 and 3 another one.
std::vector<RankSnapshot> TwoHalves() {
  return {Snapshot(0, {{"1", "one", {0, 1}, {Call(5, true)}}}),
          Snapshot(1, {{"1", "one", {0, 1}, {Call(4, false)}}}),
          Snapshot(2, {{"2", "two", {2, 3}, {Call(90, true)}}}),
          Snapshot(3, {{"2", "two", {2, 3}, {Call(89, false)}}})};
}

TEST(AttributeHangs, JudgesEachPartByItself) {
  std::vector<RankSnapshot> ranks = TwoHalves();
  const std::vector<HangVerdict> before = AttributeHangs(ranks, true);
  ASSERT_EQ(before.size(), 2u);
  EXPECT_THAT(before[0].culprits, ElementsAre(1));
  EXPECT_THAT(DescribeHang(before[0], ranks, kAge), HasSubstr("no rank has gone on for 75 s. "));
  EXPECT_THAT(DescribeHang(before[0], ranks, kAge, /*whole=*/false),
              HasSubstr("a part of the job has not gone on for 75 s. "));
  ranks[3].still = false;
  EXPECT_THAT(DescribeHang(before[0], ranks, kAge),
              HasSubstr("a part of the job has not gone on for 75 s. "));
  EXPECT_THAT(before[1].culprits, ElementsAre(3));
  ranks[2].groups[0].latest = {Call(91, true)};
  ranks[3].groups[0].latest = {Call(90, false)};
  const std::vector<HangVerdict> after = AttributeHangs(ranks, true);
  EXPECT_EQ(after[0].wavefront, before[0].wavefront);
  EXPECT_NE(after[1].wavefront, before[1].wavefront);
}

TEST(AttributeHangs, PutsThePartWithTheMostWaitingRanksFirst) {
  std::vector<RankSnapshot> ranks = TwoHalves();
  ranks.push_back(Snapshot(4, {{"2", "two", {2, 3, 4}, {Call(90, true)}}}));
  const std::vector<HangVerdict> verdicts = AttributeHangs(ranks, true);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_THAT(verdicts[0].waiting, ElementsAre(2, 4));
}

TEST(AttributeHang, TakesCulpritsForSlowOnlyIfAllOfThemMayWork) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(3, false)), InAll(3, Call(4, true))};
  EXPECT_FALSE(AttributeHang(ranks).busy);
  ranks[1].busy = true;
  EXPECT_FALSE(AttributeHang(ranks).busy);
  ranks[1].busy = false;
  ranks[2].busy = true;
  EXPECT_FALSE(AttributeHang(ranks).busy);
  ranks[1].busy = true;
  EXPECT_TRUE(AttributeHang(ranks).busy);
  ranks[1].busy = ranks[2].busy = false;
  ranks[1].in_p2p = ranks[2].in_p2p = true;  // Perhaps for one that works.
  EXPECT_TRUE(AttributeHang(ranks).busy);
  ranks[1].ended = true;
  EXPECT_FALSE(AttributeHang(ranks).busy);
  ranks[1].ended = false;
  ranks[1].died = true;
  EXPECT_FALSE(AttributeHang(ranks).busy);
}

TEST(AttributeHang, IsSilentIfAnyOfSeveralCulpritsIsDebugged) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(3, false))};
  for (const size_t debugged : {1u, 2u}) {
    ranks[debugged].traced = true;
    EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
    ranks[debugged].traced = false;
  }
  ranks[0].traced = true;  // It only waits.
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kBehind);
}

TEST(AttributeHang, IsSilentWhereAllThatLiveAreStopped) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true)), InAll(1, Call(3, false)),
                                     InAll(2, Call(3, false))};
  ranks[0].state = ranks[1].state = 'T';
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kBehind);
  ranks[2].ended = true;
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
  ranks[2].ended = false;
  ranks[2].died = true;
  EXPECT_EQ(AttributeHang(ranks).kind, HangKind::kNone);
}

TEST(AttributeHang, TellsOfTheFirstOfTwoGroupsThatWaitForOneRankAlike) {
  const std::vector<RankSnapshot> ranks = {Snapshot(0, {{"1", "one", {0, 2}, {Call(5, true)}}}),
                                           Snapshot(1, {{"2", "two", {1, 2}, {Call(5, true)}}}),
                                           Snapshot(2, {{"1", "one", {0, 2}, {Call(4, false)}},
                                                        {"2", "two", {1, 2}, {Call(4, false)}}})};
  EXPECT_EQ(AttributeHang(ranks).group, "one");
}

TEST(AttributeHang, BlamesWhoIsElsewhereUnlessTheyAreTheMost) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(3, true)), InAll(1, Call(3, true)),
                                     InAll(2, Call(2, false)), InAll(3, Call(2, false))};
  ranks[2].in_store = ranks[3].in_store = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(2, 3));
  ranks.push_back(InAll(4, Call(2, false)));
  ranks[4].in_store = true;
  EXPECT_THAT(AttributeHang(ranks).culprits, ElementsAre(0, 1));
}

TEST(AttributeHang, CountsTheCulpritsThatItDoesNotDescribe) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(4, true))};
  for (Rank rank = 1; rank <= 6; ++rank) ranks.push_back(InAll(rank, Call(3, false)));
  const std::string six = DescribeHang(AttributeHang(ranks), ranks, kAge);
  EXPECT_THAT(six, HasSubstr("rank 6 ("));
  EXPECT_THAT(six, testing::Not(HasSubstr("more")));
  ranks.push_back(InAll(7, Call(3, false)));
  EXPECT_THAT(DescribeHang(AttributeHang(ranks), ranks, kAge), HasSubstr("\n  and 1 more"));
}

TEST(AttributeHang, NamesTheRanksThatAreLeftWhenTheOthersHaveExited) {
  std::vector<RankSnapshot> ranks = {InAll(0, Call(8, false)), InAll(1, Call(8, false)),
                                     InAll(2, Call(8, false))};
  ranks[0].ended = ranks[1].ended = true;
  ranks[2].place = "clean_up (train.py:30)";
  const HangVerdict verdict = AttributeHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kLeft);
  EXPECT_THAT(verdict.culprits, ElementsAre(2));
  EXPECT_EQ(DescribeHang(verdict, ranks, kAge),
            "no rank has gone on for 75 s. Ranks 0,1 have exited with 0;\n  rank 2 (node0, local "
            "rank 2, pid 102) has not: it stands in clean_up (train.py:30)");
  EXPECT_THAT(RanksToFail(verdict, ranks), ElementsAre(2));
  EXPECT_EQ(DescribeCulprit(verdict, ranks, 2, kAge),
            "hangs: the other ranks have exited with 0, and it has not for 75 s: it stands in "
            "clean_up (train.py:30)");
  EXPECT_EQ(HangLimit({std::chrono::seconds(8)}, verdict, {}), std::chrono::seconds(8));
  EXPECT_EQ(HangLimit({}, verdict, {}), std::chrono::minutes(5));
  ranks[2].moved = 7;  // It writes now and then.
  EXPECT_NE(AttributeHang(ranks).wavefront, verdict.wavefront);
}

TEST(AttributeHang, LeavesAloneARankThatWorksAfterTheOthersHaveExited) {
  const auto after = [](void (*change)(RankSnapshot&, RankSnapshot&)) {
    std::vector<RankSnapshot> ranks = {InAll(0, Call(8, false)), InAll(1, Call(8, false))};
    ranks[0].ended = true;
    change(ranks[0], ranks[1]);
    return AttributeHang(ranks).kind;
  };
  EXPECT_EQ(after([](auto&, auto&) {}), HangKind::kLeft);
  EXPECT_EQ(after([](auto&, auto& left) { left.busy = true; }), HangKind::kNone);
  EXPECT_EQ(after([](auto&, auto& left) { left.flows = true; }), HangKind::kNone);
  EXPECT_EQ(after([](auto&, auto& left) { left.still = false; }), HangKind::kNone);
  EXPECT_EQ(after([](auto&, auto& left) { left.state = 'T'; }), HangKind::kNone);
  EXPECT_EQ(after([](auto& first, auto&) { first.ended = false; }), HangKind::kNone);
  EXPECT_EQ(after([](auto&, auto& left) { left.ended = true; }), HangKind::kNone);
  EXPECT_EQ(after([](auto&, auto& left) { left.died = true; }), HangKind::kNone);
}

TEST(AttributeHangs, KeepsTogetherWhatAWaitOfUnknownEndMayJoin) {
  std::vector<RankSnapshot> ranks = TwoHalves();
  ranks[3].in_p2p = true;  // Perhaps for rank 1.
  const std::vector<HangVerdict> verdicts = AttributeHangs(ranks, true);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_THAT(verdicts[0].culprits, ElementsAre(1));
}

TEST(AttributeHangs, BlamesNobodyWhereARankOfWhichNothingIsKnownIsAwaited) {
  std::vector<RankSnapshot> ranks = TwoHalves();
  ranks.erase(ranks.begin() + 3);
  std::vector<HangVerdict> verdicts = AttributeHangs(ranks, false);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_THAT(verdicts[0].culprits, ElementsAre(1));
  ranks[2] = Snapshot(2, {{"3", "", {}, {Call(90, true)}}});  // Who is in the group is not known.
  EXPECT_EQ(AttributeHangs(ranks, false).size(), 1u);
  ranks[2] = WithMessages(2, {{3, kReceives, 1, 1}});
  ranks[2].groups[0].members = {0, 1, 2, 3};
  EXPECT_EQ(AttributeHangs(ranks, false).size(), 1u);
  ranks[2].in_store = true;
  ranks = {ranks[2]};
  EXPECT_THAT(AttributeHangs(ranks, false), IsEmpty());
}

TEST(AttributeHangs, TakesARankWhoseRecordCannotBeReadForOneThatGoesOn) {
  std::vector<RankSnapshot> ranks = TwoHalves();
  ranks[3].hidden = true;
  const std::vector<HangVerdict> verdicts = AttributeHangs(ranks, true);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_THAT(verdicts[0].culprits, ElementsAre(1));
}

}  // namespace
}  // namespace hlaunch
