// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/voters/job_voter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/mutex.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/round/values/lease.h"
#include "rendezvous/round/values/limits.h"
#include "rendezvous/rpc/rendezvous_server.h"
#include "rendezvous/voter/wire/voter_convert.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The first host knows the policy from its command line, the others from what they are told.
TEST(VoterRuleOf, IsTheSameForTheFirstHostAndForThoseThatItTells) {
  JobPolicy own;
  own.min_nodes = own.max_nodes = 256;
  own.lease = {milliseconds(333), seconds(3), seconds(5)};
  JobPolicy told = own;
  told.lease = LeaseForNodes(own.lease, own.max_nodes);
  ASSERT_GT(told.lease.lease, own.lease.lease);
  EXPECT_EQ(VoterRuleOf(own).lease, VoterRuleOf(told).lease);
  EXPECT_EQ(VoterRuleOf(own).lease, told.lease.lease);
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

TEST(PackForVoters, TheLargestJobFitsWhateverItsNames) {
  for (const int nodes : {256, 1000, 16384}) {
    const size_t usual = PackForVoters(LargeJob(nodes, 24)).size();
    const size_t most = PackForVoters(LargeJob(nodes, kMaxNameBytes)).size();
    std::printf("%d nodes: packed %zu, with the longest names %zu\n", nodes, usual, most);
    EXPECT_LE(most, kMaxVoterRecordBytes) << nodes;
  }
  JobPolicy policy;
  policy.on_host_loss = HostLoss::kWait;
  policy.max_nodes = 16384;
  EXPECT_TRUE(HasVoters(policy));
}

JobPolicy OfThree() {
  JobPolicy policy = Policy(3, 3);
  policy.on_host_loss = HostLoss::kWait;
  policy.preflight = Preflight::kOff;
  return policy;
}

NodeInfo Placed(int i, uint16_t voter_port) {
  NodeInfo node = Node(i, 3, 3);
  node.policy = OfThree();
  node.seen_address = node.address;
  node.voter_port = voter_port;
  return node;
}

// What a node is told, with the places that the server tells it at that moment.
class Told final : public JobRendezvous::Session {
 public:
  explicit Told(const JobVoter& voter) : voter_(voter) {}
  void OnDirective(const Directive& directive) override {
    const VoterMembers places = voter_.Places();
    MutexLock lock(&mu_);
    if (directive.kind == Directive::Kind::kRun && !first_) first_ = places;
    changed_.SignalAll();
  }
  void OnEnd(const absl::Status&) override {}
  VoterMembers AwaitRun() {
    const Instant deadline = MonotonicClock().Now() + seconds(100);
    MutexLock lock(&mu_);
    while (!first_ && changed_.WaitUntil(&mu_, deadline)) {
    }
    return first_.value_or(VoterMembers());
  }

 private:
  const JobVoter& voter_;
  Mutex mu_;
  CondVar changed_;
  std::optional<VoterMembers> first_ ABSL_GUARDED_BY(mu_);
};

// A job of three nodes that is led from here. No other process is there.
struct Led {
  Led() {
    JobVoter::Options options;
    options.job_id = "job";
    options.policy = OfThree();
    options.self = {1, "node0", "127.0.0.1:1"};
    options.on_lost = [](const absl::Status&) {};
    voter = JobVoter::Start(options).value();
    JobRules rules;
    rules.job_id = "job";
    rules.policy = options.policy;
    JobRendezvous& job = voter->Found(rules);
    for (int i = 0; i < 3; ++i) {
      told.push_back(std::make_shared<Told>(*voter));
      NodeInfo node = Placed(i, static_cast<uint16_t>(2 + i));
      node.seen_address = "127.0.0.1";
      EXPECT_TRUE(job.Attach(node, Says(0, NodePhase::kReady), i == 0, told.back()).ok());
    }
  }

  std::unique_ptr<JobVoter> voter;
  std::vector<std::shared_ptr<Told>> told;
};

// Else the other nodes would not find each other if the host died in the first seconds.
TEST(JobVoter, WhoIsToldToRunKnowsWhereTheVotersWillBe) {
  const Led led;
  for (const auto& one : led.told) EXPECT_EQ(one->AwaitRun().size(), 3U);
}

TEST(JobVoter, MayEndWhileItSpeaksToOthers) {
  for (int i = 0; i < 30; ++i) {
    const Led led;
    led.told.front()->AwaitRun();
  }
}

// The leader of the job that goes on elsewhere calls it, and is gone soon after.
TEST(JobVoter, BeginsTheJobAnewOnceTheOneItYieldedToIsGone) {
  JobVoter::Options options;
  options.job_id = "job";
  options.policy = OfThree();
  options.policy.lease = {milliseconds(200), milliseconds(600), milliseconds(400)};
  options.self = {1, "node0", "127.0.0.1:1"};
  std::atomic<int> lost = 0;
  options.on_lost = [&lost](const absl::Status&) { ++lost; };
  const auto voter = JobVoter::Start(options).value();
  JobRules rules;
  rules.job_id = "job";
  rules.policy = options.policy;
  voter->Found(rules);
  VoterMessage call;
  call.from = 9;
  const VoterMember leader{9, "node1", "127.0.0.1:2"};
  ASSERT_TRUE(voter->Hear("job", FromProto(ToProto(call, "job", leader)).value()).ok());
  EXPECT_FALSE(voter->leads());
  EXPECT_EQ(lost, 1);
  for (int i = 0; i < 1000 && !voter->leads(); ++i) std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(voter->leads());
  const auto told = std::make_shared<Told>(*voter);
  EXPECT_TRUE(voter->job()->Attach(Placed(1, 3), Says(0, NodePhase::kReady), false, told).ok());
}

// What stands by at the endpoint may be no voter of the job, so that only calls to the endpoint
// tell it who leads. A node that comes must not be sent to a leader that is gone.
TEST(JobVoter, OneThatIsNoVoterSendsNodesToTheLastThatHasCalled) {
  JobVoter::Options options;
  options.job_id = "job";
  options.policy = OfThree();
  options.self = {1, "node0", "127.0.0.1:1"};
  options.on_lost = [](const absl::Status&) {};
  const auto voter = JobVoter::Start(options).value();
  EXPECT_TRUE(voter->Places().empty());
  for (const Incarnation leader : {8, 9}) {
    VoterMessage call;
    call.from = leader;
    const VoterMember from{leader, "node1", absl::StrCat("127.0.0.1:", leader)};
    ASSERT_TRUE(voter->Hear("job", FromProto(ToProto(call, "job", from)).value()).ok());
    ASSERT_EQ(voter->Places().size(), 1U);
    EXPECT_EQ(voter->Places().front().address, from.address);
  }
  EXPECT_FALSE(voter->leads());
}

// Two nodes on the host of the rendezvous would die with it.
TEST(CandidatesOf, PrefersVotersThenOtherHosts) {
  const VoterMember self{1, "node0", "10.0.0.1:1"};
  std::vector<NodeInfo> nodes = {Placed(0, 1), Placed(0, 5), Placed(1, 6), Placed(2, 7),
                                 Placed(3, 0)};
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].incarnation = i + 1;
  const VoterCandidates told = CandidatesOf(nodes, {self, {4, "node2", ""}}, self);
  EXPECT_EQ(told.nodes, 5);
  ASSERT_EQ(told.candidates.size(), 3U);
  EXPECT_EQ(told.candidates[0].incarnation, 4U);
  EXPECT_EQ(told.candidates[1].incarnation, 3U);
  EXPECT_EQ(told.candidates[2].incarnation, 2U);
}

// The leader of a group, without a job: it says what it is told to.
class Leader final : public Jobs, public VoterPost {
 public:
  absl::Status CheckLeads() const override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo&, const NodeUpdate&) override {
    return absl::UnavailableError("it has no job");
  }
  std::shared_ptr<JobRendezvous> Find(absl::string_view) override { return nullptr; }
  std::optional<JobStatus> Status(absl::string_view) override { return std::nullopt; }
  std::vector<JobStatus> List() override { return {}; }
  absl::Status Hear(absl::string_view, VoterLetter letter) override {
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
  VoterMembers Places() const override { return {}; }

  // Returns the ballot that the other voter says it holds.
  Ballot held() const {
    MutexLock lock(&mu_);
    return held_;
  }

  VoterEntry entry_;

 private:
  mutable Mutex mu_;
  Ballot held_ ABSL_GUARDED_BY(mu_);
};

TEST(JobVoter, GetsARecordThatNoMessageCarries) {
  ListeningSocket here = Listen("127.0.0.1", 0).value();
  ListeningSocket there = Listen("127.0.0.1", 0).value();
  const VoterMember leading{1, "node0", HostPort("127.0.0.1", here.port)};
  JobVoter::Options options;
  options.job_id = "large";
  options.policy.on_host_loss = HostLoss::kWait;
  options.policy.max_nodes = 4000;
  options.self = {2, "node1", HostPort("127.0.0.1", there.port)};
  options.on_lost = [](const absl::Status&) {};
  const auto voter = JobVoter::Start(options).value();
  Leader leader;
  leader.entry_ = {{3, 5}, 9, {leading, options.self}, PackForVoters(LargeJob(4000, 100))};
  ASSERT_GT(leader.entry_.record.size(), kMaxCarriedRecordBytes);
  RendezvousServer::Options served;
  served.listener = std::move(here.fd);
  served.voters = &leader;
  const auto server = RendezvousServer::Start(std::move(served), leader).value();
  VoterMessage append;
  append.from = leading.incarnation;
  append.to = options.self.incarnation;
  append.term = 3;
  append.ballot = leader.entry_.ballot;
  append.entry = std::make_shared<VoterEntry>(leader.entry_);
  for (int i = 0; i < 1000 && leader.held() != leader.entry_.ballot; ++i) {
    append.beat = static_cast<uint64_t>(i) + 1;  // A leader repeats what is still lacking.
    VoterLetter letter = FromProto(ToProto(append, "large", leading)).value();
    ASSERT_TRUE(voter->Hear("large", std::move(letter)).ok());
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(leader.held(), leader.entry_.ballot);
}

// A node whose own voter is heard is in the part of the network that decides, though its agent
// has not found the rendezvous yet.
TEST(JobVoter, LearnsThatItsAnswersWereTakenAndWhoLeadsNext) {
  ListeningSocket here = Listen("127.0.0.1", 0).value();
  const VoterMember leading{1, "node0", HostPort("127.0.0.1", here.port)};
  const VoterMember next{3, "node2", "127.0.0.1:3"};
  std::atomic<Incarnation> led = 0;
  JobVoter::Options options;
  options.job_id = "job";
  options.policy = OfThree();
  options.self = {2, "node1", "127.0.0.1:2"};
  options.on_lost = [](const absl::Status&) {};
  options.on_led = [&led](const VoterMembers& places) { led = places.front().incarnation; };
  const auto voter = JobVoter::Start(options).value();
  Leader leader;
  leader.entry_ = {{3, 5}, 9, {leading, options.self, next}, "record"};
  RendezvousServer::Options served;
  served.listener = std::move(here.fd);
  served.voters = &leader;
  const auto server = RendezvousServer::Start(std::move(served), leader).value();
  VoterMessage append;
  append.from = leading.incarnation;
  append.to = options.self.incarnation;
  append.term = 3;
  append.ballot = leader.entry_.ballot;
  append.entry = std::make_shared<VoterEntry>(leader.entry_);
  const auto hears = [&](const VoterMember& from) {
    return voter->Hear("job", FromProto(ToProto(append, "job", from)).value());
  };
  const Instant before = MonotonicClock().Now();
  for (int i = 0; i < 1000 && leader.held() != leader.entry_.ballot; ++i) {
    ++append.beat;
    ASSERT_TRUE(hears(leading).ok());
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(voter->TakenAt(), Instant::min());
  append.taken = append.beat;
  ++append.beat;
  ASSERT_TRUE(hears(leading).ok());
  EXPECT_GE(voter->TakenAt(), before);
  const Instant taken_at = voter->TakenAt();
  // The same append once more, as from a kernel that held it: its answer is later, and was not
  // taken.
  std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(hears(leading).ok());
  std::this_thread::sleep_for(milliseconds(20));
  append.taken = append.beat;
  ASSERT_TRUE(hears(leading).ok());
  EXPECT_LT(voter->TakenAt(), MonotonicClock().Now() - milliseconds(15));
  EXPECT_GE(voter->TakenAt(), taken_at);
  EXPECT_EQ(led, 0U);
  append.from = next.incarnation;
  append.term = append.ballot.term = 4;
  append.taken = 0;
  leader.entry_.ballot = append.ballot;
  append.entry = std::make_shared<VoterEntry>(leader.entry_);
  ASSERT_TRUE(hears(next).ok());
  for (int i = 0; i < 1000 && led == 0; ++i) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(led, next.incarnation);
}

// Else the agent of the one that is left would try the place of the dead one until it gives up.
TEST(JobVoter, OneOfTwoThatGoesOnAloneSendsItsOwnAgentHere) {
  const VoterMember leading{1, "node0", "127.0.0.1:1"};
  std::atomic<Incarnation> led = 0;
  JobVoter::Options options;
  options.job_id = "large";
  options.policy = Policy(1, 2);
  options.policy.on_host_loss = HostLoss::kContinue;
  options.policy.lease = {milliseconds(200), milliseconds(600), milliseconds(400)};
  options.self = {2, "node1", "127.0.0.1:2"};
  options.on_lost = [](const absl::Status&) {};
  options.on_led = [&led](const VoterMembers& places) { led = places.front().incarnation; };
  const auto voter = JobVoter::Start(options).value();
  VoterMessage append;
  append.from = leading.incarnation;
  append.to = options.self.incarnation;
  append.term = append.ballot.term = 3;
  append.beat = 1;
  append.entry = std::make_shared<VoterEntry>(
      VoterEntry{append.ballot, 9, {leading, options.self}, PackForVoters(LargeJob(2, 8))});
  ASSERT_TRUE(voter->Hear("large", FromProto(ToProto(append, "large", leading)).value()).ok());
  for (int i = 0; i < 1000 && led == 0; ++i) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(led, options.self.incarnation);
}

// A leader asks itself, without its network.
TEST(JobVoter, OneThatLeadsTakesItsOwnSigns) {
  const Led led;
  led.told.front()->AwaitRun();
  Instant taken = Instant::min();
  for (int i = 0; i < 1000 && taken == Instant::min(); ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    taken = led.voter->TakenAt();
  }
  EXPECT_NE(taken, Instant::min());
}

TEST(HostPatience, OfTwoVotersEndsWhileTheOtherOneMayStillGoOnByProof) {
  for (const int limit : {6, 30, 300}) {
    JobPolicy policy = Policy(2, 2);
    policy.lease.loss_limit = seconds(limit);
    const Duration patience = HostPatience(policy, 2);
    EXPECT_LT(patience, Shortened(VoterRuleOf(policy).lapse_after));
    EXPECT_LT(patience, policy.lease.loss_limit);
    EXPECT_EQ(HostPatience(policy, 1), Duration::max());
    policy.max_nodes = 3;
    EXPECT_EQ(HostPatience(policy, 2), Duration::max());
  }
}

}  // namespace
}  // namespace hlaunch
