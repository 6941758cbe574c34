// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/join_again.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

AgentResult Ended(absl::Status end, int restarts = 0) {
  AgentResult result;
  result.end = std::move(end);
  result.restarts = restarts;
  return result;
}

TEST(DecideJoinAgain, JoinsWhatHasReplacedTheRendezvousWithRestartsLeft) {
  const absl::Status other = absl::OutOfRangeError("comes from round 1");
  EXPECT_TRUE(DecideJoinAgain(Ended(other), 0, 1, {}).joins);
  EXPECT_FALSE(DecideJoinAgain(Ended(other), 0, 0, {}).joins);
  EXPECT_FALSE(DecideJoinAgain(Ended(other, 1), 0, 1, {}).joins);
  EXPECT_FALSE(DecideJoinAgain(Ended(other), 1, 1, {}).joins);
  const JoinAgain third = DecideJoinAgain(Ended(other, 1), 1, 3, {});
  EXPECT_EQ(third.used, 3);
  EXPECT_EQ(third.reason,
            "comes from round 1; joining the new rendezvous, which counts as restart 3 of 3");
}

TEST(DecideJoinAgain, WaitsForAReplacementInAPodAlone) {
  const absl::Status silence = absl::DeadlineExceededError("nothing heard");
  EXPECT_TRUE(DecideJoinAgain(Ended(silence), 0, 1, {true}).joins);
  EXPECT_FALSE(DecideJoinAgain(Ended(silence), 0, 1, {}).joins);
}

// Nothing is lost then, and whoever lost the host's node starts it again.
TEST(DecideJoinAgain, WaitsAsBeforeWhereNoRoundHadBegun) {
  const absl::Status silence = absl::DeadlineExceededError("nothing heard");
  for (const bool in_pod : {false, true}) {
    const JoinAgain again = DecideJoinAgain(Ended(silence), 2, 3, {in_pod, false});
    EXPECT_TRUE(again.joins);
    EXPECT_EQ(again.used, 2);
    EXPECT_EQ(again.reason,
              "nothing heard; no round had begun, so this node waits for the rendezvous to be "
              "started again there; no restart is used");
    EXPECT_FALSE(DecideJoinAgain(Ended(silence), 3, 3, {in_pod, false}).joins);
    EXPECT_FALSE(DecideJoinAgain(Ended(silence), 0, 0, {in_pod, false}).joins);
  }
}

TEST(DecideJoinAgain, LeavesEveryOtherEndAsItIs) {
  for (const absl::Status& end :
       {absl::OkStatus(), absl::AbortedError("given up"), absl::FailedPreconditionError("over"),
        absl::UnavailableError("never reached"), absl::PermissionDeniedError("token")}) {
    EXPECT_FALSE(DecideJoinAgain(Ended(end), 0, 9, {true}).joins) << end;
  }
  AgentResult over = Ended(absl::OkStatus());
  over.outcome.emplace();
  EXPECT_FALSE(DecideJoinAgain(over, 0, 9, {true}).joins);
}

}  // namespace
}  // namespace hlaunch
