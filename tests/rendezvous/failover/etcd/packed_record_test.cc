// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/etcd/packed_record.h"

#include <cstdio>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/failover/etcd/etcd_keeper.h"
#include "rendezvous/rpc/journal_format.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

// Nodes with as little in common as possible: their ids are those of hosts without a scheduler.
JobRecord LargeJob(int nodes) {
  std::mt19937_64 random(1);
  JobRecord record;
  record.job_id = "a job with a name of some length";
  record.state = JobState::kRunning;
  record.round = 1;
  record.policy = Policy(nodes, nodes);
  record.round_nodes = nodes;
  record.world_size = 8 * nodes;
  record.comm_secret = std::string(64, 'f');
  for (int i = 0; i < nodes; ++i) {
    MemberRecord member;
    member.info = Node(i, nodes, nodes);
    member.info.job_id = record.job_id;
    member.info.node_id =
        absl::StrFormat("%016x%016x-%d-0", random(), random(), 4026531840 + random() % 1000);
    member.info.incarnation = random();
    member.info.host = absl::StrFormat("cluster-a-node-%05d.example.org", i);
    member.info.pid = static_cast<int>(random() % 4'000'000);
    member.info.started_ms = static_cast<int64_t>(random() % 10'000'000'000);
    member.info.nproc = 8;
    member.info.address = absl::StrCat("10.", i / 65536, ".", i / 256 % 256, ".", i % 256);
    member.info.route_address = "10.200.0.1";
    member.told = 1;
    member.node_rank = i;
    member.first_rank = 8 * i;
    record.held_ranks.emplace(member.info.node_id, i);
    record.members.push_back(std::move(member));
  }
  return record;
}

TEST(PackedRecord, IsTheSameOnceUnpacked) {
  const JobRecord record = LargeJob(100);
  const auto unpacked = UnpackRecord(PackRecord(record));
  ASSERT_TRUE(unpacked.ok()) << unpacked.status();
  EXPECT_EQ(EncodeRecord(*unpacked), EncodeRecord(record));
}

TEST(PackedRecord, KnowsWhoHoldsWhichRankToo) {
  JobRecord record = LargeJob(4);
  record.held_ranks["one that is gone"] = 4;
  EXPECT_EQ(UnpackRecord(PackRecord(record))->held_ranks, record.held_ranks);
  record.held_ranks.erase(record.members[1].info.node_id);
  EXPECT_EQ(UnpackRecord(PackRecord(record))->held_ranks, record.held_ranks);
  record.held_ranks[record.members[1].info.node_id] = 3;
  EXPECT_EQ(UnpackRecord(PackRecord(record))->held_ranks, record.held_ranks);
}

// etcd refuses requests larger than 1.5 MiB; a keeper refuses records larger than 1.4 MiB.
TEST(PackedRecord, OfTheLargestJobFitsIntoARequest) {
  const JobRecord record = LargeJob(16384);
  const size_t plain = EncodeRecord(record).size();
  const size_t packed = PackRecord(record).size();
  std::printf("16384 nodes: %zu bytes, packed %zu\n", plain, packed);
  EXPECT_LT(packed, size_t{1400} << 10);
}

TEST(PackedRecord, NoticesDamage) {
  const std::string good = PackRecord(LargeJob(3));
  EXPECT_TRUE(absl::IsDataLoss(UnpackRecord("").status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackRecord("hlaunch-packed 1\nabc").status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackRecord("hlaunch-packed 1 99999999999\nabc").status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackRecord(good.substr(0, good.size() - 1)).status()));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(UnpackRecord(bad).ok()) << i;
  }
}

TEST(PackedRecord, NamesAnotherFormat) {
  const auto unpacked = UnpackRecord("hlaunch-packed 7 3 or whatever\nabc");
  EXPECT_TRUE(absl::IsFailedPrecondition(unpacked.status()));
  EXPECT_THAT(std::string(unpacked.status().message()), testing::HasSubstr("format 7"));
}

}  // namespace
}  // namespace hlaunch
