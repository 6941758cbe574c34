// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/failure/core_file.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(WhereTheCoreIs, FollowsTheKernelsPattern) {
  EXPECT_EQ(WhereTheCoreIs("core", false, 7), "its core is core in its working directory");
  EXPECT_EQ(WhereTheCoreIs("core", true, 7), "its core is core.7 in its working directory");
  EXPECT_EQ(WhereTheCoreIs("/cores/%p", true, 7), "its core is /cores/7");
  EXPECT_EQ(WhereTheCoreIs("/cores/%e.%p", false, 7),
            "its core is /cores/%e.7 (man 5 core says what % stands for)");
  EXPECT_EQ(WhereTheCoreIs("|/usr/share/apport/apport -p%p", false, 7),
            "the kernel gave its core to /usr/share/apport/apport");
  EXPECT_EQ(WhereTheCoreIs("|/usr/lib/systemd/systemd-coredump %P", false, 7),
            "the kernel gave its core to /usr/lib/systemd/systemd-coredump (coredumpctl info 7)");
}

}  // namespace
}  // namespace hlaunch
