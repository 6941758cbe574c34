// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/plain_trouble.h"

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

constexpr bool kLate = true;
constexpr bool kInTime = false;

TEST(PlainTrouble, SaysWhatThePersonCanLookFor) {
  const struct {
    const char* text;
    const char* words;
  } rows[] = {
      {"failed to connect to all addresses; last error: UNKNOWN: Failed to connect to remote host: "
       "Connection refused",
       "Connection refused"},
      {"failed to connect to all addresses; last error: UNKNOWN: Failed to connect to remote host: "
       "No route to host",
       "No route to host"},
      {"failed to connect to all addresses; last error: UNAVAILABLE: Socket closed",
       "the connection was closed"},
      {"failed to connect to all addresses", "no connection can be made"},
      {"Socket closed", "the connection was closed"},
      {"recvmsg:Connection reset by peer", "the connection was closed"},
      {"Ssl handshake failed: SSL_ERROR_SSL: error:1000007d",
       "the two ends could not agree on TLS"},
      {"Trying to connect an http1.x server", "what answers there is not hlaunch"},
      {"something new", "something new"},
  };
  for (const auto& row : rows) EXPECT_EQ(PlainTrouble(row.text), row.words) << row.text;
}

TEST(CallTrouble, TellsTheTroubleOfTheLastTry) {
  CallTrouble trouble;
  EXPECT_EQ(trouble.Words(), "no time left");
  trouble.Learn("Connection refused", kInTime);
  EXPECT_EQ(trouble.Words(), "Connection refused");
  trouble.Learn("No route to host", kInTime);
  EXPECT_EQ(trouble.Words(), "No route to host");
}

TEST(CallTrouble, ATryWhoseTimeWasUpHidesNoCause) {
  CallTrouble trouble;
  trouble.Learn("no answer in time", kLate);
  EXPECT_EQ(trouble.Words(), "no answer in time");
  trouble.Learn("Connection refused", kInTime);
  EXPECT_EQ(trouble.Words(), "Connection refused");
  trouble.Learn("no answer in time", kLate);
  trouble.Learn("no answer in time", kLate);
  EXPECT_EQ(trouble.Words(), "Connection refused, then no answer in time");
  trouble.Learn("the connection was closed", kInTime);
  EXPECT_EQ(trouble.Words(), "the connection was closed");
  trouble.Learn("the connection was closed", kLate);
  EXPECT_EQ(trouble.Words(), "the connection was closed");
}

}  // namespace
}  // namespace hlaunch
