// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/job_policy.h"

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

TEST(DescribeDifferences, NamesThoseOfRestarts) {
  JobPolicy holds, here;
  holds.restart_window = std::chrono::hours(1);
  holds.restart_pause = std::chrono::seconds(8);
  holds.restart_on = "1";
  holds.end_on = "3";
  here.free_on = "75";
  EXPECT_EQ(DescribeDifferences(holds, here),
            "--restart-window 3600 (here 0), --restart-pause 8 (here 0), --restart-on 1 (here "
            "none), --end-on 3 (here none), --free-on none (here 75)");
}

TEST(DescribeDifferences, NamesWhenAJobGrows) {
  JobPolicy holds, here;
  holds.on_join = OnJoin::kNextRound;
  holds.on_loss = OnLoss::kWait;
  holds.grow_interval = std::chrono::seconds(60);
  holds.boundary_limit = std::chrono::seconds(300);
  holds.node_multiple = 2;
  EXPECT_EQ(DescribeDifferences(holds, here),
            "--on-join next-round (here restart), --on-loss wait (here shrink), --grow-interval 60 "
            "(here 0), --boundary-limit 300 (here 0), --node-multiple 2 (here 1)");
}

}  // namespace
}  // namespace hlaunch
