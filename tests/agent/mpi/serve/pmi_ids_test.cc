// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_ids.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

// Never a number that was given: a client can send it, but none is negative.
constexpr int kWrong = -1;

TEST(PmiIds, AreGoodOnce) {
  PmiIds ids;
  const int first = ids.Give(0), second = ids.Give(1);
  EXPECT_GT(first, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(ids.Take(second).local_rank, 1);
  EXPECT_EQ(ids.Take(second).guest, PmiGuest::kAgain);
  EXPECT_EQ(ids.Take(first).guest, PmiGuest::kWorker);
}

TEST(PmiIds, AreAllWrongAfterTooManyWrongOnes) {
  PmiIds ids;
  const int right = ids.Give(0), late = ids.Give(1);
  for (int i = 1; i < kMostWrongPmiIds; ++i) EXPECT_EQ(ids.Take(kWrong).guest, PmiGuest::kStranger);
  EXPECT_FALSE(ids.closed());
  EXPECT_EQ(ids.Take(right).guest, PmiGuest::kWorker);
  EXPECT_EQ(ids.Take(kWrong).guest, PmiGuest::kStranger);
  EXPECT_TRUE(ids.closed());
  EXPECT_EQ(ids.Take(late).guest, PmiGuest::kStranger);
}

// A shell may run one MPI program after the other in each of many workers.
TEST(PmiIds, AreNotWrongIfTheyWereGiven) {
  PmiIds ids;
  const int id = ids.Give(0);
  ids.Take(id);
  for (int i = 0; i < 2 * kMostWrongPmiIds; ++i) EXPECT_EQ(ids.Take(id).guest, PmiGuest::kAgain);
  EXPECT_FALSE(ids.closed());
}

}  // namespace
}  // namespace hlaunch
