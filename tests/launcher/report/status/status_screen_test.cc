// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/status_screen.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launcher/report/status/jobs_to_see.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string TextOf(const JobStatus& job, const ScreenSize& size) {
  return absl::StrCat(absl::StrJoin(StatusScreen(ModelOf(job), size), "\n"), "\n");
}

size_t WidestOf(const JobStatus& job, const ScreenSize& size) {
  size_t widest = 0;
  for (const std::string& line : StatusScreen(ModelOf(job), size)) {
    widest = std::max(widest, line.size());
  }
  return widest;
}

TEST(StatusScreen, ShowsAJobThatRestarted) {
  EXPECT_EQ(TextOf(RestartedJob(), {}),
            "running  train-17                                        2027-01-15 08:05:00 UTC\n"
            "round 2 runs with 2 nodes and 4 workers\n"
            "\n"
            "Round: 2   Nodes: 2 here of 2   Ranks: 4   Restarts: 1 of 3\n"
            "Began: 2027-01-15 08:00:00 UTC, 5 min 0 s ago\n"
            "Goodput: 93.3 %: ran 4 min 40 s of 5 min 0 s\n"
            "\n"
            "ROUNDS  from 08:00:00 to 08:05:00; . gathers ? checks = runs ! stops\n"
            "  2    |       ?============| ran 3 min 0 s   2 nodes, 4 ranks\n"
            "  1    |=======!            | ran 1 min 40 s  worker rank 3 on node1 (pid 4242)\n"
            "                                              exited with 7\n"
            "\n"
            "NODES  a letter a worker: R runs W waits C checked S stops X failed ? silent\n"
            "  0    node0  running  0-1       RR\n"
            "  1    node1  running  2-3       RR\n"
            "\n"
            "LAST LINES\n"
            "  of rank 3 on node1 (pid 4242), which exited with code 7 in round 1:\n"
            "  | step 41 loss 2.17\n"
            "  | RuntimeError: HBM is gone\n");
}

TEST(StatusScreen, IsNeverWiderThanTheTerminal) {
  for (const size_t columns : {20, 40, 80, 132}) {
    for (const JobStatus& job : {RestartedJob(), WaitingJob(), HugeJob()}) {
      EXPECT_LE(WidestOf(job, {columns, 0, false}), columns) << job.job_id;
    }
    EXPECT_LE(WidestOf(HostileJob(std::string(9000, 'x')), {columns, 0, false}), columns);
  }
}

TEST(StatusScreen, IsNeverLongerThanTheTerminal) {
  const auto lines = StatusScreen(ModelOf(HugeJob()), {80, 10, false});
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_THAT(lines.back(), HasSubstr("more lines"));
}

TEST(StatusScreen, HasColourOnlyWhereItMay) {
  EXPECT_THAT(TextOf(HugeJob(), {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(TextOf(RestartedJob(), {80, 0, true}), HasSubstr("\x1b[1;34mrunning\x1b[0m"));
}

TEST(StatusScreen, FoldsAHugeJob) {
  const std::string text = TextOf(HugeJob(), {});
  EXPECT_THAT(text, HasSubstr("  2046 nodes with 16368 workers alike: running; gpu0-gpu2, gpu4-"));
  EXPECT_THAT(text, HasSubstr("gpu1024  silent for 7 s    8192-8199 ????????"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 32);
}

TEST(StatusScreen, ObeysNobody) {
  const std::string text = TextOf(HostileJob("a\x1b]0;x\x07\x1b[2J\x9b"
                                             "31m\xe2\x80\xae\r\nb"),
                                  {});
  for (const char c : text) EXPECT_TRUE(c == '\n' || !absl::ascii_iscntrl(c)) << text;
  EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
}

TEST(TextScreen, CutsWhatIsTooLong) {
  EXPECT_EQ(absl::StrJoin(TextScreen("abcdef\n\xc3\xa4\xc3\xb6\xc3\xbc\n", {4, 0, false}), "|"),
            "abc>|\xc3\xa4\xc3\xb6\xc3\xbc");
}

}  // namespace
}  // namespace hlaunch
