// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/stand_in_name.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(StandInName, SaysTheWorkerInWhatTheKernelTakes) {
  constexpr size_t kMostBytes = 15;
  constexpr pid_t kHighestPid = 4194304;
  EXPECT_LE(StandInName(kHighestPid).size(), kMostBytes);
  EXPECT_EQ(WorkerInName(StandInName(kHighestPid)), kHighestPid);
}

TEST(WorkerInName, IsUnknownInAnyOtherName) {
  for (const char* name : {"exe", "hlaunch", "for-", "for-x", "for-1", "for--5", ""}) {
    EXPECT_EQ(WorkerInName(name), 0) << name;
  }
}

}  // namespace
}  // namespace hlaunch
