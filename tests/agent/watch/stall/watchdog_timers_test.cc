// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/watchdog_timers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A line as Python's json.dumps writes it.
std::string Line(pid_t pid, const std::string& scope, double expires, int signal = 9) {
  return absl::StrCat("{\"version\": 1, \"pid\": ", pid, ", \"scope_id\": \"", scope,
                      "\", \"expiration_time\": ", expires, ", \"signal\": ", signal, "}\n");
}

// Process 404 does not exist.
uint64_t Start(pid_t pid) { return pid == 404 ? 0 : static_cast<uint64_t>(pid) * 1000; }

std::vector<std::string> Names(const std::vector<WatchdogTimer>& timers) {
  std::vector<std::string> names;
  for (const WatchdogTimer& timer : timers) {
    names.push_back(absl::StrCat(timer.pid, " ", timer.scope, " ", timer.signal));
  }
  return names;
}

TEST(WatchdogTimers, ExpireInTime) {
  WatchdogTimers timers;
  EXPECT_EQ(timers.Next(), std::nullopt);
  timers.Read(Line(7, "step", 105.5), Start);
  timers.Read(Line(8, "epoch", 101, 15), Start);
  EXPECT_EQ(timers.Next(), 101);
  EXPECT_THAT(timers.TakeExpired(100.9), IsEmpty());
  EXPECT_THAT(Names(timers.TakeExpired(101)), ElementsAre("8 epoch 15"));
  EXPECT_EQ(timers.Next(), 105.5);
  const std::vector<WatchdogTimer> last = timers.TakeExpired(200);
  EXPECT_THAT(Names(last), ElementsAre("7 step 9"));
  EXPECT_EQ(last[0].start_time, 7000u);
  EXPECT_EQ(timers.Next(), std::nullopt);
}

TEST(WatchdogTimers, AreTakenBackAndArmedAnew) {
  WatchdogTimers timers;
  timers.Read(Line(7, "step", 100) + Line(7, "other", 90) + Line(7, "other", -1, 0), Start);
  EXPECT_EQ(timers.Next(), 100);
  timers.Read(Line(7, "step", 300), Start);
  EXPECT_EQ(timers.Next(), 300);
  timers.Read(Line(7, "never armed", -1, 0), Start);
  timers.Read(Line(7, "step", -1, 0), Start);
  EXPECT_EQ(timers.Next(), std::nullopt);
  EXPECT_EQ(timers.dropped(), 0u);
}

TEST(WatchdogTimers, EndAProcessOnceByTheFirstThatNamesASignal) {
  WatchdogTimers timers;
  timers.Read(Line(7, "a", 90, 0) + Line(7, "b", 99, 15) + Line(7, "c", 95, 9) + Line(7, "d", 500),
              Start);
  EXPECT_THAT(Names(timers.TakeExpired(100)), ElementsAre("7 c 9"));
  EXPECT_EQ(timers.Next(), std::nullopt) << "it is being ended";
}

TEST(WatchdogTimers, MayNameNoSignal) {
  WatchdogTimers timers;
  timers.Read(Line(7, "a", 90, 0) + Line(8, "b", 90, -3), Start);
  EXPECT_THAT(Names(timers.TakeExpired(100)), ElementsAre("7 a 0", "8 b 0"));
}

TEST(WatchdogTimers, OfNoProcessAreNotKept) {
  WatchdogTimers timers;
  timers.Read(Line(404, "step", 100), Start);
  EXPECT_EQ(timers.Next(), std::nullopt);
}

TEST(WatchdogTimers, ComeInPieces) {
  const std::string line = Line(7, "step", 100);
  for (size_t cut = 0; cut <= line.size(); ++cut) {
    WatchdogTimers timers;
    timers.Read(line.substr(0, cut), Start);
    timers.Read(line.substr(cut), Start);
    EXPECT_EQ(timers.Next(), 100) << cut;
  }
}

TEST(WatchdogTimers, DropWhatIsNone) {
  for (const std::string& junk : {
           std::string("\n"),
           std::string("no json\n"),
           std::string("[1, 2]\n"),
           std::string("{}\n"),
           std::string("\0\0\xff\xfe\n", 5),
           std::string("{\"version\": 2, \"pid\": 7, \"scope_id\": \"s\", \"expiration_time\": 1, "
                       "\"signal\": 9}\n"),
           std::string("{\"version\": 1, \"pid\": \"7\", \"scope_id\": \"s\", "
                       "\"expiration_time\": 1, \"signal\": 9}\n"),
           std::string("{\"version\": 1, \"pid\": 7, \"scope_id\": null, \"expiration_time\": 1, "
                       "\"signal\": 9}\n"),
           std::string("{\"version\": 1, \"pid\": 7, \"scope_id\": \"s\", \"expiration_time\": "
                       "Infinity, \"signal\": 9}\n"),
           std::string("{\"version\": 1, \"pid\": 99999999999999999999, \"scope_id\": \"s\", "
                       "\"expiration_time\": 1, \"signal\": 9}\n"),
           Line(0, "s", 1),
           Line(-1, "s", 1),
           Line(7, "s", 1, 65),
           Line(7, std::string(WatchdogTimers::kMaxLineBytes, 'x'), 1),
           std::string(100000, '[') + "\n",
       }) {
    WatchdogTimers timers;
    timers.Read(junk, Start);
    EXPECT_EQ(timers.dropped(), 1u) << junk;
    EXPECT_EQ(timers.Next(), std::nullopt) << junk;
    timers.Read(Line(7, "step", 100), Start);
    EXPECT_EQ(timers.Next(), 100) << "the next line counts again, after " << junk;
  }
}

TEST(WatchdogTimers, KeepNoMoreThanTheirLimits) {
  WatchdogTimers timers;
  for (size_t i = 0; i < 100; ++i) timers.Read(std::string(1 << 16, 'x'), Start);  // No line ends.
  timers.Read("\n", Start);
  EXPECT_EQ(timers.dropped(), 1u);
  for (size_t i = 0; i < WatchdogTimers::kMaxTimers + 10; ++i) {
    timers.Read(Line(7, absl::StrCat(i), 100), Start);
  }
  EXPECT_EQ(timers.dropped(), 11u);
  timers.Read(Line(7, "0", 50), Start);
  EXPECT_EQ(timers.Next(), 50) << "one that is kept can be armed anew";
  timers.Read(Line(7, "0", -1, 0) + Line(7, "new", 40), Start);
  EXPECT_EQ(timers.Next(), 40) << "and its place taken by another";
}

}  // namespace
}  // namespace hlaunch
