// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/log_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class LogWatchTest : public testing::Test {
 protected:
  std::unique_ptr<LogWatch> Open() {
    return LogWatch::Open(
        loop_, spec_, 4,
        {[this](int rank, std::string reason) { failed_.push_back(absl::StrCat(rank, reason)); },
         [this](int rank, std::string reason) { silent_.push_back(absl::StrCat(rank, reason)); },
         [this](Rank rank, const std::string& name, double value) {
           values_.push_back(absl::StrCat(rank, " ", name, "=", value));
         },
         [this](int64_t step) { steps_.push_back(step); }});
  }

  asio::io_context loop_{1};
  WorkerSpec spec_;
  std::vector<std::string> failed_, silent_, values_;
  std::vector<int64_t> steps_;
};

TEST_F(LogWatchTest, IsNotThereWithoutRules) { EXPECT_EQ(Open(), nullptr); }

TEST_F(LogWatchTest, FailsWhoWritesWhatFails) {
  spec_.line_rules = {{"nan", LineAction::kFail}, {"fine", LineAction::kWarn}};
  const auto watch = Open();
  const auto out = watch->Reader(0), err = watch->Reader(1);
  out("fine\n");
  EXPECT_THAT(failed_, IsEmpty());
  err("loss=nan\n");
  EXPECT_THAT(failed_, ElementsAre("1wrote 'loss=nan', which matches --watch-log nan"));
}

TEST_F(LogWatchTest, ReadsValuesAndSteps) {
  spec_.line_rules = {{R"(step (?P<step>\d+) loss (?P<loss>\S+))", LineAction::kMetric}};
  const auto watch = Open();
  const auto out = watch->Reader(2);
  out("step 7 loss 0.5\nstep 99999999999999999999 loss 1\n");
  EXPECT_THAT(values_, ElementsAre("6 loss=0.5", "6 step=7", "6 loss=1", "6 step=1e+20"));
  EXPECT_THAT(steps_, ElementsAre(7)) << "no number that a step may be";
  EXPECT_THAT(failed_, IsEmpty());
}

TEST_F(LogWatchTest, MayBeGoneBeforeTheOutputEnds) {
  spec_.line_rules = {{"nan", LineAction::kFail}};
  auto watch = Open();
  const auto out = watch->Reader(0);
  watch.reset();
  out("nan\n");
  EXPECT_THAT(failed_, IsEmpty());
}

TEST_F(LogWatchTest, TellsOnceThatALineHasNotComeAgain) {
  spec_.silence_rules = {{"step", milliseconds(50)}};
  const auto watch = Open();
  const auto out = watch->Reader(1);
  out("begins\n");
  loop_.run_for(milliseconds(200));
  EXPECT_THAT(silent_, IsEmpty()) << "nobody waits for the first";
  out("step 3\n");
  loop_.restart();
  loop_.run_for(seconds(3));  // It ends once nothing is awaited.
  ASSERT_THAT(silent_, SizeIs(1));
  EXPECT_THAT(silent_[0], StartsWith("1is silent: no line with step for "));
  EXPECT_THAT(silent_[0], HasSubstr("(limit 0.05 s), the last: 'step 3'"));
}

TEST_F(LogWatchTest, WaitsForNoLineOfAWorkerThatHasEnded) {
  spec_.silence_rules = {{"step", milliseconds(20)}};
  const auto watch = Open();
  watch->Reader(0)("step 3\n");
  watch->Ended(0);
  loop_.run_for(milliseconds(300));
  EXPECT_THAT(silent_, IsEmpty());
}

TEST_F(LogWatchTest, QuotesTheBeginningOfALongLine) {
  spec_.line_rules = {{"nan", LineAction::kFail}};
  const auto watch = Open();
  watch->Reader(0)(absl::StrCat("nan", std::string(1000, 'x'), "\n"));
  ASSERT_THAT(failed_, SizeIs(1));
  EXPECT_LT(failed_[0].size(), 300u);
  EXPECT_THAT(failed_[0], HasSubstr("x…'"));
}

}  // namespace
}  // namespace hlaunch
