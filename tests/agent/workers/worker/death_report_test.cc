// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/death_report.h"

#include <gtest/gtest.h>

#include <string>

namespace hlaunch {
namespace {

TEST(DeathReport, ComesBackAsItWasSent) {
  for (const DeathReport& sent :
       {DeathReport{{"/bin/true"}, {}}, DeathReport{{"tell", "", "a b"}, {"TOKEN=x", "EMPTY="}}}) {
    const auto back = DecodeDeathReport(EncodeDeathReport(sent));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->argv, sent.argv);
    EXPECT_EQ(back->env, sent.env);
  }
}

TEST(DeathReport, IsNoneWhereNoProgramIsNamed) {
  for (const std::string& message :
       {std::string(), std::string("0"), std::string("x\0tell", 6), std::string("2\0tell", 6)}) {
    EXPECT_FALSE(DecodeDeathReport(message).has_value());
  }
}

}  // namespace
}  // namespace hlaunch
