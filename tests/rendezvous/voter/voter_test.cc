// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/voter.h"

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Tests single behaviours of voters. The simulator tests what they promise.

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Voters with one clock that hear each other at once unless one is cut off. Their incarnations
// are 1, 2 …; the first one founds the group.
class VoterGroup : public testing::Test {
 protected:
  void Found(int nodes, OnHostLoss on_host_loss = OnHostLoss::kWait, Duration passes = seconds(5)) {
    rule_.on_host_loss = on_host_loss;
    VoterCandidates all;
    all.nodes = nodes;
    for (int i = 1; i <= nodes; ++i) {
      const VoterMember self{static_cast<Incarnation>(i), absl::StrCat("node", i - 1), ""};
      all.candidates.push_back(self);
      voters_.emplace_back(self, rule_);
      steps_.emplace_back();
      next_.push_back(Instant::max());
    }
    Tell(1, VoterFounded{"first"});
    Tell(1, all);
    Pass(passes);
  }

  Voter& At(Incarnation which) { return voters_[which - 1]; }
  // All that a voter was told to do since the last call.
  VoterStep& Of(Incarnation which) { return steps_[which - 1]; }
  void CutOff(Incarnation which) { cut_.insert(which); }
  void Heal(Incarnation which) { cut_.erase(which); }

  void Tell(Incarnation which, const VoterEvent& event) {
    Take(which, At(which).Step(event, now_, 0));
    while (!sent_.empty()) {
      const VoterMessage message = sent_.front();
      sent_.pop_front();
      if (cut_.count(message.from) + cut_.count(message.to) > 0) continue;
      Take(message.to, At(message.to).Step(VoterHeard{message}, now_, 0));
    }
  }

  // Lets `duration` pass for all voters that are not asleep.
  void Pass(Duration duration) {
    const Instant end = now_ + duration;
    while (now_ < end) {
      now_ += milliseconds(100);
      for (Incarnation which = 1; which <= voters_.size(); ++which) {
        if (next_[which - 1] <= now_ && asleep_.count(which) == 0) Tell(which, VoterTimePassed{});
      }
    }
  }

  size_t Leaders() {
    size_t leaders = 0;
    for (const Voter& voter : voters_) leaders += voter.LeadsUntil() > now_ ? 1 : 0;
    return leaders;
  }

  VoterRule rule_;
  Instant now_ = Instant(seconds(1000));
  std::set<Incarnation> asleep_;

 private:
  void Take(Incarnation which, VoterStep step) {
    for (VoterMessage& message : step.send) sent_.push_back(std::move(message));
    VoterStep& sum = Of(which);
    if (step.leads) sum.leads = step.leads;
    if (step.lost) sum.lost = step.lost;
    if (step.decided) sum.decided = step.decided;
    sum.denied = step.denied;
    for (std::string& line : step.news) sum.news.push_back(std::move(line));
    next_[which - 1] = step.next;
  }

  std::vector<Voter> voters_;
  std::vector<VoterStep> steps_;
  std::vector<Instant> next_;
  std::deque<VoterMessage> sent_;
  std::set<Incarnation> cut_;
};

TEST_F(VoterGroup, GrowsToItsSizeOneByOne) {
  Found(7);
  EXPECT_THAT(At(1).entry()->members, SizeIs(5));
  EXPECT_THAT(Of(1).news, Contains("node0 leads from term 1: it is the first"));
  EXPECT_THAT(Of(1).news, Contains("node1 becomes a voter, one of 2"));
  EXPECT_EQ(At(5).entry()->record, "first");
  EXPECT_FALSE(At(7).is_member());
  EXPECT_EQ(At(7).entry(), nullptr);  // Nobody needs the record who is no member.
}

// A host may die in the first moments of its job.
TEST_F(VoterGroup, IsWholeAsSoonAsItsCandidatesAnswer) {
  Found(3, OnHostLoss::kWait, Duration::zero());
  EXPECT_THAT(At(1).entry()->members, SizeIs(3));
  Tell(1, VoterProposed{1, "second"});
  EXPECT_EQ(At(3).entry()->record, "second");
}

// One that leads alone needs no lease. With a group it would need one, which had begun before it
// stood still.
TEST_F(VoterGroup, OneThatStoodStillTakesNobodyInByAnAnswerToWhatItSentBefore) {
  VoterCandidates all;
  all.nodes = 3;
  for (Incarnation i = 1; i <= 3; ++i)
    all.candidates.push_back({i, absl::StrCat("node", i - 1), ""});
  Voter first(all.candidates[0], rule_);
  first.Step(VoterFounded{"first"}, now_, 0);
  const VoterStep asked = first.Step(all, now_, 0);
  ASSERT_THAT(asked.send, SizeIs(2));
  now_ += seconds(10);
  for (const VoterMessage& message : asked.send) {
    Voter other(all.candidates[message.to - 1], rule_);
    for (const VoterMessage& answer : other.Step(VoterHeard{message}, now_, 0).send) {
      EXPECT_FALSE(first.Step(VoterHeard{answer}, now_, 0).lost);
    }
  }
  EXPECT_GT(first.LeadsUntil(), now_);
  EXPECT_THAT(first.entry()->members, SizeIs(1));
}

// What a dead process left on its way is no sign of life, so an old answer is none.
TEST_F(VoterGroup, LeaderTakesNoAnswerToAnOldAppendForASignOfLife) {
  VoterCandidates all;
  all.nodes = 2;
  all.candidates = {{1, "node0", ""}, {2, "node1", ""}};
  for (const int seconds_later : {1, 10}) {
    Voter first(all.candidates[0], rule_);
    first.Step(VoterFounded{"first"}, now_, 0);
    const VoterStep asked = first.Step(all, now_, 0);
    ASSERT_THAT(asked.send, SizeIs(1));
    Voter other(all.candidates[1], rule_);
    const VoterStep said = other.Step(VoterHeard{asked.send[0]}, now_, 0);
    ASSERT_THAT(said.send, SizeIs(1));
    now_ += seconds(seconds_later);
    const VoterStep step = first.Step(VoterHeard{said.send[0]}, now_, 0);
    EXPECT_EQ(step.answered.size(), seconds_later < 5 ? 1U : 0U);
  }
}

// The best two are asked whether they answer, and another one in turn.
TEST_F(VoterGroup, AsksThreeCandidatesAtATime) {
  Voter first({1, "node0", ""}, rule_);
  VoterCandidates all;
  all.nodes = 10;
  for (Incarnation i = 1; i <= 10; ++i) all.candidates.push_back({i, "", ""});
  first.Step(VoterFounded{"first"}, now_, 0);
  Instant next = first.Step(all, now_, 0).next;
  std::set<Incarnation> asked;
  for (int i = 0; i < 10; ++i) {
    const VoterStep step = first.Step(VoterTimePassed{}, next, 0);
    ASSERT_THAT(step.send, SizeIs(3));
    EXPECT_EQ(step.send[0].to, 2U);
    EXPECT_EQ(step.send[1].to, 3U);
    asked.insert(step.send[2].to);
    next = step.next;
  }
  EXPECT_THAT(asked, SizeIs(7));
}

TEST_F(VoterGroup, OneThatDoesNotLeadRefusesAProposal) {
  Found(3);
  Tell(2, VoterProposed{1, "another"});
  EXPECT_EQ(Of(2).denied, "node1 does not lead in term 1, node0 leads in term 1");
  EXPECT_EQ(At(2).entry()->record, "first");
  EXPECT_FALSE(Of(2).decided);
  Tell(1, VoterProposed{7, "another"});
  EXPECT_EQ(Of(1).denied, "node0 does not lead in term 7");
  EXPECT_EQ(At(1).entry()->record, "first");
}

TEST_F(VoterGroup, DecidesWhatAMajorityHolds) {
  Found(3);
  CutOff(3);
  Tell(1, VoterProposed{1, "second"});
  EXPECT_EQ(Of(1).decided, 2U);
  EXPECT_EQ(At(2).entry()->record, "second");
  EXPECT_EQ(At(3).entry()->record, "first");
}

TEST_F(VoterGroup, DecidesNothingWithoutAMajority) {
  Found(3);
  CutOff(2);
  CutOff(3);
  Tell(1, VoterProposed{1, "second"});
  EXPECT_FALSE(Of(1).decided);
  EXPECT_EQ(At(1).Waits(now_ + seconds(3)),
            "node0 waits for node1, node2: 2 of 3 voters must agree");
}

TEST_F(VoterGroup, ElectsTheNewestWhenTheHostIsSilent) {
  Found(3);
  CutOff(3);
  Tell(1, VoterProposed{1, "second"});
  Heal(3);
  CutOff(1);
  Pass(seconds(8));
  EXPECT_EQ(Leaders(), 1U);
  EXPECT_EQ(Of(2).leads, 2U);
  EXPECT_EQ(At(2).entry()->record, "second");
  EXPECT_THAT(Of(2).news,
              Contains(HasSubstr("node1 leads from term 2: node0 has not answered for")));
  EXPECT_THAT(Of(2).news, Contains(HasSubstr("; 2 of 3 voters agree")));
}

TEST_F(VoterGroup, LeaderThatIsCutOffStopsBeforeTheNextBegins) {
  Found(3);
  CutOff(1);
  Pass(milliseconds(4600));
  ASSERT_TRUE(Of(1).lost);
  EXPECT_EQ(*Of(1).lost,
            "node0 does not lead any more: node0 waits for node1, node2: 2 of 3 voters must agree");
  EXPECT_FALSE(Of(2).leads || Of(3).leads);
}

// The votes of a majority are not enough: the former leader may have decided what it lacks.
TEST_F(VoterGroup, OneThatIsElectedLeadsOnceItsFirstEntryIsDecided) {
  const VoterMembers members = {{1, "node0", ""}, {2, "node1", ""}, {3, "node2", ""}};
  Voter voter(members[1], rule_);
  VoterMessage message;
  message.from = 1;
  message.to = 2;
  message.term = 1;
  message.ballot = {1, 5};
  message.entry = std::make_shared<VoterEntry>(VoterEntry{{1, 5}, 2, members, "record"});
  now_ = voter.Step(VoterHeard{message}, now_, 0).next;
  VoterStep step = voter.Step(VoterTimePassed{}, now_, 0);
  for (const auto kind : {VoterMessage::Kind::kPreVote, VoterMessage::Kind::kVote}) {
    ASSERT_THAT(step.send, SizeIs(2));
    EXPECT_EQ(step.send[0].asked, 2U);
    message = {};
    message.kind = kind;
    message.from = 3;
    message.to = 2;
    message.term = step.send[1].term;
    message.asked = 2;
    EXPECT_THAT(voter.Step(VoterHeard{message}, now_, 0).send, IsEmpty()) << "it is refused";
    message.granted = true;
    message.asked = 1;
    EXPECT_THAT(voter.Step(VoterHeard{message}, now_, 0).send, IsEmpty()) << "another term";
    message.asked = 2;
    step = voter.Step(VoterHeard{message}, now_, 0);
  }
  EXPECT_EQ(voter.leader(), 2U);
  EXPECT_FALSE(step.leads);
  message.kind = VoterMessage::Kind::kAppended;
  message.term = 1;
  message.beat = step.send[0].beat;
  message.ballot = {2, 6};
  EXPECT_FALSE(voter.Step(VoterHeard{message}, now_, 0).leads) << "an answer of another term";
  message.term = 2;
  message.ballot = {1, 5};  // It has not taken the entry.
  EXPECT_FALSE(voter.Step(VoterHeard{message}, now_, 0).leads);
  EXPECT_EQ(voter.LeadsUntil(), Instant::min());
  EXPECT_EQ(voter.Step(VoterProposed{2, "early"}, now_, 0).denied, "node1 does not lead in term 2");
  message.ballot = {2, 6};
  EXPECT_EQ(voter.Step(VoterHeard{message}, now_, 0).leads, 2U);
  EXPECT_EQ(voter.LeadsUntil(), now_ + Shortened(rule_.lease));
}

TEST_F(VoterGroup, LeaderThatStoodStillHasLost) {
  Found(3);
  asleep_.insert(1);
  CutOff(1);
  Pass(seconds(20));
  EXPECT_EQ(Leaders(), 1U);
  asleep_.clear();
  Heal(1);
  Tell(1, VoterProposed{1, "late"});
  EXPECT_TRUE(Of(1).lost);
  EXPECT_THAT(Of(1).denied, HasSubstr("node0 does not lead in term 1"));
  Pass(seconds(5));
  EXPECT_EQ(At(1).entry()->record, "first");
  EXPECT_EQ(Leaders(), 1U);
}

// What arrived meanwhile may be the word of a leader.
TEST_F(VoterGroup, FollowerThatStoodStillReadsBeforeItStandsForElection) {
  Found(3);
  for (const Duration late : {Duration(rule_.beat), Duration(rule_.beat + milliseconds(1))}) {
    Voter follower = At(3);
    const Instant due = follower.Step(VoterTimePassed{}, now_, 0).next;
    ASSERT_GT(due, now_ + rule_.beat);
    const VoterStep step = follower.Step(VoterTimePassed{}, due + late, 0);
    EXPECT_EQ(step.send.empty(), late > rule_.beat);
    if (late > rule_.beat) {
      EXPECT_EQ(step.next, due + late + rule_.beat);
    }
  }
}

// Both know that the leader lives. So whoever asks must have been cut off, and waits.
TEST_F(VoterGroup, FollowerGivesNoVoteForALeaseAfterALeadersWord) {
  Found(3);
  Pass(milliseconds(500));
  VoterMessage request;
  request.kind = VoterMessage::Kind::kRequestPreVote;
  request.from = 3;
  request.to = 2;
  request.asked = 2;
  request.ballot = At(3).entry()->ballot;
  VoterMessage word;
  word.from = 1;
  word.to = 2;
  word.term = 1;
  word.ballot = request.ballot;
  Tell(2, VoterHeard{word});
  for (const bool over : {false, true}) {
    Voter follower = At(2);
    const Duration silence = rule_.lease - milliseconds(over ? 0 : 1);
    const VoterStep step = follower.Step(VoterHeard{request}, now_ + silence, 0);
    ASSERT_FALSE(step.send.empty());
    EXPECT_EQ(step.send[0].kind, VoterMessage::Kind::kPreVote);
    EXPECT_EQ(step.send[0].granted, over);
  }
}

TEST_F(VoterGroup, FollowerThatWasCutOffDeposesNobody) {
  Found(3);
  CutOff(3);
  Pass(seconds(12));
  Heal(3);
  Pass(seconds(5));
  EXPECT_FALSE(Of(1).lost);
  EXPECT_EQ(At(3).term(), 1U);
}

TEST_F(VoterGroup, ReplacesAVoterThatIsSilent) {
  Found(6);
  CutOff(2);
  Pass(seconds(20));
  EXPECT_THAT(Of(1).news,
              Contains(HasSubstr("node1 is no voter any more: it has not answered for 15.")));
  EXPECT_THAT(Of(1).news, Contains("node5 becomes a voter, one of 5"));
}

TEST_F(VoterGroup, LetsAVoterGoThatIsNoNodeOfTheJobAnyMoreUnlessOnlyTwoAreLeft) {
  Found(3);
  Tell(1, VoterCandidates{{At(1).self(), At(2).self()}, 3});
  Pass(seconds(1));
  EXPECT_THAT(Of(1).news, Contains("node2 is no voter any more: it is not among the job's nodes "
                                   "any more"));
  Tell(1, VoterCandidates{{At(1).self()}, 3});
  Pass(seconds(1));
  EXPECT_THAT(At(1).entry()->members, SizeIs(2));
}

TEST_F(VoterGroup, OneThatWasRemovedHearsOfIt) {
  Found(6);
  CutOff(2);
  Pass(seconds(30));
  Heal(2);
  Pass(seconds(10));
  EXPECT_FALSE(At(2).is_member());
  EXPECT_THAT(Of(2).news, Contains(HasSubstr("node1 is no voter any more: a newer group")));
  EXPECT_FALSE(Of(1).lost);
}

// The newer group may never have been decided, and all that knew of it may be dead. Then the living
// ones need the entry of the member that was to be removed.
TEST(Voter, AsksForVotesThoughItWasToldThatItIsRemoved) {
  const VoterMembers members = {{1, "node0", ""}, {2, "node1", ""}, {3, "node2", ""}};
  Voter voter(members[1], {});
  VoterMessage message;
  message.from = 1;
  message.to = 2;
  message.term = 1;
  message.ballot = {1, 5};
  message.entry = std::make_shared<VoterEntry>(VoterEntry{{1, 5}, 2, members, "record"});
  Instant now(seconds(1000));
  voter.Step(VoterHeard{message}, now, 0);
  message.kind = VoterMessage::Kind::kRemoved;
  message.ballot = {1, 6};
  const VoterStep removed = voter.Step(VoterHeard{message}, now + seconds(6), 0);
  EXPECT_THAT(removed.news, SizeIs(1));
  EXPECT_FALSE(voter.is_member());
  EXPECT_THAT(removed.send, IsEmpty());
  const VoterStep asks = voter.Step(VoterTimePassed{}, removed.next, 0);
  EXPECT_THAT(asks.send, AllOf(SizeIs(2), Each(Field(&VoterMessage::asked, 2U))));
  EXPECT_EQ(asks.next, removed.next + 2 * VoterRule().lease);  // It is in no hurry.
}

// Else a request that was long on its way could make a second leader of the term.
TEST(Voter, VotesOnceInATermThoughItHasHeardALeaderSince) {
  const VoterMembers members = {{1, "node0", ""}, {2, "node1", ""}, {3, "node2", ""}};
  const VoterRule rule;
  Voter voter(members[1], rule);
  Instant now(seconds(1000));
  VoterMessage word;
  word.from = 1;
  word.to = 2;
  word.term = 1;
  word.ballot = {1, 5};
  word.entry = std::make_shared<VoterEntry>(VoterEntry{{1, 5}, 2, members, "record"});
  voter.Step(VoterHeard{word}, now, 0);
  VoterMessage request = word;
  request.entry = nullptr;
  request.kind = VoterMessage::Kind::kRequestVote;
  request.asked = 2;
  request.from = 3;
  now += rule.lease;
  EXPECT_TRUE(voter.Step(VoterHeard{request}, now, 0).send[0].granted);
  word.from = 3;
  word.term = 2;
  voter.Step(VoterHeard{word}, now, 0);
  EXPECT_EQ(voter.leader(), 3U);
  request.from = 1;
  const VoterStep again = voter.Step(VoterHeard{request}, now + rule.lease, 0);
  EXPECT_EQ(again.send[0].kind, VoterMessage::Kind::kVote);
  EXPECT_FALSE(again.send[0].granted);
}

TEST(Voter, TakesNothingOfAnAppendOfAnOlderTerm) {
  const VoterMembers members = {{1, "node0", ""}, {2, "node1", ""}, {3, "node2", ""}};
  Voter voter(members[1], {});
  const Instant now(seconds(1000));
  VoterMessage word;
  word.from = 3;
  word.to = 2;
  word.term = 4;
  word.ballot = {1, 5};
  word.entry = std::make_shared<VoterEntry>(VoterEntry{{1, 5}, 2, members, "record"});
  voter.Step(VoterHeard{word}, now, 0);
  word.from = 1;
  word.term = 3;
  word.ballot = {3, 6};
  word.entry = std::make_shared<VoterEntry>(VoterEntry{{3, 6}, 3, members, "old"});
  const VoterStep step = voter.Step(VoterHeard{word}, now, 0);
  ASSERT_THAT(step.send, SizeIs(1));
  EXPECT_EQ(step.send[0].term, 4U);
  EXPECT_EQ(voter.entry()->record, "record");
  EXPECT_EQ(voter.leader(), 3U);
}

TEST_F(VoterGroup, ProofOfAnotherFollowersDeathIsNoReasonForAnElection) {
  Found(3);
  EXPECT_THAT(At(2).Step(VoterProvenDead{3}, now_, 0).send, IsEmpty());
}

TEST_F(VoterGroup, ProofOfDeathElectsAtOnce) {
  Found(3);
  CutOff(1);
  asleep_.insert(1);
  Tell(2, VoterProvenDead{1});
  Tell(3, VoterProvenDead{1});
  Pass(seconds(1));
  EXPECT_NE(Of(2).leads.has_value(), Of(3).leads.has_value());
}

TEST_F(VoterGroup, LeaderOfTwoGoesOnAloneOnceTheOtherOneHasLapsed) {
  Found(2);
  CutOff(2);
  Tell(1, VoterProposed{1, "second"});
  Pass(seconds(14));
  EXPECT_FALSE(Of(1).decided);
  Pass(seconds(2));
  EXPECT_EQ(Of(1).decided, 2U);
  EXPECT_FALSE(Of(1).lost);
  EXPECT_FALSE(Of(2).leads);
}

TEST_F(VoterGroup, LeaderOfTwoDecidesInTheMomentInWhichTheOtherOneIsProvenDead) {
  Found(2);
  CutOff(2);
  Tell(1, VoterProposed{1, "second"});
  EXPECT_FALSE(Of(1).decided);
  Tell(1, VoterProvenDead{2});
  EXPECT_EQ(Of(1).decided, 2U);
}

TEST_F(VoterGroup, FollowerOfTwoGoesOnByProofOfDeath) {
  Found(2);
  CutOff(1);
  asleep_.insert(1);
  Pass(seconds(3));
  EXPECT_FALSE(Of(2).leads);
  Tell(2, VoterProvenDead{1});
  EXPECT_EQ(Of(2).leads, 2U);
  EXPECT_THAT(Of(2).news,
              Contains("node1 leads from term 2: node0 is dead, and decided nothing that node1 "
                       "does not hold"));
}

// By then the other one may have gone on alone and decided something that this one has not heard.
TEST_F(VoterGroup, FollowerOfTwoDoesNotGoOnByProofThatComesTooLate) {
  Found(2);
  CutOff(1);
  Pass(seconds(20));
  Tell(2, VoterProvenDead{1});
  Pass(seconds(60));
  EXPECT_FALSE(Of(2).leads);
  EXPECT_EQ(At(2).Waits(now_),
            "node1 waits for node0: 2 of 2 voters must agree; one of two cannot tell whether the "
            "other one is dead, so it goes on by proof of its death, or with --on-host-loss "
            "continue");
}

TEST_F(VoterGroup, FollowerOfTwoContinuesWhereItIsTold) {
  Found(2, OnHostLoss::kContinue);
  CutOff(1);
  Pass(seconds(39));
  EXPECT_FALSE(Of(2).leads);
  Pass(seconds(5));
  EXPECT_EQ(Of(2).leads, 2U);
  EXPECT_THAT(Of(2).news, Contains(AllOf(HasSubstr(": node0 has not answered for 4"),
                                         HasSubstr(" s, and --on-host-loss continue says"))));
}

TEST_F(VoterGroup, FollowerOfTwoContinuesAsSoonAsItsTimeIsOver) {
  rule_.continue_after = rule_.lease;  // When it would stand for election otherwise.
  Found(2, OnHostLoss::kContinue);
  CutOff(1);
  const Instant due = At(2).Step(VoterTimePassed{}, now_, 0).next;
  EXPECT_EQ(At(2).Step(VoterTimePassed{}, due, 0).leads, 2U);
}

TEST_F(VoterGroup, ProcessThatIsStartedAnewHearsNothingMeantForTheFormer) {
  Found(3);
  Voter again({99, "node2", ""}, rule_);
  VoterMessage request;
  request.kind = VoterMessage::Kind::kRequestVote;
  request.from = 2;
  request.to = 3;
  request.asked = 7;
  EXPECT_THAT(again.Step(VoterHeard{request}, now_, 0).send, IsEmpty());
}

}  // namespace
}  // namespace hlaunch
