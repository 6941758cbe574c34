// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/notice/stop_notice.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(DescribeStopping, SaysWhyHowManyAndForHowLong) {
  struct Case {
    const char* reason;
    int workers;
    const char* words;
  };
  for (const Case& c :
       {Case{"rank 3 failed", 7,
             "rank 3 failed; stopping 7 workers, up to 30 s (--shutdown-timeout)"},
        Case{"rank 3 failed", 1,
             "rank 3 failed; stopping 1 worker, up to 30 s (--shutdown-timeout)"},
        Case{"", 2, "stopping 2 workers, up to 30 s (--shutdown-timeout)"},
        Case{"", 0, "stopping what its workers left behind, up to 30 s (--shutdown-timeout)"}}) {
    EXPECT_EQ(DescribeStopping(c.reason, c.workers, std::chrono::milliseconds(29700)), c.words);
  }
}

}  // namespace
}  // namespace hlaunch
