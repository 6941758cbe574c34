// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/part_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

PartSight Sight() {
  PartSight sight;
  sight.record.order.job = 7;
  sight.record.order.max_nodes = 2;
  sight.record.boot_id = sight.boot_id = "boot";
  sight.record.holder = 4711;
  sight.host = "node1";
  sight.lives = true;
  return sight;
}

TEST(TellPart, RunsOnceAWorkerHasStarted) {
  PartSight sight = Sight();
  EXPECT_EQ(TellPart(sight).state, PartState::kStarting);
  sight.said.started = true;
  EXPECT_EQ(TellPart(sight).state, PartState::kRunning);
}

TEST(TellPart, AnExitCodeCountsOnceTheHolderIsGone) {
  PartSight sight = Sight();
  sight.said.exit_code = 3;  // The user can write any value.
  EXPECT_FALSE(TellPart(sight).exit_code.has_value());
  sight.lives = false;
  EXPECT_EQ(TellPart(sight).state, PartState::kEnded);
  EXPECT_EQ(TellPart(sight).exit_code, 3);
}

struct EndRow {
  const char* what;
  void (*change)(PartSight&);
  PartState state;
  const char* why;
};

TEST(TellPart, SaysHowAPartEndedWithoutAnExitCode) {
  const EndRow rows[] = {
      {"its holder was killed", [](PartSight& s) { s.said.held = true; }, PartState::kLost,
       "node1: what holds the part was killed"},
      {"the head had it killed", [](PartSight& s) { s.record.killed = s.said.held = true; },
       PartState::kEnded, "killed on request"},
      {"the host was started anew", [](PartSight& s) { s.record.boot_id = "before"; },
       PartState::kLost, "started anew"},
      {"it could not be started", [](PartSight& s) { s.record.trouble = "there is no user bob"; },
       PartState::kFailed, "host node1: there is no user bob"},
      {"the daemon was killed in between", [](PartSight& s) { s.record.holder = 0; },
       PartState::kFailed, "ended while it started"},
      {"it went without a word", [](PartSight&) {}, PartState::kFailed, "without a word"}};
  for (const EndRow& row : rows) {
    PartSight sight = Sight();
    sight.lives = false;
    row.change(sight);
    EXPECT_EQ(TellPart(sight).state, row.state) << row.what;
    EXPECT_THAT(TellPart(sight).trouble, HasSubstr(row.why));
  }
}

TEST(TellPart, NamesTheAddressByWhichTheHeadKnowsTheHost) {
  PartSight sight = Sight();
  sight.said.meeting = "192.168.0.1:29401";
  EXPECT_EQ(TellPart(sight).meeting, "192.168.0.1:29401");
  sight.reachable_at = "10.0.0.1";
  EXPECT_EQ(TellPart(sight).meeting, "10.0.0.1:29401");
  sight.record.order.max_nodes = 1;
  EXPECT_EQ(TellPart(sight).meeting, "");
  sight.record.order.spares = 1;
  EXPECT_EQ(TellPart(sight).meeting, "10.0.0.1:29401");
}

TEST(TellPart, ReckonsWhatRanUntilNow) {
  PartSight sight = Sight();
  EXPECT_EQ(TellPart(sight).goodput, -1);
  sight.said.news = JobNews{3, 2, true, 5'000, 10'000, 1'000'000};
  sight.now_ms = 1'010'000;
  EXPECT_EQ(TellPart(sight).goodput, 0.75);
  EXPECT_EQ(TellPart(sight).round, 3);
  EXPECT_EQ(TellPart(sight).restarts, 2);
  sight.said.news->runs = false;
  EXPECT_EQ(TellPart(sight).goodput, 0.25);
  sight.lives = false;  // The time after its end does not count.
  EXPECT_EQ(TellPart(sight).goodput, 0.5);
}

TEST(TellPart, BelievesNoMeetingPlaceThatIsNoAddress) {
  PartSight sight = Sight();
  for (const char* said : {"evil.example:29401", "10.0.0.1", "x", "10.0.0.1:0"}) {
    sight.said.meeting = said;
    EXPECT_EQ(TellPart(sight).meeting, "") << said;
  }
}

}  // namespace
}  // namespace hlaunch
