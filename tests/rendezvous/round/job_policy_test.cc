// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/job_policy.h"

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

TEST(DescribeDifferences, NamesTheOptionsAndBothValues) {
  JobPolicy holds, here;
  EXPECT_EQ(DescribeDifferences(holds, here), "");
  here.max_restarts = 3;
  here.lease.loss_limit = std::chrono::milliseconds(1500);
  here.preflight = Preflight::kOff;
  EXPECT_EQ(DescribeDifferences(holds, here),
            "--max-restarts 0 (here 3), --loss-limit 30 (here 1.5), --preflight quick (here off)");
}

}  // namespace
}  // namespace hlaunch
