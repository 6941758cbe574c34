// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/job_registry.h"

#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/job/job_rendezvous.h"
#include "tests/rendezvous/memory_keeper.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Kind = Directive::Kind;

// The real clock, which tests can set forward.
class SetClock final : public Clock {
 public:
  Instant Now() const override { return MonotonicClock().Now() + ahead_.load(); }
  void Advance(Duration duration) { ahead_ = ahead_.load() + duration; }

 private:
  std::atomic<Duration> ahead_{Duration::zero()};
};

class Told final : public JobRendezvous::Session {
 public:
  void OnDirective(const Directive& directive) override {
    MutexLock lock(&mu_);
    last_ = directive;
    heard_.SignalAll();
  }
  void OnEnd(const absl::Status&) override {}
  Directive last() const {
    MutexLock lock(&mu_);
    return last_;
  }
  void AwaitKind(Kind kind) const {
    MutexLock lock(&mu_);
    while (last_.kind != kind) heard_.Wait(&mu_);
  }

 private:
  mutable Mutex mu_;
  mutable CondVar heard_;
  Directive last_ ABSL_GUARDED_BY(mu_);
};

// A node of a job. Like a stream, it holds the job while it lives.
class Agent {
 public:
  Agent(JobRegistry& registry, NodeInfo info, NodeUpdate update = Says(0, NodePhase::kReady))
      : info_(std::move(info)), told_(std::make_shared<Told>()) {
    auto job = registry.Open(info_, update);
    status_ = job.status();
    if (!job.ok()) return;
    job_ = *std::move(job);
    status_ = job_->Attach(info_, update, /*local=*/false, told_);
  }
  ~Agent() {
    if (job_ != nullptr) job_->Detach(info_.node_id, told_.get());
  }
  Agent(const Agent&) = delete;

  const absl::Status& status() const { return status_; }
  Directive told() const { return told_->last(); }
  void AwaitKind(Kind kind) const { told_->AwaitKind(kind); }
  absl::Status Say(const NodeUpdate& update) {
    return job_->Update(info_.node_id, info_.incarnation, update);
  }
  // Runs round 1 and finishes.
  void Succeed() {
    EXPECT_TRUE(Say(Says(1, NodePhase::kRunning)).ok());
    EXPECT_TRUE(Say(Says(1, NodePhase::kSucceeded)).ok());
  }
  bool Beat() { return job_->Heard(info_.node_id, info_.incarnation); }
  void ReportDeath() {
    EXPECT_TRUE(job_->ReportNodeDeath(info_.node_id, info_.incarnation, "killed").ok());
  }
  void Finish() { EXPECT_TRUE(Say(Says(1, NodePhase::kFinished)).ok()); }

 private:
  const NodeInfo info_;
  const std::shared_ptr<Told> told_;
  std::shared_ptr<JobRendezvous> job_;
  absl::Status status_;
};

NodeInfo NodeOf(const std::string& job, int i, int nodes) {
  NodeInfo info = Node(i, nodes, nodes);
  info.job_id = job;
  return info;
}

class JobRegistryTest : public testing::Test {
 protected:
  // Options for a new service; the previous one has ended.
  JobRegistry::Options Keeping(bool shared = false) {
    keeper_.reset();
    keeper_ = *MemoryKeeper::Lead(place_, shared);
    JobRegistry::Options options;
    options.keeper = keeper_.get();
    return options;
  }
  std::map<std::string, JobRecord> kept() {
    std::map<std::string, JobRecord> records;
    for (const auto& [id, kept] : place_.kept()) records[id] = kept.record;
    return records;
  }
  void SetDisk(absl::Status status) { place_.SetDisk(std::move(status)); }
  std::string Why(JobRegistry& registry, const std::string& job) {
    const auto status = registry.Status(job);
    return status.has_value() ? status->explanation : "no such job";
  }

  SetClock clock_;
  MemoryPlace place_;
  std::unique_ptr<MemoryKeeper> keeper_;
};

TEST_F(JobRegistryTest, AJobBeginsWithItsFirstNodesRules) {
  JobRegistry registry({}, clock_);
  NodeInfo first = NodeOf("a", 0, 2);
  first.policy.max_restarts = 3;
  Agent node0(registry, first);
  ASSERT_TRUE(node0.status().ok());
  EXPECT_EQ(registry.Status("a")->max_restarts, 3);
  EXPECT_THAT(Why(registry, "a"), HasSubstr("waiting for 1 of 2 nodes; here: node0"));
  Agent other(registry, NodeOf("a", 1, 4));
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("has --nnodes 2, set by node0 (pid 100), and node1 (pid 101) says 4"));
}

TEST_F(JobRegistryTest, JobsDoNotMeet) {
  JobRegistry registry({}, clock_);
  Agent a0(registry, NodeOf("a", 0, 2)), b0(registry, NodeOf("b", 0, 2));
  EXPECT_EQ(a0.told().kind, Kind::kWait);
  Agent a1(registry, NodeOf("a", 1, 2));
  EXPECT_EQ(a0.told().kind, Kind::kRun);
  EXPECT_EQ(b0.told().kind, Kind::kWait);
  const std::vector<JobStatus> list = registry.List();
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0].state, JobState::kRunning);
  EXPECT_EQ(list[1].state, JobState::kForming);
  EXPECT_THAT(list[0].nodes, IsEmpty());
  EXPECT_EQ(registry.Find("c"), nullptr);
  EXPECT_FALSE(registry.Status("c").has_value());
  EXPECT_EQ(registry.going_on(), 2);
}

TEST_F(JobRegistryTest, ANodeFromARoundThatNobodyKnowsIsSentAway) {
  JobRegistry registry({}, clock_);
  Agent lost(registry, NodeOf("a", 0, 2), Says(3, NodePhase::kRunning));
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(lost.status().message()), HasSubstr("from round 3 of job a"));
  Agent leaving(registry, NodeOf("a", 0, 2), Says(0, NodePhase::kLeft));
  EXPECT_FALSE(leaving.status().ok());
  EXPECT_THAT(registry.List(), IsEmpty());
}

TEST_F(JobRegistryTest, AFreshNodeBeginsANewRunOnceAllHaveHeardTheEnd) {
  JobRegistry registry({}, clock_);
  Agent a0(registry, NodeOf("a", 0, 2)), a1(registry, NodeOf("a", 1, 2));
  a0.Succeed();
  a1.Succeed();
  EXPECT_EQ(a0.told().kind, Kind::kFinish);
  a0.Finish();
  NodeInfo again = NodeOf("a", 0, 1);
  again.incarnation = 77;
  {
    Agent early(registry, again);
    EXPECT_EQ(early.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(early.status().message()),
                HasSubstr("the former run of job a is ending; waiting for node1"));
  }
  a1.Finish();
  EXPECT_EQ(registry.Status("a")->state, JobState::kOver);
  Agent next(registry, again);
  ASSERT_TRUE(next.status().ok());
  EXPECT_EQ(next.told().kind, Kind::kRun);
  EXPECT_EQ(next.told().round, 1);
  registry.Tidy();  // The streams of the former run keep it.
  a0.Finish();
}

TEST_F(JobRegistryTest, ANodeOfAnEndedJobStillHearsItsEnd) {
  JobRegistry registry({}, clock_);
  Agent a0(registry, NodeOf("a", 0, 1));
  Agent spare(registry, NodeOf("a", 1, 1));
  a0.Succeed();
  a0.Finish();
  Agent back(registry, NodeOf("a", 1, 1));  // Its stream broke before it was told a round.
  ASSERT_TRUE(back.status().ok());
  EXPECT_EQ(back.told().kind, Kind::kFinish);
}

TEST_F(JobRegistryTest, AJobThatAllLeftBeforeItsFirstRoundTakesNewRules) {
  JobRegistry registry({}, clock_);
  {
    Agent mistyped(registry, NodeOf("a", 0, 3));
    ASSERT_TRUE(mistyped.Say(Says(0, NodePhase::kLeft)).ok());
  }
  NodeInfo info = NodeOf("a", 0, 2);
  info.incarnation = 77;
  Agent again(registry, info);
  EXPECT_TRUE(again.status().ok()) << again.status();
  EXPECT_EQ(registry.Status("a")->max_nodes, 2);
}

TEST_F(JobRegistryTest, ANodeThatIsAboutToJoinKeepsItsJob) {
  JobRegistry registry({}, clock_);
  const auto first = registry.Open(NodeOf("a", 0, 2), Says(0, NodePhase::kReady));
  const auto second = registry.Open(NodeOf("a", 1, 2), Says(0, NodePhase::kReady));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST_F(JobRegistryTest, MoreThanMaxJobsWait) {
  JobRegistry::Options options;
  options.max_jobs = 2;
  JobRegistry registry(std::move(options), clock_);
  Agent a(registry, NodeOf("a", 0, 1));
  {
    Agent b(registry, NodeOf("b", 0, 1));
    Agent c(registry, NodeOf("c", 0, 1));
    EXPECT_EQ(c.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(c.status().message()), HasSubstr("--max-jobs 2"));
    b.Succeed();
    b.Finish();
  }
  Agent c(registry, NodeOf("c", 0, 1));
  EXPECT_TRUE(c.status().ok()) << c.status();
  EXPECT_FALSE(registry.Status("b").has_value());
  EXPECT_EQ(registry.Status("a")->state, JobState::kRunning);
}

TEST_F(JobRegistryTest, ShowsWhatIsOverForTenMinutes) {
  JobRegistry registry({}, clock_);
  {
    Agent a(registry, NodeOf("a", 0, 1));
    a.Succeed();
    a.Finish();
  }
  Agent b(registry, NodeOf("b", 0, 1));
  registry.Tidy();
  clock_.Advance(minutes(9));
  registry.Tidy();
  EXPECT_EQ(registry.Status("a")->state, JobState::kOver);
  clock_.Advance(minutes(2));
  registry.Tidy();
  EXPECT_FALSE(registry.Status("a").has_value());
  EXPECT_TRUE(registry.Status("b").has_value());
}

TEST_F(JobRegistryTest, AnotherProcessGoesOnWithWhatWasKept) {
  NodeInfo info = NodeOf("a", 0, 2);
  info.policy.max_restarts = 1;
  {
    JobRegistry registry(Keeping(), clock_);
    Agent a0(registry, info), a1(registry, NodeOf("a", 1, 2));
    ASSERT_EQ(a0.told().kind, Kind::kRun);
    ASSERT_TRUE(a0.Say(Says(1, NodePhase::kRunning)).ok());
    ASSERT_TRUE(a1.Say(Failed(1, Failure(2, 7))).ok());
    ASSERT_EQ(a0.told().kind, Kind::kStop);
  }
  JobRegistry::Options options = Keeping();
  options.records = options.keeper->List()->records;
  JobRegistry registry(std::move(options), clock_);
  EXPECT_EQ(registry.Status("a")->state, JobState::kStopping);
  EXPECT_EQ(registry.Status("a")->restarts, 1);
  Agent a0(registry, info, Says(1, NodePhase::kReady));
  ASSERT_TRUE(a0.status().ok()) << a0.status();
  Agent a1(registry, NodeOf("a", 1, 2), Says(1, NodePhase::kReady));
  ASSERT_TRUE(a1.status().ok()) << a1.status();
  EXPECT_EQ(a0.told().kind, Kind::kRun);
  EXPECT_EQ(a0.told().round, 2);
  EXPECT_EQ(a0.told().assignment.restart_count, 1);
}

TEST_F(JobRegistryTest, NobodyHearsWhatASharedPlaceHasNotKept) {
  JobRegistry registry(Keeping(/*shared=*/true), clock_);
  SetDisk(absl::ResourceExhaustedError("DIR is full"));
  Agent a0(registry, NodeOf("a", 0, 2)), a1(registry, NodeOf("a", 1, 2));
  EXPECT_TRUE(a0.status().ok() && a1.status().ok());
  while (Why(registry, "a").find("not kept in DIR since ") == std::string::npos) ::usleep(1000);
  EXPECT_EQ(a0.told().kind, Kind::kWait);
  SetDisk(absl::OkStatus());
  a0.AwaitKind(Kind::kRun);
  a1.AwaitKind(Kind::kRun);
  EXPECT_THAT(Why(registry, "a"), Not(HasSubstr("not kept")));
  EXPECT_EQ(kept()["a"].round, 1);
}

// With two processors, gRPC has two threads for all nodes of all jobs.
TEST_F(JobRegistryTest, NobodyWaitsWithinACallForASharedPlaceThatIsSilent) {
  JobRegistry registry(Keeping(/*shared=*/true), clock_);
  ASSERT_TRUE(registry.StartThreads().ok());
  place_.SetSilent(true);
  std::deque<Agent> agents;
  for (int job = 0; job < 20; ++job) {
    const std::string id = absl::StrCat("job", job);
    for (int i = 0; i < 2; ++i) agents.emplace_back(registry, NodeOf(id, i, 2));
  }
  for (Agent& agent : agents) {
    EXPECT_TRUE(agent.status().ok());
    EXPECT_TRUE(agent.Say(Says(0, NodePhase::kReady)).ok());
    EXPECT_EQ(agent.told().kind, Kind::kWait);
  }
  registry.Tidy();
  place_.SetSilent(false);
  for (Agent& agent : agents) agent.AwaitKind(Kind::kRun);
}

// An answer would keep its workers alive, but the next round begins once the record is kept.
TEST_F(JobRegistryTest, ANodeThatIsGivenUpIsNotAnsweredBeforeItIsToldSo) {
  JobRegistry registry(Keeping(/*shared=*/true), clock_);
  Agent a0(registry, NodeOf("a", 0, 2)), a1(registry, NodeOf("a", 1, 2));
  a0.AwaitKind(Kind::kRun);
  a1.AwaitKind(Kind::kRun);
  EXPECT_TRUE(a0.Beat() && a1.Beat());
  place_.SetSilent(true);
  a1.ReportDeath();
  EXPECT_TRUE(a0.Beat());
  EXPECT_FALSE(a1.Beat());
  EXPECT_EQ(a0.told().kind, Kind::kRun);
  place_.SetSilent(false);
  a0.AwaitKind(Kind::kFinish);
}

TEST_F(JobRegistryTest, RefusesAJobWhoseRecordMayNotFit) {
  JobRegistry registry(Keeping(/*shared=*/true), clock_);
  Agent large(registry, NodeOf("a", 0, 1001));
  EXPECT_TRUE(absl::IsInvalidArgument(large.status()));
  EXPECT_THAT(std::string(large.status().message()),
              HasSubstr("may have 1001 nodes, and DIR keeps the records of jobs of up to 1000"));
  Agent small(registry, NodeOf("a", 0, 1000));
  EXPECT_TRUE(small.status().ok()) << small.status();
}

TEST_F(JobRegistryTest, WhoHasLostDecidesNothingAndTellsNobody) {
  JobRegistry registry(Keeping(/*shared=*/true), clock_);
  Agent a0(registry, NodeOf("a", 0, 2)), a1(registry, NodeOf("a", 1, 2));
  a0.AwaitKind(Kind::kRun);
  a1.AwaitKind(Kind::kRun);
  place_.TakeAway();
  EXPECT_TRUE(absl::IsUnavailable(a1.Say(Failed(1, Failure(2, 7))))) << a1.status();
  EXPECT_TRUE(absl::IsUnavailable(a0.Say(Says(1, NodePhase::kRunning))));
  EXPECT_EQ(a0.told().kind, Kind::kRun);
  EXPECT_EQ(kept()["a"].state, JobState::kRunning);
  Agent late(registry, NodeOf("a", 2, 2));
  EXPECT_TRUE(absl::IsUnavailable(late.status())) << late.status();
}

// The lease still seems to hold, but the write is refused: a clock is wrong.
TEST_F(JobRegistryTest, ARefusedRecordIsTheEndEvenWhereTheLeaseSeemsToHold) {
  JobRegistry registry(Keeping(/*shared=*/true), clock_);
  SetDisk(absl::AbortedError("another leads"));
  Agent a0(registry, NodeOf("a", 0, 2)), a1(registry, NodeOf("a", 1, 2));
  while (a0.Say(Says(0, NodePhase::kReady)).ok()) ::usleep(1000);
  SetDisk(absl::OkStatus());
  EXPECT_EQ(a0.told().kind, Kind::kWait);
  EXPECT_TRUE(absl::IsUnavailable(a0.Say(Says(0, NodePhase::kReady))));
  EXPECT_THAT(kept(), IsEmpty());
}

// The number of threads of this process.
ptrdiff_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST_F(JobRegistryTest, JobsTakeNoThreadsHoweverManyThereAre) {
  JobRegistry registry({}, clock_);
  ASSERT_TRUE(registry.StartThreads().ok());
  const ptrdiff_t before = Threads();
  std::deque<Agent> agents;
  for (int job = 0; job < 100; ++job) {
    agents.emplace_back(registry, NodeOf(absl::StrCat("over", job), 0, 1));
    agents.back().Succeed();
    agents.back().Finish();
    agents.emplace_back(registry, NodeOf(absl::StrCat("runs", job), 0, 2));
    ASSERT_TRUE(agents.back().status().ok());
  }
  EXPECT_EQ(Threads(), before);
}

TEST_F(JobRegistryTest, ForgetsAJobOnceAllItsNodesHaveHeardItsEnd) {
  JobRegistry registry(Keeping(), clock_);
  Agent a0(registry, NodeOf("a", 0, 2)), a1(registry, NodeOf("a", 1, 2));
  EXPECT_THAT(kept(), SizeIs(1));
  a0.Succeed();
  a1.Succeed();
  a0.Finish();
  EXPECT_EQ(kept()["a"].state, JobState::kOver);
  EXPECT_EQ(kept()["a"].outcome.exit_code, 0);
  a1.Finish();
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(JobRegistryTest, AFormerRunDoesNotTouchWhatIsKeptOfTheNext) {
  JobRegistry registry(Keeping(), clock_);
  NodeInfo leaver = NodeOf("a", 1, 2);
  leaver.policy.min_nodes = 1;
  NodeInfo info = NodeOf("a", 0, 2);
  info.policy.min_nodes = 1;
  info.policy.max_restarts = 1;
  Agent a0(registry, info), a1(registry, leaver);
  ASSERT_EQ(a0.told().kind, Kind::kRun);
  ASSERT_TRUE(a1.Say(Says(1, NodePhase::kLeft)).ok());
  const std::shared_ptr<JobRendezvous> former = registry.Find("a");
  former->End({.exit_code = 3, .reason = "asked to", .failures = {}});
  ASSERT_TRUE(a0.Say(Says(1, NodePhase::kFinished)).ok());
  ASSERT_THAT(kept(), IsEmpty());
  NodeInfo again = NodeOf("a", 0, 1);
  again.incarnation = 77;
  Agent next(registry, again);
  ASSERT_THAT(kept(), SizeIs(1));
  // The former run gets one more durable change.
  ASSERT_TRUE(former->ReportNodeDeath("id1", leaver.incarnation, "gone").ok());
  EXPECT_EQ(kept()["a"].state, JobState::kRunning);
}

TEST_F(JobRegistryTest, WhatCannotBeKeptIsSaidAndTriedAgain) {
  JobRegistry registry(Keeping(), clock_);
  SetDisk(absl::ResourceExhaustedError("cannot write DIR/a.job: No space left on device"));
  Agent a(registry, NodeOf("a", 0, 1));
  EXPECT_EQ(a.told().kind, Kind::kRun);  // The job goes on.
  EXPECT_THAT(kept(), IsEmpty());
  EXPECT_THAT(Why(registry, "a"), HasSubstr("not kept in DIR since "));
  EXPECT_THAT(Why(registry, "a"), HasSubstr("No space left on device"));
  registry.Tidy();  // Too soon.
  SetDisk(absl::OkStatus());
  clock_.Advance(seconds(5));
  registry.Tidy();
  EXPECT_EQ(kept()["a"].round, 1);
  EXPECT_THAT(Why(registry, "a"), Not(HasSubstr("not kept")));
}

}  // namespace
}  // namespace hlaunch
