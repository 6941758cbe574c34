// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/wait_plan.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(PlanWait, SpinsLongOnlyWithACoreForEachRank) {
  EXPECT_GT(PlanWait(2, 2).spins, 100 * PlanWait(3, 2).spins / 2);
  EXPECT_EQ(PlanWait(1, 4).spins, PlanWait(4, 4).spins);
}

TEST(PlanWait, GivesTimeToOthersBeforeItSleeps) {
  EXPECT_GT(PlanWait(4, 2).yields, 0);
  EXPECT_GT(PlanWait(2, 2).yields, 0);
}

TEST(CpusToSpinOn, AreAtLeastOne) { EXPECT_GE(CpusToSpinOn(), 1); }

}  // namespace
}  // namespace hlaunch
