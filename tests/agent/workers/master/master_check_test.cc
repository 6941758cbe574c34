// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests the check against a real master store, a port without a server, and a port where no server
// answers.

#include "agent/workers/master/master_check.h"

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/store/c10d/c10d_server.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// The result of the check for a port of loopback.
std::string Check(uint16_t port, Duration limit,
                  MasterCheck::Expect expect = MasterCheck::Expect::kStore) {
  asio::io_context loop(1);
  std::string unfit = "not told";
  int told = 0;
  MasterCheck check(loop, "127.0.0.1", port, expect, limit, [&](std::string text) {
    unfit = std::move(text);
    ++told;
  });
  loop.run();
  EXPECT_EQ(told, 1);
  return unfit;
}

TEST(MasterCheck, IsContentWithAStoreThatAnswersAndChangesNothingInIt) {
  auto store = C10dServer::Start(Listen("127.0.0.1", 0).value()).value();
  EXPECT_EQ(Check(store->port(), seconds(20)), "");
  EXPECT_EQ(Check(store->port(), seconds(20)), "");
}

TEST(MasterCheck, SaysThatNobodyListens) {
  const ListeningSocket kept = Reserve(0).value();
  EXPECT_THAT(Check(kept.port, seconds(1)),
              testing::AllOf(HasSubstr(absl::StrCat("127.0.0.1:", kept.port, " within 1 s")),
                             HasSubstr("Connection refused")));
}

TEST(MasterCheck, IsContentWithAHostThatAnswersWhereRank0WillServe) {
  const ListeningSocket reserved = Reserve(0).value();
  EXPECT_EQ(Check(reserved.port, seconds(20), MasterCheck::Expect::kHost), "");
  const ListeningSocket served = Listen("127.0.0.1", 0).value();
  EXPECT_EQ(Check(served.port, seconds(20), MasterCheck::Expect::kHost), "");
}

TEST(MasterCheck, SaysThatNobodyAnswers) {
  const ListeningSocket mute = Listen("127.0.0.1", 0).value();
  EXPECT_THAT(Check(mute.port, milliseconds(1000)), HasSubstr("connected, and no answer"));
}

TEST(MasterCheck, WaitsForAStoreThatStartsLate) {
  ListeningSocket listening = Listen("127.0.0.1", 0).value();
  const uint16_t port = listening.port;
  asio::io_context loop(1);
  std::string unfit = "not told";
  MasterCheck check(loop, "127.0.0.1", port, MasterCheck::Expect::kStore, seconds(20),
                    [&](std::string text) { unfit = std::move(text); });
  loop.run_for(milliseconds(50));
  EXPECT_EQ(unfit, "not told");
  auto store = C10dServer::Start(std::move(listening)).value();
  loop.run();
  EXPECT_EQ(unfit, "");
}

TEST(MasterCheck, SaysNothingOnceItIsGivenUp) {
  const ListeningSocket mute = Listen("127.0.0.1", 0).value();
  asio::io_context loop(1);
  bool told = false;
  {
    MasterCheck check(loop, "127.0.0.1", mute.port, MasterCheck::Expect::kStore, seconds(20),
                      [&](std::string) { told = true; });
    loop.run_for(milliseconds(1));
  }
  loop.run();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace hlaunch
