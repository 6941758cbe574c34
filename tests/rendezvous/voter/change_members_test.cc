// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/change_members.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/voter/voter_words.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

VoterMembers Group(const std::vector<Incarnation>& incarnations) {
  VoterMembers members;
  for (const Incarnation incarnation : incarnations) {
    members.push_back({incarnation, absl::StrCat("node", incarnation), ""});
  }
  return members;
}

GroupView View(const std::vector<Incarnation>& members, int size) {
  GroupView view;
  view.leader = 1;
  view.decided = view.members = Group(members);
  view.answering.insert(members.begin(), members.end());
  view.size = size;
  return view;
}

// Sets the members of a proposal that is not decided yet.
void Propose(GroupView& view, const std::vector<Incarnation>& members) {
  view.members = Group(members);
  view.open.push_back(view.members);
}

// The members as "1, 2, 3", or the name of a verdict without a change.
std::string Words(const MembersVerdict& verdict) {
  if (!verdict.members) return "none";
  std::vector<Incarnation> those;
  for (const VoterMember& member : *verdict.members) those.push_back(member.incarnation);
  return NamesOf({}, those);
}

constexpr bool kDead = true, kSilent = false;

TEST(DecideMembers, LeavesAWholeGroupAlone) {
  EXPECT_EQ(Words(DecideMembers(View({1, 2, 3}, 3))), "none");
}

TEST(DecideMembers, AddsOneAtATime) {
  GroupView view = View({1}, 5);
  view.ready = Group({2, 3});
  const MembersVerdict verdict = DecideMembers(view);
  EXPECT_EQ(Words(verdict), "1, 2");
  EXPECT_EQ(verdict.reason, "node2 becomes a voter, one of 2");
  Propose(view, {1, 2});
  EXPECT_EQ(Words(DecideMembers(view)), "none");
}

TEST(DecideMembers, RemovesOneAtATimeTheWorstFirst) {
  GroupView view = View({1, 2, 3, 4, 5}, 5);
  view.lapsed = {{3, kDead, "is dead"}, {2, kSilent, "has not answered for 15.0 s"}};
  const MembersVerdict verdict = DecideMembers(view);
  EXPECT_EQ(Words(verdict), "1, 2, 4, 5");
  EXPECT_EQ(verdict.reason, "node3 is no voter any more: it is dead");
  Propose(view, {1, 2, 4, 5});
  EXPECT_EQ(Words(DecideMembers(view)), "none");
}

TEST(DecideMembers, RemovesNobodyWithoutWhomNoMajorityAnswers) {
  GroupView view = View({1, 2, 3}, 3);
  view.answering = {1, 3};
  view.lapsed = {{3, kSilent, "is not among the job's nodes any more"}};
  EXPECT_EQ(Words(DecideMembers(view)), "none");
}

TEST(DecideMembers, TakesBackAChangeThatNoMajorityAnswers) {
  GroupView view = View({1, 2, 3, 4, 5}, 5);
  Propose(view, {1, 2, 3, 4});
  view.answering = {1, 2, 5};
  EXPECT_EQ(Words(DecideMembers(view)), "1, 2, 3, 4, 5");
  view.members = view.decided;
  view.lapsed = {{4, kSilent, "s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "none");  // Not before the proposal is decided.
}

TEST(DecideMembers, TakesBackNoChangeToTwoBeforeTheOtherOneHasLapsed) {
  GroupView view = View({1, 2, 3}, 3);
  Propose(view, {1, 2});
  view.answering = {1, 3};
  EXPECT_EQ(Words(DecideMembers(view)), "none");
  view.lapsed = {{2, kSilent, "s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "1, 2, 3");
}

TEST(DecideMembers, RemovesBeforeItAdds) {
  GroupView view = View({1, 2, 3}, 3);
  view.lapsed = {{3, kDead, "is dead"}};
  view.ready = Group({4});
  EXPECT_EQ(Words(DecideMembers(view)), "1, 2");
}

TEST(DecideMembers, GoesOnWithoutAllThatAreDeadIfTheyAreTooMany) {
  GroupView view = View({1, 2, 3, 4, 5}, 5);
  view.lapsed = {{2, kDead, "is dead"}, {3, kDead, "is dead"}, {4, kDead, "is dead"}};
  const MembersVerdict verdict = DecideMembers(view);
  EXPECT_EQ(Words(verdict), "1, 5");
  EXPECT_THAT(verdict.reason, HasSubstr("nobody else can be elected"));
}

// If three are silent, two of them may have elected the third.
TEST(DecideMembers, DoesNotTakeSilenceForDeath) {
  GroupView view = View({1, 2, 3, 4, 5}, 5);
  view.lapsed = {{2, kSilent, "s"}, {3, kSilent, "s"}, {4, kSilent, "s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "1, 3, 4, 5");
}

TEST(DecideMembers, GoesOnAloneWhereTheOtherOfTwoHasLapsed) {
  GroupView view = View({1, 2}, 2);
  view.lapsed = {{2, kSilent, "has not answered for 15.0 s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "1");
}

TEST(DecideMembers, GoesOnAloneWhereTheOneThatIsBeingAddedHasLapsed) {
  GroupView view = View({1}, 3);
  Propose(view, {1, 2});
  view.lapsed = {{2, kSilent, "s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "1");
}

// The two lapsed members hold the former group and are a majority of it.
TEST(DecideMembers, DoesNotGoOnAloneWhereAThirdIsNotYetRemoved) {
  GroupView view = View({1, 2, 3}, 3);
  Propose(view, {1, 2});
  view.answering = {1};
  view.lapsed = {{2, kSilent, "s"}, {3, kSilent, "s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "none");
}

// The third lives and belongs only to the former group, but has no vote other than its own.
TEST(DecideMembers, GoesOnAloneWhereAllOthersOfBothGroupsButOneAreDead) {
  GroupView view = View({1, 2, 3}, 3);
  Propose(view, {1, 2});
  view.answering = {1};
  view.lapsed = {{2, kDead, "is dead"}, {3, kSilent, "s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "1");
}

// The two silent members are a majority of the former group, so one of them may lead it already.
TEST(DecideMembers, DoesNotGoOnWithoutTheDeadWhereTheRestOfAnotherGroupCouldElect) {
  GroupView view = View({1, 4, 5}, 3);
  Propose(view, {1, 2, 3});
  view.answering = {1};
  view.lapsed = {
      {2, kDead, "is dead"}, {3, kDead, "is dead"}, {4, kSilent, "s"}, {5, kSilent, "s"}};
  EXPECT_EQ(Words(DecideMembers(view)), "none");
  view.lapsed[2].dead = true;
  EXPECT_EQ(Words(DecideMembers(view)), "1");
}

TEST(SameMembers, ComparesIncarnationsInAnyOrder) {
  EXPECT_TRUE(SameMembers(Group({1, 2, 3}), Group({3, 1, 2})));
  EXPECT_FALSE(SameMembers(Group({1, 2, 3}), Group({1, 2, 4})));
  EXPECT_FALSE(SameMembers(Group({1, 2}), Group({1, 2, 3})));
  EXPECT_FALSE(SameMembers(Group({1, 2, 3}), Group({1, 2})));
}

TEST(GroupSize, IsOddWhereItCan) {
  EXPECT_EQ(GroupSize(1), 1);
  EXPECT_EQ(GroupSize(2), 2);
  EXPECT_EQ(GroupSize(3), 3);
  EXPECT_EQ(GroupSize(4), 3);
  EXPECT_EQ(GroupSize(5), 5);
  EXPECT_EQ(GroupSize(4096), 5);
}

TEST(Blocking, IsWhatEachMajorityMeets) {
  for (int members = 1; members <= 9; ++members) {
    EXPECT_EQ(Majority(members) + Blocking(members), members + 1);
  }
}

}  // namespace
}  // namespace hlaunch
