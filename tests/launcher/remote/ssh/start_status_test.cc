// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/start_status.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::seconds;

const std::vector<HostProgress> kHosts = {{"a", HostState::kHere, "ssh"},
                                          {"b", HostState::kConnecting, "ssh"},
                                          {"c", HostState::kStarted, "ssh"}};

TEST(StartStatus, SaysWhatEachAwaitedHostDoes) {
  EXPECT_EQ(StartStatus(kHosts, {seconds(19), seconds(600)}),
            "1 of 3 nodes is here; waiting for b (ssh connects), c (started, looks for the way "
            "here)");
}

TEST(StartStatus, SaysHowLongNoHostGotFurtherAndWhatLimitsIt) {
  EXPECT_EQ(StartStatus({{"b", HostState::kConnecting, "ssh"}}, {seconds(25), seconds(600)}),
            "0 of 1 node are here; waiting for b (ssh connects); no host got further for 25 s of "
            "600 (--join-timeout)");
}

}  // namespace
}  // namespace hlaunch
