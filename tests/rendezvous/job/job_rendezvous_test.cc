// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/job_rendezvous.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/mutex.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/job/local_rendezvous_client.h"
#include "tests/rendezvous/no_threads.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Directive::Kind;

Instant Soon() { return MonotonicClock().Now() + seconds(100); }

JobRules Rules(int nodes, int max_restarts = 0) {
  JobRules rules;
  rules.job_id = "job";
  rules.policy = Policy(nodes, nodes, max_restarts);
  return rules;
}

// Records what it is told, checks that calls do not overlap, and may answer from inside.
class FakeAgent : public JobRendezvous::Session, public RendezvousClient::Listener {
 public:
  std::function<void(const Directive&)> answer;    // Set before it joins.
  std::function<void(const NodeQuestion&)> reply;  // Set before it joins.
  std::vector<RoundWord> words;                    // Not locked: for calls on one thread.

  void OnDirective(const Directive& directive) override {
    EXPECT_EQ(inside_.fetch_add(1), 0) << "two calls at once";
    {
      MutexLock lock(&mu_);
      directives_.push_back(directive);
      told_.SignalAll();
    }
    inside_.fetch_sub(1);
    if (answer) answer(directive);
  }
  void OnProbe() override {
    MutexLock lock(&mu_);
    probed_ = true;
    told_.SignalAll();
  }
  void OnQuestion(const NodeQuestion& question) override {
    if (reply) reply(question);
  }
  void OnWord(const RoundWord& word) override { words.push_back(word); }
  void OnEnd(const absl::Status& status) override {
    MutexLock lock(&mu_);
    ends_.push_back(status);
    told_.SignalAll();
  }
  void OnContact(bool, const std::string&) override {}

  Directive AwaitKind(Kind kind) {
    MutexLock lock(&mu_);
    const Instant deadline = Soon();
    while (directives_.empty() || directives_.back().kind != kind) {
      if (!told_.WaitUntil(&mu_, deadline)) break;
    }
    EXPECT_FALSE(directives_.empty());
    if (directives_.empty()) return {};
    EXPECT_EQ(directives_.back().kind, kind) << directives_.back().reason;
    return directives_.back();
  }
  void AwaitProbe() {
    MutexLock lock(&mu_);
    const Instant deadline = Soon();
    while (!probed_ && told_.WaitUntil(&mu_, deadline)) {
    }
    EXPECT_TRUE(probed_);
  }
  absl::Status AwaitEnd() {
    MutexLock lock(&mu_);
    const Instant deadline = Soon();
    while (ends_.empty() && told_.WaitUntil(&mu_, deadline)) {
    }
    return ends_.empty() ? absl::OkStatus() : ends_.back();
  }
  size_t calls() {
    MutexLock lock(&mu_);
    return directives_.size() + ends_.size();
  }

 private:
  Mutex mu_;
  CondVar told_;
  std::vector<Directive> directives_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Status> ends_ ABSL_GUARDED_BY(mu_);
  bool probed_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<int> inside_{0};
};

TEST(LocalRendezvousClient, RunsAJobOfOneNodeInline) {
  JobRendezvous rendezvous(Rules(1), MonotonicClock());
  FakeAgent agent;
  LocalRendezvousClient client(rendezvous);
  NodeInfo info = Node(0, 1, 1);
  info.address = "";
  client.Join(info, Says(0, NodePhase::kReady), &agent);
  const Directive run = agent.AwaitKind(Kind::kRun);
  EXPECT_EQ(run.assignment.round, 1);
  EXPECT_EQ(run.assignment.world_size, 2);
  EXPECT_EQ(run.assignment.master_addr, "127.0.0.1");
  EXPECT_EQ(run.assignment.master_port, 4000);
  client.Send(Says(1, NodePhase::kRunning));
  client.Send(Says(1, NodePhase::kSucceeded));
  EXPECT_EQ(agent.AwaitKind(Kind::kFinish).outcome.exit_code, 0);
  EXPECT_THAT(rendezvous.AwaitAllFinished(MonotonicClock().Now()), ElementsAre("node0"));
  client.Send(Says(1, NodePhase::kFinished));
  EXPECT_THAT(rendezvous.AwaitAllFinished(MonotonicClock().Now()), IsEmpty());
}

TEST(LocalRendezvousClient, RestartsAndMayBeAnsweredFromInside) {
  JobRendezvous rendezvous(Rules(1, 2), MonotonicClock());
  FakeAgent agent;
  LocalRendezvousClient client(rendezvous);
  agent.answer = [&](const Directive& d) {
    if (d.kind == Kind::kRun) client.Send(Failed(d.round, Failure(1, 7)));
    if (d.kind == Kind::kStop) client.Send(Says(d.round, NodePhase::kReady));
    if (d.kind == Kind::kFinish) client.Send(Says(3, NodePhase::kFinished));
  };
  NodeInfo info = Node(0, 1, 1);
  client.Join(info, Says(0, NodePhase::kReady), &agent);
  const Directive finish = agent.AwaitKind(Kind::kFinish);
  EXPECT_EQ(finish.outcome.exit_code, 7);
  EXPECT_EQ(finish.outcome.restart_count, 2);
  EXPECT_THAT(finish.outcome.reason, HasSubstr("exited with 7; 2 restarts were used"));
  EXPECT_THAT(rendezvous.AwaitAllFinished(Soon()), IsEmpty());
}

TEST(LocalRendezvousClient, TellsTheRefusalOnce) {
  JobRendezvous rendezvous(Rules(1), MonotonicClock());
  FakeAgent agent;
  LocalRendezvousClient client(rendezvous);
  NodeInfo info = Node(0, 1, 1);
  info.job_id = "other";
  client.Join(info, Says(0, NodePhase::kReady), &agent);
  EXPECT_EQ(agent.AwaitEnd().code(), absl::StatusCode::kFailedPrecondition);
  client.Send(Says(0, NodePhase::kReady));
  EXPECT_EQ(agent.calls(), 1u);
}

TEST(JobRendezvous, OpensTheRoundBeforeAnyNodeHearsOfIt) {
  std::atomic<int> opened{0};
  JobRules rules = Rules(2);
  rules.before_round = [&](const Assignment& first) { opened = static_cast<int>(first.round); };
  JobRendezvous rendezvous(rules, MonotonicClock());
  auto a = std::make_shared<FakeAgent>(), b = std::make_shared<FakeAgent>();
  a->answer =
      b->answer = [&](const Directive& d) { EXPECT_EQ(opened, d.kind == Kind::kRun ? 1 : 0); };
  ASSERT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, a).ok());
  EXPECT_THAT(a->AwaitKind(Kind::kWait).reason, HasSubstr("waiting for 1 of 2 nodes"));
  ASSERT_TRUE(rendezvous.Attach(Node(1, 2, 2), Says(0, NodePhase::kReady), false, b).ok());
  EXPECT_EQ(a->AwaitKind(Kind::kRun).assignment.node_rank, 0);
  EXPECT_EQ(b->AwaitKind(Kind::kRun).assignment.node_rank, 1);
}

TEST(JobRendezvous, AllNodesOfARoundGetOneSecretThatOutlivesTheRendezvous) {
  JobRules rules = Rules(2);
  JobRecord kept;
  rules.commit = [&](const JobRecord& record) {
    kept = record;
    return absl::OkStatus();
  };
  std::vector<std::string> secrets;
  for (int job = 0; job < 2; ++job) {
    JobRendezvous rendezvous(rules, MonotonicClock());
    auto a = std::make_shared<FakeAgent>(), b = std::make_shared<FakeAgent>();
    ASSERT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, a).ok());
    ASSERT_TRUE(rendezvous.Attach(Node(1, 2, 2), Says(0, NodePhase::kReady), false, b).ok());
    secrets.push_back(a->AwaitKind(Kind::kRun).assignment.comm_secret);
    EXPECT_EQ(b->AwaitKind(Kind::kRun).assignment.comm_secret, secrets.back());
    EXPECT_EQ(kept.comm_secret, secrets.back());
  }
  EXPECT_EQ(secrets[0].size(), 64u);
  EXPECT_NE(secrets[0], secrets[1]);
}

// Asks a question from its own thread.
class Asker {
 public:
  JobRendezvous::AskDone Hear() {
    return [this](JobAnswer answer) {
      MutexLock lock(&mu_);
      EXPECT_FALSE(answer_.has_value()) << "a second answer";
      answer_ = std::move(answer);
      told_.SignalAll();
    };
  }
  JobAnswer Await() {
    MutexLock lock(&mu_);
    const Instant deadline = Soon();
    while (!answer_ && told_.WaitUntil(&mu_, deadline)) {
    }
    return answer_.value_or(JobAnswer());
  }
  bool heard() {
    MutexLock lock(&mu_);
    return answer_.has_value();
  }

 private:
  Mutex mu_;
  CondVar told_;
  std::optional<JobAnswer> answer_ ABSL_GUARDED_BY(mu_);
};

RankQuestion WithPatience(Duration patience) {
  RankQuestion question;
  question.patience = patience;
  return question;
}

// Two nodes with two ranks each. The first answers questions, the second does not.
struct AskedJob {
  AskedJob() {
    a->reply = [this](const NodeQuestion& question) {
      rendezvous.Answer("id0", 1, {question.number, "here", ""});
    };
    EXPECT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, a).ok());
    EXPECT_TRUE(rendezvous.Attach(Node(1, 2, 2), Says(0, NodePhase::kReady), false, b).ok());
    a->AwaitKind(Kind::kRun);
    b->AwaitKind(Kind::kRun);
  }
  std::shared_ptr<FakeAgent> a = std::make_shared<FakeAgent>(), b = std::make_shared<FakeAgent>();
  JobRendezvous rendezvous{Rules(2), MonotonicClock()};
};

TEST(JobRendezvous, AsksTheNodesOfTheRoundAndNamesWhoDoesNotAnswer) {
  AskedJob job;
  Asker asker;
  ASSERT_TRUE(job.rendezvous.Ask(WithPatience(milliseconds(20)), asker.Hear()).ok());
  const JobAnswer answer = asker.Await();
  EXPECT_EQ(answer.round, 1);
  EXPECT_EQ(answer.world_size, 4);
  EXPECT_THAT(answer.explanation, HasSubstr("round 1 runs"));
  ASSERT_EQ(answer.nodes.size(), 2u);
  EXPECT_EQ(answer.nodes[0].text, "here");
  EXPECT_EQ(answer.nodes[0].host, "node0");
  EXPECT_EQ(answer.nodes[1].first_rank, 2);
  EXPECT_EQ(answer.nodes[1].problem, "has not answered for 0 s");
}

TEST(JobRendezvous, AsksThoseAloneThatHaveTheRanks) {
  AskedJob job;
  Asker asker;
  RankQuestion question = WithPatience(seconds(50));
  question.ranks = {1};
  ASSERT_TRUE(job.rendezvous.Ask(question, asker.Hear()).ok());
  const JobAnswer answer = asker.Await();
  ASSERT_EQ(answer.nodes.size(), 1u);
  EXPECT_EQ(answer.nodes[0].text, "here");
}

TEST(JobRendezvous, WaitsForNobodyWhoHasGone) {
  AskedJob job;
  Asker asker;
  ASSERT_TRUE(job.rendezvous.Ask(WithPatience(seconds(50)), asker.Hear()).ok());
  EXPECT_FALSE(asker.heard());
  job.rendezvous.Answer("id1", 7, {1, "of another incarnation", ""});
  EXPECT_FALSE(asker.heard());
  job.rendezvous.Detach("id1", job.b.get());
  const JobAnswer answer = asker.Await();
  EXPECT_THAT(answer.nodes[1].problem, HasSubstr("lost its connection"));
  Asker again;
  ASSERT_TRUE(job.rendezvous.Ask(WithPatience(seconds(50)), again.Hear()).ok());
  EXPECT_THAT(again.Await().nodes[1].problem, HasSubstr("has no connection"));
}

TEST(JobRendezvous, TellsNobodyWhoHasGivenUp) {
  AskedJob job;
  Asker asker;
  const auto number = job.rendezvous.Ask(WithPatience(seconds(50)), asker.Hear());
  EXPECT_TRUE(job.rendezvous.GiveUp(*number));
  EXPECT_FALSE(job.rendezvous.GiveUp(*number));
  job.rendezvous.Answer("id1", 2, {*number, "", ""});
  EXPECT_FALSE(asker.heard());
}

TEST(JobRendezvous, SaysWhyNobodyIsAsked) {
  JobRendezvous rendezvous(Rules(2), MonotonicClock());
  auto a = std::make_shared<FakeAgent>();
  ASSERT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, a).ok());
  Asker asker;
  ASSERT_TRUE(rendezvous.Ask(WithPatience(seconds(50)), asker.Hear()).ok());
  const JobAnswer answer = asker.Await();
  EXPECT_EQ(answer.world_size, 0);
  EXPECT_THAT(answer.explanation, HasSubstr("waiting for 1 of 2 nodes"));
  EXPECT_THAT(answer.nodes, IsEmpty());
}

TEST(JobRendezvous, DoesNotWaitForAnOlderAgent) {
  JobRendezvous rendezvous(Rules(1), MonotonicClock());
  auto a = std::make_shared<FakeAgent>();
  NodeInfo old = Node(0, 1, 1);
  old.answers = false;
  ASSERT_TRUE(rendezvous.Attach(old, Says(0, NodePhase::kReady), false, a).ok());
  a->AwaitKind(Kind::kRun);
  Asker asker;
  ASSERT_TRUE(rendezvous.Ask(WithPatience(seconds(50)), asker.Hear()).ok());
  EXPECT_EQ(asker.Await().nodes[0].problem, "has an older hlaunch, which cannot be asked");
}

TEST(JobRendezvous, PassesOnWhatTheNodesOfTheRoundTellEachOther) {
  JobRendezvous rendezvous(Rules(3), MonotonicClock());
  std::vector<std::shared_ptr<FakeAgent>> agents;
  for (int i = 0; i < 3; ++i) {
    agents.push_back(std::make_shared<FakeAgent>());
    const NodeUpdate ready = Says(0, NodePhase::kReady);
    ASSERT_TRUE(rendezvous.Attach(Node(i, 3, 3), ready, false, agents.back()).ok());
  }
  for (const auto& agent : agents) agent->AwaitKind(Kind::kRun);
  const auto told = [&](int node) {
    std::vector<std::pair<int, std::string>> words;
    for (const RoundWord& word : agents[static_cast<size_t>(node)]->words) {
      words.emplace_back(word.node_rank, word.text);
    }
    return words;
  };
  EXPECT_TRUE(rendezvous.Tell("id1", 2, {1, 0, "from 1"}));  // Who says it is not believed.
  EXPECT_TRUE(rendezvous.Tell("id2", 3, {1, 0, "from 2"}));
  EXPECT_TRUE(rendezvous.Tell("id0", 1, {1, 0, "from 0"}));
  EXPECT_TRUE(rendezvous.Tell("id1", 2, {2, 0, "of another round"}));
  EXPECT_FALSE(rendezvous.Tell("id1", 9, {1, 0, "of another incarnation"}));
  EXPECT_FALSE(rendezvous.Tell("id9", 2, {1, 0, "of nobody"}));
  EXPECT_THAT(told(0), ElementsAre(testing::Pair(1, "from 1"), testing::Pair(2, "from 2")));
  EXPECT_THAT(told(1), ElementsAre(testing::Pair(0, "from 0")));
  EXPECT_THAT(told(2), ElementsAre(testing::Pair(0, "from 0")));
  rendezvous.Detach("id1", agents[1].get());
  EXPECT_TRUE(rendezvous.Tell("id0", 1, {1, 0, "again"}));
  EXPECT_EQ(told(1).size(), 1u);
  EXPECT_THAT(told(2), ElementsAre(testing::_, testing::Pair(0, "again")));
}

TEST(LocalRendezvousClient, TellsAndHearsOtherNodes) {
  JobRendezvous rendezvous(Rules(2), MonotonicClock());
  FakeAgent here;
  LocalRendezvousClient client(rendezvous);
  client.Join(Node(0, 2, 2), Says(0, NodePhase::kReady), &here);
  auto there = std::make_shared<FakeAgent>();
  ASSERT_TRUE(rendezvous.Attach(Node(1, 2, 2), Says(0, NodePhase::kReady), false, there).ok());
  here.AwaitKind(Kind::kRun);
  client.Tell({1, 0, "here"});
  EXPECT_TRUE(rendezvous.Tell("id1", 2, {1, 0, "there"}));
  ASSERT_EQ(there->words.size(), 1u);
  EXPECT_EQ(there->words[0].text, "here");
  ASSERT_EQ(here.words.size(), 1u);
  EXPECT_EQ(here.words[0].text, "there");
}

TEST(LocalRendezvousClient, AnswersWhatItIsAsked) {
  JobRendezvous rendezvous(Rules(1), MonotonicClock());
  FakeAgent agent;
  LocalRendezvousClient client(rendezvous);
  agent.reply = [&](const NodeQuestion& question) { client.Answer({question.number, "a", ""}); };
  client.Join(Node(0, 1, 1), Says(0, NodePhase::kReady), &agent);
  agent.AwaitKind(Kind::kRun);
  Asker asker;
  ASSERT_TRUE(rendezvous.Ask(WithPatience(seconds(50)), asker.Hear()).ok());
  EXPECT_EQ(asker.Await().nodes[0].text, "a");
}

TEST(JobRendezvous, EndsWhenNobodyComesInTime) {
  JobRules rules = Rules(2);
  rules.policy.join_timeout = milliseconds(20);
  JobRendezvous rendezvous(rules, MonotonicClock());
  FakeAgent agent;
  LocalRendezvousClient client(rendezvous);
  client.Join(Node(0, 2, 2), Says(0, NodePhase::kReady), &agent);
  const Outcome outcome = agent.AwaitKind(Kind::kFinish).outcome;
  EXPECT_EQ(outcome.exit_code, kExitJoinTimeout);
  EXPECT_THAT(outcome.reason, HasSubstr("waiting for 1 of 2 nodes; here: node0"));
}

TEST(JobRendezvous, LosesASilentNode) {
  JobRules rules = Rules(2);
  rules.policy.lease = {milliseconds(5), milliseconds(20), milliseconds(5)};
  JobRendezvous rendezvous(rules, MonotonicClock());
  auto a = std::make_shared<FakeAgent>(), b = std::make_shared<FakeAgent>();
  ASSERT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), true, a).ok());
  ASSERT_TRUE(rendezvous.Attach(Node(1, 2, 2), Says(0, NodePhase::kReady), false, b).ok());
  EXPECT_EQ(a->AwaitKind(Kind::kFinish).outcome.exit_code, kExitNodeLost);
  EXPECT_EQ(b->AwaitEnd().code(), absl::StatusCode::kAborted);
}

TEST(JobRendezvous, ANewStreamOfTheSameNodeTakesOver) {
  JobRendezvous rendezvous(Rules(1), MonotonicClock());
  auto old = std::make_shared<FakeAgent>(), young = std::make_shared<FakeAgent>();
  ASSERT_TRUE(rendezvous.Attach(Node(0, 1, 1), Says(0, NodePhase::kReady), false, old).ok());
  ASSERT_TRUE(rendezvous.Attach(Node(0, 1, 1), Says(1, NodePhase::kRunning), false, young).ok());
  // The end is not final: a late join may have replaced the connection that the node holds.
  EXPECT_EQ(old->AwaitEnd().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(young->AwaitKind(Kind::kRun).round, 1);
  rendezvous.Detach("id0", old.get());  // This does not affect the newer stream.
  rendezvous.End({.exit_code = 3, .reason = "asked to", .failures = {}});
  EXPECT_EQ(young->AwaitKind(Kind::kFinish).outcome.exit_code, 3);
}

TEST(JobRendezvous, KeepsWhatItDecidedBeforeAnyNodeHearsOfIt) {
  std::atomic<int> kept{0};
  JobRules rules = Rules(2);
  rules.commit = [&](const JobRecord& record) {
    EXPECT_EQ(record.state, JobState::kRunning);
    kept = static_cast<int>(record.round);
    return absl::OkStatus();
  };
  JobRendezvous rendezvous(rules, MonotonicClock());
  auto a = std::make_shared<FakeAgent>(), b = std::make_shared<FakeAgent>();
  a->answer = b->answer = [&](const Directive& d) { EXPECT_EQ(kept, d.round); };
  ASSERT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, a).ok());
  ASSERT_TRUE(rendezvous.Attach(Node(1, 2, 2), Says(0, NodePhase::kReady), false, b).ok());
  EXPECT_EQ(a->AwaitKind(Kind::kRun).round, 1);
  EXPECT_EQ(b->AwaitKind(Kind::kRun).round, 1);
}

TEST(JobRendezvous, GoesOnFromARecord) {
  JobRecord record;
  JobRules rules = Rules(2);
  rules.commit = [&](const JobRecord& latest) {
    record = latest;
    return absl::OkStatus();
  };
  {
    JobRendezvous first(rules, MonotonicClock());
    auto a = std::make_shared<FakeAgent>(), b = std::make_shared<FakeAgent>();
    ASSERT_TRUE(first.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, a).ok());
    ASSERT_TRUE(first.Attach(Node(1, 2, 2), Says(0, NodePhase::kReady), false, b).ok());
    b->AwaitKind(Kind::kRun);
  }
  JobRendezvous second(rules, record, MonotonicClock());
  auto b = std::make_shared<FakeAgent>();
  ASSERT_TRUE(second.Attach(Node(1, 2, 2), Says(1, NodePhase::kRunning), false, b).ok());
  EXPECT_EQ(b->AwaitKind(Kind::kRun).assignment.node_rank, 1);
  EXPECT_EQ(second.Status().round, 1);
}

TEST(JobRendezvous, AsksTheHolderOfAPlace) {
  JobRendezvous rendezvous(Rules(2), MonotonicClock());
  auto a = std::make_shared<FakeAgent>(), b = std::make_shared<FakeAgent>();
  ASSERT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, a).ok());
  NodeInfo claimant = Node(0, 2, 2);
  claimant.incarnation = 99;
  const auto attach = [&] {
    return rendezvous.Attach(claimant, Says(0, NodePhase::kReady), false, b).code();
  };
  EXPECT_EQ(attach(), absl::StatusCode::kUnavailable);
  a->AwaitProbe();
  rendezvous.Heard("id0", 1);
  EXPECT_EQ(attach(), absl::StatusCode::kAlreadyExists);
}

// A second claim of its place comes while it is inside OnProbe for the first.
TEST(JobRendezvous, AsksAHolderAgainThatWasBeingAsked) {
  class AskedHolder : public JobRendezvous::Session {
   public:
    void OnDirective(const Directive&) override {}
    void OnProbe() override {
      if (++probes == 1) claim();
    }
    void OnEnd(const absl::Status&) override {}

    std::function<void()> claim;
    int probes = 0;
  };
  JobRendezvous rendezvous(Rules(2), MonotonicClock());
  const auto holder = std::make_shared<AskedHolder>();
  const auto claim = [&](Incarnation incarnation) {
    NodeInfo claimant = Node(0, 2, 2);
    claimant.incarnation = incarnation;
    return rendezvous
        .Attach(claimant, Says(0, NodePhase::kReady), false, std::make_shared<FakeAgent>())
        .code();
  };
  holder->claim = [&] { EXPECT_EQ(claim(98), absl::StatusCode::kUnavailable); };
  ASSERT_TRUE(rendezvous.Attach(Node(0, 2, 2), Says(0, NodePhase::kReady), false, holder).ok());
  EXPECT_EQ(claim(99), absl::StatusCode::kUnavailable);
  EXPECT_EQ(holder->probes, 2);
}

TEST(JobRendezvous, ServesManyThreads) {
  constexpr int kNodes = 8;
  JobRules rules = Rules(kNodes, 3);
  std::atomic<int> opened{0};
  rules.before_round = [&](const Assignment& first) { opened = static_cast<int>(first.round); };
  JobRendezvous rendezvous(rules, MonotonicClock());
  std::vector<std::shared_ptr<FakeAgent>> agents;
  std::vector<std::thread> threads;
  for (int i = 0; i < kNodes; ++i) {
    auto agent = agents.emplace_back(std::make_shared<FakeAgent>());
    const NodeInfo info = Node(i, kNodes, kNodes);
    agent->answer = [&rendezvous, &opened, info, i](const Directive& d) {
      NodeUpdate update = Says(d.round, NodePhase::kReady);
      if (d.kind == Kind::kWait) return;
      if (d.kind == Kind::kFinish) update = Says(4, NodePhase::kFinished);
      if (d.kind == Kind::kRun) {
        EXPECT_EQ(opened, d.round);
        update = d.round < 4 && i == 5 ? Failed(d.round, Failure(10, 1))
                                       : Says(d.round, NodePhase::kSucceeded);
      }
      EXPECT_TRUE(rendezvous.Update(info.node_id, info.incarnation, update).ok());
    };
    threads.emplace_back([&rendezvous, info, agent] {
      EXPECT_TRUE(rendezvous.Attach(info, Says(0, NodePhase::kReady), false, agent).ok());
      for (int beat = 0; beat < 100; ++beat) rendezvous.Heard(info.node_id, info.incarnation);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(rendezvous.AwaitAllFinished(Soon()), IsEmpty());
  for (auto& agent : agents) {
    const Outcome outcome = agent->AwaitKind(Kind::kFinish).outcome;
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.restart_count, 3);
    agent->answer = nullptr;
  }
}

TEST(JobRendezvous, GoesOnThoughItCanStartNoThreadForItsDeadlines) {
  JobRendezvous rendezvous(Rules(2), MonotonicClock());
  const auto agent0 = std::make_shared<FakeAgent>(), agent1 = std::make_shared<FakeAgent>();
  const NodeInfo node0 = Node(0, 2, 2), node1 = Node(1, 2, 2);
  {
    const NoThreads none;
    ASSERT_TRUE(rendezvous.Attach(node0, Says(0, NodePhase::kReady), /*local=*/false, agent0).ok());
    agent0->AwaitKind(Kind::kWait);
    ASSERT_TRUE(rendezvous.Attach(node1, Says(0, NodePhase::kReady), /*local=*/false, agent1).ok());
  }
  agent0->AwaitKind(Kind::kRun);
  rendezvous.Heard(node0.node_id, node0.incarnation);  // This starts the thread.
}

}  // namespace
}  // namespace hlaunch
