// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/mpi_hang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/round/hang/describe_hang.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kStandstill = seconds(75);

// Its stack was read so often.
RankSnapshot Spins(Rank number, const std::string& call = "", int samples = 0) {
  RankSnapshot rank;
  rank.rank = rank.local_rank = number;
  rank.host = "node0";
  rank.pid = 100 + number;
  rank.mpi = rank.spins = rank.busy = true;
  rank.state = 'R';
  rank.samples = samples;
  rank.mpi_call = call;
  rank.in_one_call = samples > 0 && !call.empty();
  rank.place = samples > 0 ? "step (heat.c:40)" : "";
  return rank;
}

RankSnapshot Idle(Rank number, int samples = 0) {
  RankSnapshot rank = Spins(number, "", samples);
  rank.spins = rank.busy = false;
  rank.state = 'S';
  if (samples > 0) rank.place = "load (heat.c:12)";
  return rank;
}

using Ranks = std::vector<RankSnapshot>;

HangKind KindOf(const Ranks& ranks) { return AttributeMpiHang(ranks).kind; }

TEST(AttributeMpiHang, NamesARankThatDoesNothingWhileTheOthersAreInACollective) {
  const Ranks ranks = {Spins(0, "MPI_Barrier", 2), Idle(1, 1), Spins(2, "MPI_Barrier", 2)};
  const HangVerdict verdict = AttributeMpiHang(ranks);
  EXPECT_EQ(verdict.kind, HangKind::kMpi);
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
  EXPECT_THAT(verdict.waiting, ElementsAre(0, 2));
  EXPECT_EQ(verdict.samples_needed, 0);
  EXPECT_FALSE(verdict.busy);
  EXPECT_EQ(DescribeHang(verdict, ranks, kStandstill),
            "no rank has gone on for 75 s. 2 of 3 ranks wait in MPI;\n"
            "  ranks 0,2: in MPI_Barrier, called in step (heat.c:40)\n"
            "  rank 1 (node0, local rank 1, pid 101) holds them up: it stands in load (heat.c:12)");
  EXPECT_EQ(DescribeCulprit(verdict, ranks, 1, kStandstill),
            "hangs: others wait for it in MPI for 75 s: it stands in load (heat.c:12)");
}

TEST(AttributeMpiHang, OnlySuspectsUntilThereAreEnoughSamples) {
  const auto needed = [](const Ranks& ranks) {
    const HangVerdict verdict = AttributeMpiHang(ranks);
    EXPECT_EQ(verdict.kind, HangKind::kMpi);
    return std::make_pair(verdict.samples, verdict.samples_needed);
  };
  EXPECT_EQ(needed({Spins(0), Idle(1)}), std::make_pair(0, 4));
  EXPECT_EQ(needed({Spins(0, "MPI_Barrier", 1), Idle(1, 1)}), std::make_pair(1, 2));
  EXPECT_EQ(needed({Spins(0, "MPI_Barrier", 2), Idle(1)}), std::make_pair(0, 1));
  EXPECT_EQ(needed({Spins(0, "MPI_Barrier", 2), Spins(1, "", 1)}), std::make_pair(1, 2));
  Ranks by_name = {Spins(0, "MPI_Barrier", 3), Idle(1, 1)};
  by_name[0].in_one_call = false;
  EXPECT_EQ(needed(by_name), std::make_pair(3, 4));
  by_name[0].samples = 4;
  EXPECT_EQ(needed(by_name), std::make_pair(0, 0));
  // The one of which the least is known decides.
  EXPECT_EQ(needed({Spins(0, "MPI_Barrier", 1), Spins(1), Idle(2, 1)}), std::make_pair(0, 4));
  EXPECT_EQ(needed({Spins(0), Spins(1, "MPI_Barrier", 1), Idle(2, 1)}), std::make_pair(0, 4));
}

TEST(AttributeMpiHang, HasTheSameWavefrontWhileTheSameRanksDoNothing) {
  const std::string before = AttributeMpiHang({Spins(0), Idle(1), Spins(2)}).wavefront;
  EXPECT_EQ(
      AttributeMpiHang({Spins(0, "MPI_Bcast", 2), Idle(1, 1), Spins(2, "MPI_Bcast", 2)}).wavefront,
      before);
  EXPECT_NE(AttributeMpiHang({Spins(0), Idle(1), Idle(2)}).wavefront, before);
}

TEST(AttributeMpiHang, NamesARankWhoseStackNoToolCanRead) {
  for (const char state : {'T', 'D'}) {
    RankSnapshot held = Idle(1);
    held.state = state;
    const HangVerdict verdict = AttributeMpiHang({Spins(0, "MPI_Allreduce", 2), held});
    EXPECT_THAT(verdict.culprits, ElementsAre(1)) << state;
    EXPECT_EQ(verdict.samples_needed, 0) << state;
  }
}

TEST(AttributeMpiHang, GivesTheTimeOfWorkToCulpritsThatComputeAndToThoseWhoOweAMessage) {
  EXPECT_TRUE(AttributeMpiHang({Spins(0, "MPI_Recv", 2), Idle(1, 1)}).busy);
  EXPECT_TRUE(AttributeMpiHang({Spins(0, "MPI_Barrier", 2), Spins(1, "", 2)}).busy);
  EXPECT_TRUE(AttributeMpiHang({Spins(0), Spins(1)}).busy);
  EXPECT_FALSE(AttributeMpiHang({Spins(0), Idle(1)}).busy);
}

TEST(AttributeMpiHang, NamesARankThatComputesOnlyIfTheCallsAreSeenToLast) {
  Ranks ranks = {Spins(0, "MPI_Barrier", 4), Spins(1, "", 4)};
  EXPECT_THAT(AttributeMpiHang(ranks).culprits, ElementsAre(1));
  ranks[0].in_one_call = false;  // It may call the same again and again, as a healthy one does.
  EXPECT_EQ(KindOf(ranks), HangKind::kNone);
  // The same beside one that does nothing: that one need not take part.
  ranks.push_back(Idle(2, 1));
  EXPECT_EQ(KindOf(ranks), HangKind::kNone);
}

TEST(AttributeMpiHang, BlamesNobodyIfAllWaitInOneCallEach) {
  Ranks ranks = {Spins(0, "MPI_Recv", 4), Spins(1, "MPI_Recv", 4), Spins(2, "MPI_Barrier", 4)};
  const HangVerdict verdict = AttributeMpiHang(ranks);
  EXPECT_THAT(verdict.culprits, IsEmpty());
  EXPECT_EQ(DescribeHang(verdict, ranks, kStandstill),
            "no rank has gone on for 75 s. 3 of 3 ranks wait in MPI, and no call ends:\n"
            "  rank 2: in MPI_Barrier, called in step (heat.c:40)\n"
            "  ranks 0,1: in MPI_Recv, called in step (heat.c:40)");
  EXPECT_THAT(RanksToFail(verdict, ranks), ElementsAre(2));
  EXPECT_EQ(DescribeCulprit(verdict, ranks, 2, kStandstill),
            "hangs: it waits in MPI, like all others for 75 s: it waits in MPI_Barrier, called in "
            "step (heat.c:40)");
  ranks[1].in_one_call = false;
  EXPECT_EQ(KindOf(ranks), HangKind::kNone);
}

TEST(AttributeMpiHang, CountsARankThatSleepsInMpiAmongThoseThatWait) {
  Ranks ranks = {Spins(0, "MPI_Barrier", 2), Idle(1, 1), Idle(2, 1)};
  ranks[2].mpi_call = "MPI_Barrier";
  const HangVerdict verdict = AttributeMpiHang(ranks);
  EXPECT_THAT(verdict.waiting, ElementsAre(0, 2));
  EXPECT_THAT(verdict.culprits, ElementsAre(1));
}

TEST(AttributeMpiHang, FindsNothingIfARankWorksOrIsNoMpiProgram) {
  const Ranks hangs = {Spins(0, "MPI_Barrier", 2), Idle(1, 1), Spins(2, "MPI_Barrier", 2)};
  ASSERT_EQ(KindOf(hangs), HangKind::kMpi);
  const auto with = [&](auto change) {
    Ranks ranks = hangs;
    change(ranks[1]);
    return KindOf(ranks);
  };
  EXPECT_EQ(with([](RankSnapshot& rank) { rank.busy = true; }), HangKind::kNone);
  EXPECT_EQ(with([](RankSnapshot& rank) { rank.child_works = true; }), HangKind::kNone);
  EXPECT_EQ(with([](RankSnapshot& rank) { rank.state = 'R'; }), HangKind::kNone);
  EXPECT_EQ(with([](RankSnapshot& rank) { rank.state = 'Z'; }), HangKind::kNone);
  EXPECT_EQ(with([](RankSnapshot& rank) { rank.mpi = false; }), HangKind::kNone);
  EXPECT_EQ(with([](RankSnapshot& rank) { rank.died = true; }), HangKind::kNone);
  EXPECT_EQ(with([](RankSnapshot& rank) { rank.traced = true; }), HangKind::kNone);
}

TEST(AttributeMpiHang, FindsNothingIfNoneOrAllOrASingleOneCouldWait) {
  EXPECT_EQ(KindOf({Idle(0, 1), Idle(1, 1)}), HangKind::kNone);
  EXPECT_EQ(KindOf({Spins(0, "", 2), Spins(1, "", 2)}), HangKind::kNone);
  EXPECT_EQ(KindOf({Spins(0, "", 2), Idle(1, 1)}), HangKind::kNone);
  EXPECT_EQ(KindOf({Spins(0, "MPI_Recv", 2)}), HangKind::kNone);
  RankSnapshot ended = Idle(1, 1);
  ended.ended = true;
  EXPECT_EQ(KindOf({Spins(0, "MPI_Recv", 2), ended}), HangKind::kNone);
}

TEST(AttributeMpiHang, RestsOnSixteenStacksOfEachHost) {
  Ranks ranks;
  for (Rank rank = 0; rank < 20; ++rank) {
    ranks.push_back(Spins(rank, rank < 15 ? "MPI_Barrier" : "", rank < 15 ? 2 : 0));
  }
  ranks.push_back(Idle(20, 1));  // One that does nothing is among the sixteen.
  const HangVerdict verdict = AttributeMpiHang(ranks);
  EXPECT_EQ(verdict.samples_needed, 0);
  EXPECT_EQ(verdict.waiting.size(), 15u);
  EXPECT_EQ(verdict.group_size, 21u);
  EXPECT_THAT(verdict.culprits, ElementsAre(20));
  ranks[15].host = "node1";
  EXPECT_EQ(AttributeMpiHang(ranks).samples_needed, 4);
}

TEST(IsMpiCollective, KnowsTheCallsOfAllLanguages) {
  for (const char* call :
       {"MPI_Barrier", "PMPI_Allreduce", "mpi_bcast_", "MPI_Comm_split", "MPI_Ialltoallv"}) {
    EXPECT_EQ(IsMpiCollective(call), call[4] != 'I') << call;
  }
  for (const char* call : {"MPI_Recv", "MPI_Wait", "MPI_Send", "mpi_sendrecv_", "MPI_Probe", ""}) {
    EXPECT_FALSE(IsMpiCollective(call)) << call;
  }
}

}  // namespace
}  // namespace hlaunch
