// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/snapshot_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/watch/hang/told_hang.h"
#include "agent/watch/hang/user_place.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

RankSnapshot Waiting() {
  RankSnapshot rank;
  rank.rank = 7;
  rank.local_rank = 3;
  rank.host = "node1";
  rank.pid = 4242;
  rank.recorded = rank.busy = true;
  rank.answers = false;
  rank.state = 'D';
  rank.kernel = "nfs_wait";
  rank.place = "load (loader.py:88)";
  rank.groups = {{"0",
                  "default_pg",
                  {0, 1, 2, 7},
                  {{4, "all_reduce", "[4] Float", false}, {5, "all_reduce", "[4] Float", true}}},
                 {"1", "dp", {0, 7}, {{1, "broadcast", "", false}, {2, "broadcast", "", false}}}};
  return rank;
}

TEST(SnapshotText, SaysWhatDevicesDo) {
  RankSnapshot rank = Waiting();
  rank.waits = rank.on_device = true;
  rank.groups[1].backend = "nccl";
  rank.addresses = {"10.0.0.7"};
  rank.unheard = {"10.0.0.8", "fd77::8"};
  const RankSnapshot told = ParseSnapshots(SnapshotText({rank}))->front();
  EXPECT_TRUE(told.waits && told.on_device);
  EXPECT_THAT(told.addresses, ElementsAre("10.0.0.7"));
  EXPECT_THAT(told.unheard, ElementsAre("10.0.0.8", "fd77::8"));
  EXPECT_EQ(told.groups[0].backend, "");
  EXPECT_EQ(told.groups[1].backend, "nccl");
  EXPECT_FALSE(ParseSnapshots(SnapshotText({Waiting()}))->front().on_device);
}

TEST(SnapshotText, SaysWhatMpiProgramsDo) {
  RankSnapshot rank;
  rank.mpi = rank.spins = rank.in_one_call = true;
  rank.samples = 2;
  rank.mpi_call = "MPI_Barrier";
  const RankSnapshot told = ParseSnapshots(SnapshotText({rank}))->front();
  EXPECT_TRUE(told.mpi && told.spins && told.in_one_call);
  EXPECT_EQ(told.samples, 2);
  EXPECT_EQ(told.mpi_call, "MPI_Barrier");
  const RankSnapshot other = ParseSnapshots(SnapshotText({Waiting()}))->front();
  EXPECT_FALSE(other.mpi || other.spins || other.in_one_call);
  EXPECT_EQ(other.samples, 0);
}

TEST(SnapshotText, SaysAllOfAGroupInWhichTheRankWaitsAndTheLastOfOthers) {
  const auto snapshots = ParseSnapshots(SnapshotText({Waiting()}));
  ASSERT_TRUE(snapshots);
  ASSERT_EQ(snapshots->size(), 1u);
  const RankSnapshot& rank = snapshots->front();
  EXPECT_EQ(rank.rank, 7);
  EXPECT_EQ(rank.local_rank, 3);
  EXPECT_EQ(rank.host, "node1");
  EXPECT_EQ(rank.pid, 4242);
  EXPECT_EQ(rank.state, 'D');
  EXPECT_EQ(rank.kernel, "nfs_wait");
  EXPECT_EQ(rank.place, "load (loader.py:88)");
  EXPECT_TRUE(rank.recorded && rank.busy);
  EXPECT_FALSE(rank.answers || rank.ended || rank.traced || rank.in_store || rank.in_p2p ||
               rank.holds_interpreter);
  ASSERT_EQ(rank.groups.size(), 2u);
  EXPECT_THAT(rank.groups[0].members, ElementsAre(0, 1, 2, 7));
  ASSERT_EQ(rank.groups[0].latest.size(), 2u);
  EXPECT_EQ(rank.groups[0].latest[1].sequence, 5);
  EXPECT_EQ(rank.groups[0].latest[1].sizes, "[4] Float");
  EXPECT_TRUE(rank.groups[0].latest[1].inside);
  EXPECT_THAT(rank.groups[1].members, IsEmpty());
  ASSERT_EQ(rank.groups[1].latest.size(), 1u);
  EXPECT_EQ(rank.groups[1].latest[0].sequence, 2);
}

TEST(SnapshotText, SaysForWhichMessagesARankWaits) {
  RankSnapshot rank = Waiting();
  rank.groups = {{"1", "pp", {3, 7}, {}, "nccl", {{0, true, 5, 1}, {0, false, -1, 0}}, 9}};
  rank.died = rank.flows = rank.child_works = rank.hidden = true;
  const RankSnapshot told = ParseSnapshots(SnapshotText({rank}))->front();
  EXPECT_TRUE(told.died && told.flows && told.child_works && told.hidden);
  ASSERT_EQ(told.groups.size(), 1u);
  const GroupSnapshot& group = told.groups[0];
  EXPECT_THAT(group.members, ElementsAre(3, 7));
  EXPECT_EQ(group.messages, 9);
  ASSERT_EQ(group.peers.size(), 2u);
  EXPECT_EQ(group.peers[0].peer, 0);
  EXPECT_TRUE(group.peers[0].sends);
  EXPECT_EQ(group.peers[0].calls, 5);
  EXPECT_EQ(group.peers[0].unfinished, 1);
  EXPECT_EQ(group.peers[1].calls, -1);
}

TEST(SnapshotText, IsSmall) { EXPECT_LT(SnapshotText({Waiting()}).size(), 400u); }

// A rank of which only that is known may have called anything, so it is blamed for nothing.
TEST(SnapshotText, HidesTheRanksWithTheMostToTellIfThereIsNotEnoughRoom) {
  RankSnapshot large = Waiting();
  large.rank = 8;
  large.groups.resize(100, large.groups[0]);
  const std::vector<RankSnapshot> ranks = {Waiting(), large, Waiting()};
  const std::string whole = SnapshotText(ranks);
  EXPECT_EQ(SnapshotText(ranks, whole.size()), whole);
  const std::string text = SnapshotText(ranks, 2000);
  EXPECT_LE(text.size(), 2000u);
  const auto told = ParseSnapshots(text);
  ASSERT_TRUE(told);
  ASSERT_EQ(told->size(), 3u);
  EXPECT_FALSE((*told)[0].hidden || (*told)[2].hidden);
  EXPECT_EQ((*told)[0].groups.size(), 2u);
  EXPECT_TRUE((*told)[1].hidden);
  EXPECT_THAT((*told)[1].groups, IsEmpty());
  EXPECT_EQ((*told)[1].place, "load (loader.py:88)");
}

TEST(ParseSnapshots, IsUnsetForAnythingElse) {
  for (const char* text : {"", "-", "{}", "[", "1"}) EXPECT_FALSE(ParseSnapshots(text)) << text;
}

TEST(ToldHang, ComesBackAsItWasTold) {
  const auto hang = ParseToldHang(ToText({"two\nlines", {{3, "hangs: here"}}}));
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->text, "two\nlines");
  EXPECT_THAT(hang->reasons, ElementsAre(Pair(3, "hangs: here")));
  EXPECT_FALSE(ParseToldHang(""));
  EXPECT_FALSE(ParseToldHang("{}"));
  EXPECT_EQ(ParseToldHang(ToText({"\x1b[2J", {}}))->text, "?[2J");
}

TEST(ToldHang, NamesFewerRanksIfThereIsNotEnoughRoom) {
  ToldHang hang{std::string(100, 'x'), {}};
  for (Rank rank = 0; rank < 1000; ++rank) hang.reasons[rank] = "hangs: it has not come to it";
  const std::string text = ToText(hang, 8 << 10);
  EXPECT_LE(text.size(), size_t{8 << 10});
  const auto told = ParseToldHang(text);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->text, hang.text);
  EXPECT_GE(told->reasons.size(), 100u);
  EXPECT_EQ(told->reasons.count(0), 1u);
  EXPECT_LE(ToText(hang, 80).size(), 80u);
}

TEST(UserPlace, IsNoneInHlaunchsOwnPackageWhereverThatLies) {
  EXPECT_EQ(UserPlace({{"call (/x/build/python/hlaunch/process_group.py:229)",
                        "all_reduce (/x/site-packages/torch/distributed/distributed_c10d.py:9)",
                        "step (/home/me/train.py:31)"},
                       "",
                       ""}),
            "step (train.py:31)");
}

TEST(UserPlace, IsTheInnermostFrameOfTheUsersOwn) {
  EXPECT_EQ(UserPlace({{"all_reduce (/x/site-packages/torch/distributed/distributed_c10d.py:9)",
                        "step (/home/me/train.py:12)", "<module> (/home/me/train.py:40)"},
                       "",
                       ""}),
            "step (train.py:12)");
  // The interpreter's own C code, and what it calls, helps a person less.
  EXPECT_EQ(UserPlace({{"sre_ucs1_match (libpython3.11.so.1.0)",
                        "search (/usr/lib/python3.11/re.py:9)", "regex (/home/me/t.py:79)"},
                       "",
                       ""}),
            "regex (t.py:79)");
  EXPECT_EQ(UserPlace({{"wait (/usr/lib/python3.11/threading.py:9)"}, "", ""}),
            "wait (threading.py:9)");
  EXPECT_EQ(
      UserPlace({{"__libc_open64 (file=0x1, oflag=0) at ../sysdeps/unix/open64.c:41"}, "", ""}),
      "__libc_open64 (open64.c:41)");
  EXPECT_EQ(UserPlace({{"sleep () from /lib/x86_64-linux-gnu/libc.so.6"}, "", ""}),
            "sleep (libc.so.6)");
  EXPECT_EQ(UserPlace({}), "");
}

}  // namespace
}  // namespace hlaunch
