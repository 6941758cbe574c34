// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/judge_stalls.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hlaunch {
namespace {

using std::chrono::seconds;

const Instant kSince = Instant() + seconds(1000);

// The finding of `worker`, which told `step` and waits in `waits_in` if that is not empty.
StallFinding Finding(int worker, int64_t step, const std::string& waits_in = "") {
  StallFinding finding;
  finding.stall.worker = worker;
  finding.stall.step = step;
  finding.stall.news = kSince;
  finding.summary.waits_in = waits_in;
  return finding;
}

struct Case {
  const char* name;
  std::vector<StallFinding> findings;
  int after_s;  // Seconds since the first stall.
  std::optional<int> wait_until_s;
  std::optional<size_t> cause;
  bool cause_waits;
};

TEST(JudgeStalls, NamesTheOneThatTheOthersWaitFor) {
  for (const Case& c : std::vector<Case>{
           {"too early", {Finding(0, 1)}, 1, 2, {}, false},
           {"alone", {Finding(0, 1)}, 2, {}, 0, false},
           {"all have gone on", {}, 2, {}, {}, false},
           {"one does not wait", {Finding(0, 1, "recv"), Finding(1, 5)}, 2, {}, 1, false},
           {"the furthest behind of those that do not wait",
            {Finding(0, 1, "recv"), Finding(1, 7), Finding(2, 5)},
            2,
            {},
            2,
            false},
           {"the first of equals", {Finding(0, 5), Finding(1, 5)}, 2, {}, 0, false},
           {"all wait: another node may say more", {Finding(0, 1, "recv")}, 2, 45, {}, false},
           {"all wait and no node said more",
            {Finding(0, 5, "recv"), Finding(1, 4, "recv")},
            45,
            {},
            1,
            true},
       }) {
    const StallVerdict verdict = JudgeStalls(c.findings, kSince, kSince + seconds(c.after_s));
    EXPECT_EQ(verdict.cause, c.cause) << c.name;
    EXPECT_EQ(verdict.cause_waits, c.cause_waits) << c.name;
    ASSERT_EQ(verdict.wait_until.has_value(), c.wait_until_s.has_value()) << c.name;
    if (c.wait_until_s) {
      EXPECT_EQ(*verdict.wait_until - kSince, seconds(*c.wait_until_s)) << c.name;
    }
  }
}

}  // namespace
}  // namespace hlaunch
