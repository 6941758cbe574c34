// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/obituary.h"

#include <gtest/gtest.h>

#include <string>

namespace hlaunch {
namespace {

TEST(Obituary, ComesBackAsItWasSent) {
  for (const Obituary& sent :
       {Obituary{{"/bin/true"}, {}}, Obituary{{"tell", "", "a b"}, {"TOKEN=x", "EMPTY="}}}) {
    const auto back = DecodeObituary(EncodeObituary(sent));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->argv, sent.argv);
    EXPECT_EQ(back->env, sent.env);
  }
}

TEST(Obituary, IsNoneWhereNoProgramIsNamed) {
  for (const std::string& message :
       {std::string(), std::string("0"), std::string("x\0tell", 6), std::string("2\0tell", 6)}) {
    EXPECT_FALSE(DecodeObituary(message).has_value());
  }
}

}  // namespace
}  // namespace hlaunch
