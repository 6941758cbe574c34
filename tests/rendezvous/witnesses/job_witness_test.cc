// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/witnesses/job_witness.h"

#include <gtest/gtest.h>

#include "rendezvous/round/lease.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The first host knows the policy from its command line, the others from what they are told.
TEST(WitnessRuleOf, IsTheSameForTheFirstHostAndForThoseThatItTells) {
  JobPolicy own;
  own.min_nodes = own.max_nodes = 256;
  own.lease = {milliseconds(333), seconds(3), seconds(5)};
  JobPolicy told = own;
  told.lease = LeaseForNodes(own.lease, own.max_nodes);
  ASSERT_GT(told.lease.lease, own.lease.lease);
  EXPECT_EQ(WitnessRuleOf(own).lease, WitnessRuleOf(told).lease);
  EXPECT_EQ(WitnessRuleOf(own).lease, told.lease.lease);
}

}  // namespace
}  // namespace hlaunch
