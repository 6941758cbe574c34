// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/followers.h"

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr Duration kLease = seconds(5);
constexpr Ballot kOld = {1, 7}, kNew = {1, 8};

// The followers of voter 1 in a group of three.
class ThreeVoters : public testing::Test {
 protected:
  Instant At(int second) const { return began_ + seconds(second); }

  const VoterMembers members_ = {{1, "node0", ""}, {2, "node1", ""}, {3, "node2", ""}};
  const Instant began_ = Instant(seconds(1000));
  Followers followers_{1, began_};
};

TEST_F(ThreeVoters, TheLeaseBeginsWhereTheAnsweredAppendWasSent) {
  const uint64_t first = followers_.NextBeat(At(0), kLease);
  followers_.NextBeat(At(1), kLease);
  const uint64_t third = followers_.NextBeat(At(2), kLease);
  EXPECT_EQ(followers_.LeaseBegan(members_), Instant::min());
  followers_.Appended(2, first, kNew, At(3));
  EXPECT_EQ(followers_.LeaseBegan(members_), At(0));
  followers_.Appended(3, third, kNew, At(3));
  EXPECT_EQ(followers_.LeaseBegan(members_), At(2));
  EXPECT_EQ(followers_.LastBeat(3), third);
}

TEST_F(ThreeVoters, AnAnswerThatWasOvertakenProvesNoLess) {
  const uint64_t first = followers_.NextBeat(At(0), kLease);
  const uint64_t second = followers_.NextBeat(At(1), kLease);
  followers_.Appended(2, second, kNew, At(2));
  followers_.Appended(2, first, kOld, At(2));
  EXPECT_EQ(followers_.LeaseBegan(members_), At(1));
  EXPECT_EQ(followers_.LastBeat(2), second);
  EXPECT_TRUE(followers_.Holds(2, kNew));
  EXPECT_FALSE(followers_.Holds(2, kOld));
}

TEST_F(ThreeVoters, AnAnswerToAnAppendOlderThanALeaseProvesNothing) {
  const uint64_t first = followers_.NextBeat(At(0), kLease);
  const uint64_t second = followers_.NextBeat(At(1), kLease);
  followers_.NextBeat(At(6), kLease);
  followers_.Appended(2, first, kNew, At(6));
  EXPECT_EQ(followers_.LeaseBegan(members_), Instant::min());
  followers_.Appended(2, second, kNew, At(6));
  EXPECT_EQ(followers_.LeaseBegan(members_), At(1));
}

TEST_F(ThreeVoters, AnAnswerToWhatWasNeverSentProvesNothing) {
  const uint64_t last = followers_.NextBeat(At(0), kLease);
  followers_.Appended(2, last + 1, kNew, At(1));
  EXPECT_EQ(followers_.LeaseBegan(members_), Instant::min());
}

TEST_F(ThreeVoters, ALeaseNeedsAsManyAnswersAsPreventAnElection) {
  const uint64_t beat = followers_.NextBeat(At(0), kLease);
  EXPECT_EQ(followers_.LeaseBegan({members_[0]}), Instant::max());
  const VoterMembers pair = {members_[0], members_[1]};  // No vote of its own, no other leader.
  EXPECT_EQ(followers_.LeaseBegan(pair), Instant::max());
  const VoterMembers without = {members_[1], members_[2], {4, "node3", ""}};
  followers_.Appended(2, beat, kNew, At(1));
  EXPECT_EQ(followers_.LeaseBegan(without), Instant::min());
  followers_.Appended(3, beat, kNew, At(1));
  EXPECT_EQ(followers_.LeaseBegan(without), At(0));
}

TEST_F(ThreeVoters, CountsItselfAndThoseThatHoldTheEntry) {
  EXPECT_EQ(followers_.CountHolding(members_, kNew), 1);
  followers_.Appended(2, 0, kNew, At(1));
  followers_.Appended(3, 0, kOld, At(1));
  EXPECT_EQ(followers_.CountHolding(members_, kNew), 2);
  EXPECT_EQ(followers_.CountHolding({members_[1], members_[2]}, kNew), 1);
}

TEST_F(ThreeVoters, SilenceCountsFromTheLastWordOrFromWhenOneWasExpected) {
  EXPECT_EQ(followers_.Heard(2), began_);
  EXPECT_FALSE(followers_.Answered(2));
  followers_.Expect(2, At(3));
  EXPECT_EQ(followers_.Heard(2), At(3));
  EXPECT_FALSE(followers_.Answered(2));
  followers_.Appended(2, 0, kNew, At(5));
  followers_.Expect(2, At(4));
  EXPECT_EQ(followers_.Heard(2), At(5));
  EXPECT_TRUE(followers_.Answered(2));
  followers_.Forgive(seconds(2));
  EXPECT_EQ(followers_.Heard(2), At(7));
  EXPECT_EQ(followers_.Heard(3), At(2));
}

}  // namespace
}  // namespace hlaunch
