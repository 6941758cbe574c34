// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/events/event_choice.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

RoundStarted RoundAs(int node_rank) {
  RoundStarted started;
  started.assignment.node_rank = node_rank;
  return started;
}

TEST(EventChoice, NodeRankZeroTells) {
  EventChoice choice(false);
  EXPECT_FALSE(choice.Tells(NodeJoined{}));
  EXPECT_TRUE(choice.Tells(RoundAs(0)));
  EXPECT_TRUE(choice.Tells(RoundStopped{1, "rank 3 exited with code 7"}));
  EXPECT_TRUE(choice.Tells(NodeFinished{}));
}

TEST(EventChoice, OthersTellNothing) {
  EventChoice choice(true);
  EXPECT_TRUE(choice.Tells(NodeWaiting{"for node1"})) << "it spoke before it knew its rank";
  EXPECT_FALSE(choice.Tells(RoundAs(1)));
  EXPECT_FALSE(choice.Tells(NodeFinished{1, "node0 was lost"}));
}

TEST(EventChoice, ANodeThatBecomesTheFirstTellsFromThenOn) {
  EventChoice choice(false);
  EXPECT_FALSE(choice.Tells(RoundAs(1)));
  EXPECT_TRUE(choice.Tells(RoundAs(0)));
}

TEST(EventChoice, AJobThatNeverFormedIsTold) {
  EventChoice choice(false);
  EXPECT_FALSE(choice.Tells(NodeWaiting{"for node1"}));
  EXPECT_TRUE(choice.Tells(NodeFinished{197, "1 of 2 nodes came"}));
  EXPECT_FALSE(EventChoice(false).Tells(NodeFinished{0, ""})) << "a spare that was not needed";
}

TEST(EventChoice, WhatAWorkerDoesIsNotTold) {
  EventChoice choice(true);
  choice.Tells(RoundAs(0));
  EXPECT_FALSE(choice.Tells(WorkerStarted{}));
  EXPECT_FALSE(choice.Tells(WorkerEnded{}));
  EXPECT_FALSE(choice.Tells(LogValue{}));
  EXPECT_TRUE(choice.Tells(WorkerStalled{}));
}

TEST(EventChoice, SlowRanksAreToldButNotEachSecondThatTheyCost) {
  EventChoice choice(true);
  choice.Tells(RoundAs(0));
  EXPECT_TRUE(choice.Tells(SlowRanksFound{}));
  EXPECT_FALSE(choice.Tells(TimeLost{}));
}

}  // namespace
}  // namespace hlaunch
