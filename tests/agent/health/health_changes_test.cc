// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/health_changes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

CheckResult Of(const char* name, CheckState state, std::optional<double> value = {},
               const char* reason = "so it is") {
  return {name, value, "", state, reason, "mend it"};
}

// What is told in each turn if one check gives these states: o, u, w or f.
std::string Told(const std::string& states) {
  HealthChanges changes;
  std::string told;
  for (const char state : states) {
    const CheckState of = state == 'o'   ? CheckState::kOk
                          : state == 'u' ? CheckState::kUnknown
                          : state == 'w' ? CheckState::kWarn
                                         : CheckState::kFail;
    const std::vector<CheckResult> said = changes.Take({Of("heat", of)});
    told += said.empty()                         ? '.'
            : said[0].state == CheckState::kOk   ? 'o'
            : said[0].state == CheckState::kWarn ? 'w'
                                                 : 'f';
  }
  return told;
}

TEST(HealthChanges, SayOnceWhatIsWorseInTwoTurnsAndWhenItIsGoodInThree) {
  EXPECT_EQ(Told("oooo"), "....");
  EXPECT_EQ(Told("owww"), "..w.");
  EXPECT_EQ(Told("owow"), "....");  // The trouble comes and goes.
  EXPECT_EQ(Told("of"), ".f");      // A failure is told at once.
  EXPECT_EQ(Told("offffo"), ".f....");
  EXPECT_EQ(Told("owwoowooo"), "..w.....o");
  EXPECT_EQ(Told("owwoooww"), "..w..o.w");
}

TEST(HealthChanges, MeasureByTheFirstResult) {
  EXPECT_EQ(Told("wwwww"), ".....");  // This was told before the workers started.
  EXPECT_EQ(Told("wf"), ".f");
  EXPECT_EQ(Told("wfwww"), ".f..o");  // It is as bad as at first.
  EXPECT_EQ(Told("uww"), "...");
}

TEST(HealthChanges, KeepWhatTheySaidWhileACheckIsUnknown) {
  EXPECT_EQ(Told("owuw"), "...w");
  EXPECT_EQ(Told("owwuuuu"), "..w....");
}

TEST(HealthChanges, SayWhatWasFoundAndWhatToDo) {
  HealthChanges changes;
  changes.Take({Of("heat", CheckState::kOk)});
  const std::vector<CheckResult> worse = changes.Take({Of("heat", CheckState::kFail)});
  ASSERT_THAT(worse, SizeIs(1));
  EXPECT_EQ(worse[0].reason, "so it is");
  EXPECT_EQ(worse[0].advice, "mend it");
  changes.Take({Of("heat", CheckState::kOk)});
  changes.Take({Of("heat", CheckState::kOk)});
  const std::vector<CheckResult> better = changes.Take({Of("heat", CheckState::kOk)});
  ASSERT_THAT(better, SizeIs(1));
  EXPECT_EQ(better[0].reason, "as at first again");
  EXPECT_EQ(better[0].advice, "");
}

TEST(HealthChanges, SayWhatIsCountedWhenItGrowsAndThenWhenItHasDoubled) {
  HealthChanges changes;
  std::vector<std::string> told;
  for (const double count : {40, 40, 41, 42, 43, 43, 44, 50}) {
    const auto said = changes.Take({Of("link losses", CheckState::kOk, count, "eth0")});
    told.push_back(said.empty() ? "" : said[0].reason);
    EXPECT_TRUE(said.empty() || said[0].state == CheckState::kWarn);
  }
  EXPECT_THAT(told, ElementsAre("", "", "1 more since the workers started: eth0",
                                "2 more since the workers started: eth0", "", "",
                                "4 more since the workers started: eth0",
                                "10 more since the workers started: eth0"));
}

TEST(HealthChanges, CountWhatComesAfterOldOnesAreForgotten) {
  HealthChanges changes;
  changes.Take({Of("kernel log", CheckState::kWarn, 5)});
  EXPECT_THAT(changes.Take({Of("kernel log", CheckState::kOk, 0)}), IsEmpty());
  EXPECT_THAT(changes.Take({Of("kernel log", CheckState::kWarn, 1)}), SizeIs(1));
}

TEST(HealthChanges, TakeLessOfWhatIsConstantForWorse) {
  HealthChanges changes;
  changes.Take({Of("fabric", CheckState::kOk, 400, "")});
  changes.Take({Of("fabric", CheckState::kOk, 200, "")});
  const auto said = changes.Take({Of("fabric", CheckState::kOk, 200, "")});
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_EQ(said[0].reason, "200 where there were 400");
  EXPECT_EQ(said[0].state, CheckState::kWarn);
  EXPECT_THAT(changes.Take({Of("memory", CheckState::kOk, 1)}), IsEmpty());
  EXPECT_THAT(changes.Take({Of("memory", CheckState::kOk, 0.5)}), IsEmpty());  // It only varies.
  EXPECT_THAT(changes.Take({Of("memory", CheckState::kOk, 0.5)}), IsEmpty());
}

}  // namespace
}  // namespace hlaunch
