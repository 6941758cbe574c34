// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/job/record/record_keeper.h"
#include "tests/rendezvous/rounds.h"

// Tests that every RecordKeeper must pass. An implementation provides a KeepingPlace and
// instantiates RecordKeeperContract with it.

namespace hlaunch {

// A place for records that is empty at first.
class KeepingPlace {
 public:
  virtual ~KeepingPlace() = default;
  // Begins to lead there. AlreadyExists while another keeper leads.
  virtual absl::StatusOr<std::unique_ptr<RecordKeeper>> Lead() = 0;
  // Makes the leader lose, as an expired lease does. False: a leader cannot lose there.
  virtual bool TakeAway() = 0;
};

struct KeepingPlaceMaker {
  const char* name;
  std::function<std::unique_ptr<KeepingPlace>()> make;  // Gives null if unavailable here.
};

inline void PrintTo(const KeepingPlaceMaker& maker, std::ostream* out) { *out << maker.name; }

inline JobRecord KeptJob(const std::string& job_id, Round round) {
  JobRecord record;
  record.job_id = job_id;
  record.policy = Policy(2, 2, 3);
  record.state = JobState::kRunning;
  record.round = round;
  record.round_nodes = kMaxNodes;  // Enough for tests that add members.
  for (int i = 0; i < 2; ++i) {
    MemberRecord member;
    member.info = Node(i, 2, 2);
    member.info.job_id = job_id;
    member.told = round;
    member.node_rank = i;
    record.members.push_back(member);
  }
  return record;
}

inline JobRecord ForgottenJob(const std::string& job_id) {
  JobRecord record = KeptJob(job_id, 9);
  record.state = JobState::kOver;
  record.members.clear();
  return record;
}

class RecordKeeperContract : public testing::TestWithParam<KeepingPlaceMaker> {
 protected:
  void SetUp() override {
    place_ = GetParam().make();
    if (place_ == nullptr) GTEST_SKIP() << "what it needs is not installed";
  }

  std::unique_ptr<RecordKeeper> Lead() {
    auto keeper = place_->Lead();
    EXPECT_TRUE(keeper.ok()) << keeper.status();
    return keeper.ok() ? std::move(keeper).value() : nullptr;
  }
  // The kept jobs and their rounds, such as "a@3 b@1".
  static std::string Said(RecordKeeper& keeper) {
    const auto listed = keeper.List();
    if (!listed.ok()) return listed.status().ToString();
    std::vector<std::string> words;
    for (const KeptRecord& kept : listed->records) {
      EXPECT_NE(kept.version, 0u);
      words.push_back(kept.record.job_id + "@" + std::to_string(kept.record.round));
    }
    std::sort(words.begin(), words.end());
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  }

  std::unique_ptr<KeepingPlace> place_;
};

TEST_P(RecordKeeperContract, GoesOnWhereTheOneBeforeItStood) {
  {
    const auto first = Lead();
    EXPECT_EQ(Said(*first), "");
    const auto a = first->Keep(KeptJob("a", 1), 0);
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(first->Keep(KeptJob("b/../c d%", 5), 0).ok());
    const auto again = first->Keep(KeptJob("a", 2), *a);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_NE(*again, *a);
  }
  const auto second = Lead();
  EXPECT_EQ(Said(*second), "a@2 b/../c d%@5");
  const auto listed = second->List();
  const KeptRecord& a =
      listed->records[0].record.job_id == "a" ? listed->records[0] : listed->records[1];
  EXPECT_EQ(a.record.members.size(), 2u);
  EXPECT_TRUE(second->Keep(KeptJob("a", 3), a.version).ok());
  EXPECT_EQ(Said(*second), "a@3 b/../c d%@5");
}

TEST_P(RecordKeeperContract, RefusesWhatIsNotInThePlaceOfTheExpected) {
  const auto keeper = Lead();
  const auto a = keeper->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok());
  EXPECT_TRUE(absl::IsAborted(keeper->Keep(KeptJob("a", 7), 0).status()));
  EXPECT_TRUE(absl::IsAborted(keeper->Keep(KeptJob("a", 7), *a + 1).status()));
  EXPECT_TRUE(absl::IsAborted(keeper->Keep(KeptJob("b", 7), 3).status()));
  EXPECT_EQ(Said(*keeper), "a@1");
}

TEST_P(RecordKeeperContract, ForgetsWhatIsOverAndHasNobodyLeft) {
  const auto keeper = Lead();
  const auto a = keeper->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok());
  const auto forgotten = keeper->Keep(ForgottenJob("a"), *a);
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_EQ(*forgotten, 0u);
  EXPECT_EQ(*keeper->Keep(ForgottenJob("a"), 0), 0u);  // Forgetting twice does no harm.
  EXPECT_EQ(Said(*keeper), "");
  EXPECT_TRUE(keeper->Keep(KeptJob("a", 1), 0).ok());
  EXPECT_EQ(Said(*keeper), "a@1");
}

TEST_P(RecordKeeperContract, KeepsTheJobOfManyNodes) {
  JobRecord record = KeptJob("a", 1);
  record.policy = Policy(1000, 1000, 3);
  for (int i = 2; i < 1000; ++i) {
    record.members.push_back(record.members[0]);
    record.members.back().node_rank = i;
    record.members.back().info = Node(i, 1000, 1000);
    record.members.back().info.job_id = "a";
    record.members.back().info.address = "10.0.0.1";
  }
  const auto keeper = Lead();
  ASSERT_TRUE(keeper->Keep(record, 0).ok());
  const auto listed = keeper->List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->warnings, testing::IsEmpty());
  ASSERT_EQ(listed->records.size(), 1u);
  EXPECT_EQ(listed->records[0].record.members.size(), 1000u);
}

TEST_P(RecordKeeperContract, OneLeadsAtATime) {
  auto first = Lead();
  EXPECT_GT(first->LeadsUntil(), MonotonicClock().Now());
  const auto second = place_->Lead();
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  first.reset();
  EXPECT_TRUE(place_->Lead().ok());
}

TEST_P(RecordKeeperContract, WhoHasLostKeepsNothing) {
  const auto first = Lead();
  const auto a = first->Keep(KeptJob("a", 1), 0);
  ASSERT_TRUE(a.ok());
  if (!place_->TakeAway()) return;  // No leader can lose here.
  const auto second = Lead();
  EXPECT_EQ(Said(*second), "a@1");
  EXPECT_TRUE(absl::IsAborted(first->Keep(KeptJob("a", 2), *a).status()));
  EXPECT_TRUE(absl::IsAborted(first->Keep(KeptJob("b", 1), 0).status()));
  EXPECT_TRUE(absl::IsAborted(first->Keep(ForgottenJob("a"), *a).status()));
  EXPECT_TRUE(absl::IsAborted(first->List().status()));
  EXPECT_LT(first->LeadsUntil(), MonotonicClock().Now());
  EXPECT_EQ(Said(*second), "a@1");
}

}  // namespace hlaunch
