// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/file/voter_thread.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/voter/file/boot_clock.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;

// Three voters with their own threads in this process. They hear each other unless one is gone.
// On a busy machine the leader may change at any time, so tests ask which one leads.
class ThreeVoters : public testing::Test {
 protected:
  struct Lead {
    int who = -1;
    Term term = 0;
    uint64_t version = 0;
    std::string record;
  };

  void SetUp() override {
    rule_.lease = seconds(1);
    rule_.beat = milliseconds(100);
    rule_.lapse_after = seconds(600);
    VoterCandidates all;
    all.nodes = 3;
    for (int who = 0; who < 3; ++who) all.candidates.push_back(Member(who));
    for (int who = 0; who < 3; ++who) Begin(who);
    for (int who = 0; who < 3; ++who) voters_[who]->Give(all);
    voters_[0]->Give(VoterFounded{"first"});
  }

  void TearDown() override {
    for (int who = 0; who < 3; ++who) End(who);
  }

  static VoterMember Member(int who) {
    return {static_cast<Incarnation>(who + 1), absl::StrCat("node", who), ""};
  }

  // Ends a voter as if its host lost its power.
  void End(int who) {
    std::unique_ptr<VoterThread> voter;
    MutexLock lock(&mu_);
    voter = std::exchange(voters_[who], nullptr);
    if (lead_.who == who) lead_ = {};
    mu_.Unlock();  // Its thread may wait for the lock.
    voter.reset();
    mu_.Lock();
  }

  // Waits until all three are voters: two would not go on without the third.
  void AwaitWhole() {
    MutexLock lock(&mu_);
    while (!whole_) changed_.Wait(&mu_);
  }

  Lead AwaitLead() {
    MutexLock lock(&mu_);
    while (lead_.who < 0) changed_.Wait(&mu_);
    return lead_;
  }

  // Replaces the kept record, whichever voter leads. Returns the leader that did it.
  Lead Keep(const std::string& record) {
    for (;;) {
      Lead lead = AwaitLead();
      const absl::StatusOr<uint64_t> kept = KeepAt(lead, record, lead.version);
      if (!kept.ok()) continue;
      MutexLock lock(&mu_);
      if (lead_.who != lead.who || lead_.term != lead.term) continue;
      lead_.version = *kept;
      return lead_;
    }
  }

  absl::StatusOr<uint64_t> KeepAt(const Lead& lead, const std::string& record, uint64_t expected) {
    return voters_[lead.who]->Keep(lead.term, record, expected,
                                   MonotonicClock().Now() + seconds(60));
  }

 private:
  void Begin(int who) {
    VoterThread::Options options;
    options.self = Member(who);
    options.rule = rule_;
    options.clock = &clock_;
    options.random = [this] { return random_ += 0x9e3779b97f4a7c15u; };
    options.send = [this](const VoterMessage& message) {
      MutexLock lock(&mu_);
      const auto& to = voters_[static_cast<int>(message.to) - 1];
      if (to != nullptr) to->Give(VoterHeard{message});
    };
    options.leads = [this, who](Term term, const VoterEntry& entry) {
      MutexLock lock(&mu_);
      lead_ = {who, term, entry.version, entry.record};
      changed_.SignalAll();
    };
    options.lost = [this, who](const std::string&) {
      MutexLock lock(&mu_);
      if (lead_.who == who) lead_ = {};
    };
    options.news = [this](const std::string& line) {
      MutexLock lock(&mu_);
      whole_ = whole_ || line.find("becomes a voter, one of 3") != std::string::npos;
      changed_.SignalAll();
    };
    auto voter = *VoterThread::Start(std::move(options));
    MutexLock lock(&mu_);
    voters_[who] = std::move(voter);
  }

  VoterRule rule_;
  BootClock clock_;
  std::atomic<uint64_t> random_ = 0;
  Mutex mu_;
  CondVar changed_;
  std::map<int, std::unique_ptr<VoterThread>> voters_;  // Only the test's thread changes it.
  Lead lead_;
  bool whole_ = false;
};

TEST_F(ThreeVoters, KeepWhatTheNextLeaderHas) {
  Keep("second");
  Keep("third");
  AwaitWhole();
  End(AwaitLead().who);
  EXPECT_EQ(AwaitLead().record, "third");
  Keep("fourth");
}

TEST_F(ThreeVoters, RefuseARecordThatDoesNotTakeThePlaceOfTheLast) {
  const Lead lead = Keep("second");
  EXPECT_EQ(KeepAt(lead, "third", lead.version + 1).status().code(), absl::StatusCode::kAborted);
  const Lead other{(lead.who + 1) % 3, lead.term, lead.version, ""};
  EXPECT_EQ(KeepAt(other, "third", lead.version).status().code(), absl::StatusCode::kAborted);
}

TEST_F(ThreeVoters, SayWhoDoesNotAnswer) {
  AwaitWhole();
  const Lead lead = Keep("second");
  for (int who = 0; who < 3; ++who) {
    if (who != lead.who) End(who);
  }
  const absl::Status status = KeepAt(lead, "third", lead.version).status();
  // On a busy machine another one may have been elected before; then the message says that.
  EXPECT_THAT(std::string(status.message()),
              AnyOf(HasSubstr("2 of 3 voters must agree"), HasSubstr("has voted")))
      << status;
}

}  // namespace
}  // namespace hlaunch
