// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/witnesses/job_witness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/mutex.h"
#include "rendezvous/grpc/rendezvous_server.h"
#include "rendezvous/listening/listen.h"
#include "rendezvous/round/lease.h"
#include "rendezvous/round/limits.h"
#include "rendezvous/witness_wire/witness_convert.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The first host knows the policy from its command line, the others from what they are told.
TEST(WitnessRuleOf, IsTheSameForTheFirstHostAndForThoseThatItTells) {
  JobPolicy own;
  own.min_nodes = own.max_nodes = 256;
  own.lease = {milliseconds(333), seconds(3), seconds(5)};
  JobPolicy told = own;
  told.lease = LeaseForNodes(own.lease, own.max_nodes);
  ASSERT_GT(told.lease.lease, own.lease.lease);
  EXPECT_EQ(WitnessRuleOf(own).lease, WitnessRuleOf(told).lease);
  EXPECT_EQ(WitnessRuleOf(own).lease, told.lease.lease);
}

JobRecord LargeJob(int nodes, size_t name_bytes) {
  std::mt19937_64 random(1);
  const auto name = [&](int i) {
    std::string text = std::to_string(i);
    while (text.size() < name_bytes) absl::StrAppend(&text, absl::Hex(random(), absl::kZeroPad16));
    return text.substr(0, name_bytes);
  };
  JobRecord record;
  record.job_id = "large";
  record.state = JobState::kRunning;
  record.round = 1;
  record.policy.min_nodes = record.policy.max_nodes = record.round_nodes = nodes;
  for (int i = 0; i < nodes; ++i) {
    MemberRecord member;
    member.info.job_id = record.job_id;
    member.info.node_id = name(i);
    member.info.host = name(i);
    member.info.incarnation = random();
    member.info.pid = static_cast<int>(random() % 1'000'000) + 1;
    member.info.nproc = 8;
    member.info.address = absl::StrCat("10.", i / 65536, ".", i / 256 % 256, ".", i % 256);
    member.told = 1;
    member.node_rank = i;
    member.first_rank = 8 * i;
    record.held_ranks.emplace(member.info.node_id, i);
    record.members.push_back(std::move(member));
  }
  return record;
}

TEST(PackForWitnesses, TheLargestJobFitsWhateverItsNames) {
  for (const int nodes : {256, 1000, 16384}) {
    const size_t usual = PackForWitnesses(LargeJob(nodes, 24)).size();
    const size_t most = PackForWitnesses(LargeJob(nodes, kMaxNameBytes)).size();
    std::printf("%d nodes: packed %zu, with the longest names %zu\n", nodes, usual, most);
    EXPECT_LE(most, kMaxWitnessRecordBytes) << nodes;
  }
  JobPolicy policy;
  policy.on_host_loss = HostLoss::kWait;
  policy.max_nodes = 16384;
  EXPECT_TRUE(HasWitnesses(policy));
}

// The leader of a group, without a job: it says what it is told to.
class Leader final : public Jobs, public WitnessPost {
 public:
  absl::Status CheckLeads() const override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo&, const NodeUpdate&) override {
    return absl::UnavailableError("it has no job");
  }
  std::shared_ptr<JobRendezvous> Find(absl::string_view) override { return nullptr; }
  std::optional<JobStatus> Status(absl::string_view) override { return std::nullopt; }
  std::vector<JobStatus> List() override { return {}; }
  absl::Status Hear(absl::string_view, WitnessLetter letter) override {
    MutexLock lock(&mu_);
    held_ = std::max(held_, letter.message.ballot);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Record(absl::string_view, Incarnation,
                                     const Ballot& ballot) override {
    if (ballot != entry_.ballot) return absl::NotFoundError("another one");
    return entry_.record;
  }
  void ProvenDead(absl::string_view, Incarnation) override {}
  WitnessMembers Places() const override { return {}; }

  // Returns the ballot that the other witness says it holds.
  Ballot held() const {
    MutexLock lock(&mu_);
    return held_;
  }

  WitnessEntry entry_;

 private:
  mutable Mutex mu_;
  Ballot held_ ABSL_GUARDED_BY(mu_);
};

TEST(JobWitness, GetsARecordThatNoMessageCarries) {
  ListeningSocket here = Listen("127.0.0.1", 0).value();
  ListeningSocket there = Listen("127.0.0.1", 0).value();
  const WitnessMember leading{1, "node0", HostPort("127.0.0.1", here.port)};
  JobWitness::Options options;
  options.job_id = "large";
  options.policy.on_host_loss = HostLoss::kWait;
  options.policy.max_nodes = 4000;
  options.self = {2, "node1", HostPort("127.0.0.1", there.port)};
  options.on_lost = [](const absl::Status&) {};
  const auto witness = JobWitness::Start(options).value();
  Leader leader;
  leader.entry_ = {{3, 5}, 9, {leading, options.self}, PackForWitnesses(LargeJob(4000, 100))};
  ASSERT_GT(leader.entry_.record.size(), kMaxCarriedRecordBytes);
  RendezvousServer::Options served;
  served.listener = std::move(here.fd);
  served.witnesses = &leader;
  const auto server = RendezvousServer::Start(std::move(served), leader).value();
  WitnessMessage append;
  append.from = leading.incarnation;
  append.to = options.self.incarnation;
  append.term = 3;
  append.ballot = leader.entry_.ballot;
  append.entry = std::make_shared<WitnessEntry>(leader.entry_);
  for (int i = 0; i < 1000 && leader.held() != leader.entry_.ballot; ++i) {
    append.beat = static_cast<uint64_t>(i) + 1;  // A leader repeats what is still lacking.
    WitnessLetter letter = FromProto(ToProto(append, "large", leading)).value();
    ASSERT_TRUE(witness->Hear("large", std::move(letter)).ok());
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(leader.held(), leader.entry_.ballot);
}

}  // namespace
}  // namespace hlaunch
