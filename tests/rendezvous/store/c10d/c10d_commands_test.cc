// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/rendezvous/store/c10d/c10d_bytes.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The keys of a store and the answers to its clients.
class Commands : public testing::Test {
 protected:
  absl::StatusOr<C10dCommands::Outcome> Execute(C10dCommands::ClientId client, C10dOp op,
                                                std::vector<std::string> keys = {},
                                                std::vector<std::string> values = {},
                                                int64_t number = 0) {
    reply_.clear();
    return commands_.Execute(client, {op, std::move(keys), std::move(values), number}, &reply_);
  }

  // The reply; "waits" if there is none yet.
  std::string Answer(C10dCommands::ClientId client, C10dOp op, std::vector<std::string> keys = {},
                     std::vector<std::string> values = {}, int64_t number = 0) {
    const auto outcome = Execute(client, op, std::move(keys), std::move(values), number);
    if (!outcome.ok()) return outcome.status().ToString();
    return outcome->waits ? "waits" : reply_;
  }

  C10dCommands commands_{StoreLimits{.value_bytes = 100}};
  std::string reply_;
};

TEST_F(Commands, AnswerWhatTheyRead) {
  EXPECT_EQ(Answer(1, C10dOp::kSet, {"k"}, {"v"}), "");
  EXPECT_EQ(Answer(1, C10dOp::kGet, {"k"}), Text("v"));
  EXPECT_EQ(Answer(1, C10dOp::kGet, {"absent"}), Text(""));
  EXPECT_EQ(Answer(1, C10dOp::kMultiGet, {"k", "absent", "k"}), Text("v") + Text("") + Text("v"));
  EXPECT_EQ(Answer(1, C10dOp::kCheck, {"k"}), Byte(kC10dReady));
  EXPECT_EQ(Answer(1, C10dOp::kCheck, {"k", "absent"}), Byte(kC10dNotReady));
  EXPECT_EQ(Answer(1, C10dOp::kNumKeys), Int64(1));
  EXPECT_EQ(Answer(1, C10dOp::kListKeys), Int64(1) + Text("k"));
  EXPECT_EQ(Answer(1, C10dOp::kPing, {}, {}, 77), std::string("\x4d\0\0\0", 4));
}

TEST_F(Commands, AnswerWhatTheyStore) {
  EXPECT_EQ(Answer(1, C10dOp::kAdd, {"n"}, {}, 5), Int64(5));
  EXPECT_EQ(Answer(1, C10dOp::kAppend, {"n"}, {"0"}), "");
  EXPECT_EQ(Answer(1, C10dOp::kCompareSet, {"n"}, {"49", "1"}), Text("50"));
  EXPECT_EQ(Answer(1, C10dOp::kCompareSet, {"n"}, {"50", "1"}), Text("1"));
  EXPECT_EQ(Answer(1, C10dOp::kDeleteKey, {"n"}), Int64(1));
  EXPECT_EQ(Answer(1, C10dOp::kDeleteKey, {"n"}), Int64(0));
  EXPECT_EQ(Answer(1, C10dOp::kQueuePush, {"q"}, {"item"}), "");
  EXPECT_EQ(Answer(1, C10dOp::kQueueLen, {"q"}), Int64(1));
  EXPECT_EQ(Answer(1, C10dOp::kQueuePop, {"q"}), Int64(1) + Text("item"));
  EXPECT_EQ(Answer(1, C10dOp::kQueuePop, {"q"}), Int64(0));
}

TEST_F(Commands, AWaitIsAnsweredOnceAllItsKeysAreThere) {
  EXPECT_EQ(Answer(1, C10dOp::kWait, {"a", "b"}), "waits");
  Answer(2, C10dOp::kSet, {"a"}, {""});
  EXPECT_THAT(commands_.TakeReady(), IsEmpty());
  Answer(2, C10dOp::kSet, {"b"}, {""});
  EXPECT_THAT(commands_.TakeReady(), ElementsAre(1));
  EXPECT_THAT(commands_.TakeReady(), IsEmpty());
  EXPECT_EQ(Answer(1, C10dOp::kWait, {"a", "b"}), Byte(kC10dStopWaiting));
}

TEST_F(Commands, ABarrierOpensWithTheLastArrival) {
  EXPECT_EQ(Answer(1, C10dOp::kBarrier, {"b"}, {}, 2), "waits");
  EXPECT_EQ(Answer(2, C10dOp::kBarrier, {"b"}, {}, 2), Byte(kC10dStopWaiting));
  EXPECT_THAT(commands_.TakeReady(), ElementsAre(1));
}

TEST_F(Commands, OneThatCancelledItsWaitOrHasGoneIsNotReady) {
  EXPECT_EQ(Answer(1, C10dOp::kWait, {"k"}), "waits");
  EXPECT_EQ(Answer(2, C10dOp::kWait, {"k"}), "waits");
  EXPECT_EQ(Answer(3, C10dOp::kWait, {"k"}), "waits");
  EXPECT_EQ(Answer(1, C10dOp::kCancelWait), Byte(kC10dWaitCanceled));
  commands_.CancelWait(2);
  commands_.Forget(3);
  Answer(4, C10dOp::kSet, {"k"}, {"v"});
  EXPECT_THAT(commands_.TakeReady(), IsEmpty());
}

TEST_F(Commands, WatchersReceiveEachChangeUntilTheyHaveGone) {
  EXPECT_EQ(Answer(1, C10dOp::kWatchKey, {"k"}), Byte(kC10dCallbackRegistered));
  EXPECT_EQ(Answer(2, C10dOp::kWatchKey, {"k"}), Byte(kC10dCallbackRegistered));
  auto outcome = Execute(3, C10dOp::kSet, {"k"}, {"v"});
  ASSERT_EQ(outcome->notices.size(), 2u);
  EXPECT_EQ(outcome->notices[0].client, 1u);
  EXPECT_EQ(outcome->notices[1].client, 2u);
  EXPECT_EQ(outcome->notices[1].bytes, Byte(kC10dKeyCreated) + Text("k") + Text("") + Text("v"));
  commands_.Forget(1);
  outcome = Execute(3, C10dOp::kCompareSet, {"k"}, {"v", "w"});
  ASSERT_EQ(outcome->notices.size(), 1u);
  EXPECT_EQ(outcome->notices[0].bytes, Byte(kC10dKeyUpdated) + Text("k") + Text("v") + Text("w"));
  EXPECT_THAT(Execute(3, C10dOp::kCompareSet, {"k"}, {"no", "x"})->notices, IsEmpty());
  EXPECT_THAT(Execute(3, C10dOp::kSet, {"other"}, {"v"})->notices, IsEmpty());
  outcome = Execute(3, C10dOp::kDeleteKey, {"k"});
  ASSERT_EQ(outcome->notices.size(), 1u);
  EXPECT_EQ(outcome->notices[0].bytes, Byte(kC10dKeyDeleted) + Text("k") + Text("w") + Text(""));
  EXPECT_THAT(Execute(3, C10dOp::kDeleteKey, {"k"})->notices, IsEmpty());
}

TEST_F(Commands, RefuseWhatIsOverALimit) {
  EXPECT_EQ(Execute(1, C10dOp::kSet, {"k"}, {std::string(101, 'x')}).status().code(),
            absl::StatusCode::kResourceExhausted);
  Answer(1, C10dOp::kSet, {"k"}, {std::string(100, 'x')});
  EXPECT_EQ(Execute(1, C10dOp::kAdd, {"k"}, {}, 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const size_t most = MaxC10dMessageBytes(commands_.limits());
  EXPECT_EQ(
      Execute(1, C10dOp::kMultiGet, std::vector<std::string>(most / 100 + 1, "k")).status().code(),
      absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(reply_, "");
}

}  // namespace
}  // namespace hlaunch
