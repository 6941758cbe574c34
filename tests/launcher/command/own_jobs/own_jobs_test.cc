// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/own_jobs/own_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

FoundJob Found(const std::string& id, int64_t started_ms) {
  FoundJob job;
  job.pid = 42;
  job.here.job_id = id;
  job.here.host = "node0";
  job.here.started_ms = started_ms;
  job.here.words = {"/usr/bin/hlaunch", "train.py"};
  return job;
}

DetachedJob Kept(const std::string& id, JobLife life) {
  DetachedJob job;
  job.id = id;
  job.directory = "/state/" + id;
  job.life = life;
  if (life == JobLife::kEnded) job.ending = JobEnding{3, 0};
  return job;
}

std::string ErrorOf(const OwnJobList& known, const std::string& id) {
  return std::string(ChooseOwnJob(known, id, "why").status().message());
}

TEST(GroupJobs, MakesOneJobOfAllNodesOfIt) {
  FoundJob starter = Found("a", 1), node = Found("a", 2), other = Found("a", 2);
  starter.here.started_on = {"node0", "node1"};
  const auto jobs = GroupJobs({node, starter, other, Found("b", 3)}, {});
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[0].id, "b");  // It was started last.
  ASSERT_THAT(jobs[1].parts, SizeIs(3));
  EXPECT_FALSE(jobs[1].parts[0].here.started_on.empty());
}

TEST(GroupJobs, AsksFirstWhatAnswersForTheJob) {
  FoundJob starter = Found("a", 1), node = Found("a", 2);
  starter.here.started_on = {"node0"};
  node.here.decides = true;
  EXPECT_TRUE(GroupJobs({starter, node}, {})[0].parts[0].here.decides);
}

TEST(GroupJobs, KeepsTwoJobsOfOneNameApart) {
  FoundJob one = Found("a", 1), other = Found("a", 2);
  one.here.decides = other.here.decides = true;
  const OwnJobList known{GroupJobs({one, other}, {Kept("a", JobLife::kRuns)}), {}};
  EXPECT_THAT(known.jobs, SizeIs(3));
  EXPECT_THAT(ErrorOf(known, "a"), HasSubstr("3 jobs with the name a run here (pids 42, 42)"));
  FoundJob of_another_user = Found("a", 2);
  of_another_user.socket.uid = 7;
  EXPECT_THAT(GroupJobs({Found("a", 1), of_another_user}, {}), SizeIs(2));
}

TEST(GroupJobs, KnowsADetachedJobByItsFolder) {
  FoundJob runs = Found("a", 1);
  runs.here.detached = "/state/a";
  EXPECT_TRUE(GroupJobs({runs}, {Kept("a", JobLife::kRuns)})[0].detached());
  // An older job had the same name.
  EXPECT_FALSE(GroupJobs({Found("a", 1)}, {Kept("a", JobLife::kEnded)})[0].detached());
}

TEST(ChooseOwnJob, TakesTheOnlyOneThatRuns) {
  const OwnJobList known{GroupJobs({Found("a", 1)}, {Kept("old", JobLife::kEnded)}), {}};
  EXPECT_EQ(ChooseOwnJob(known, "", "why")->id, "a");
  EXPECT_EQ(ChooseOwnJob(known, "old", "why")->id, "old");
}

TEST(ChooseOwnJob, ListsSeveralAndSaysWhatToType) {
  const OwnJobList known{GroupJobs({Found("a", 1), Found("b", 2)}, {}), {}};
  EXPECT_THAT(ErrorOf(known, ""),
              AllOf(HasSubstr("as in hlaunch why b:\n"), HasSubstr("\n  a "), HasSubstr("\n  b ")));
  EXPECT_THAT(ErrorOf(known, "c"),
              AllOf(HasSubstr("no job c of yours runs on this host"), HasSubstr("here run\n")));
}

TEST(ChooseOwnJob, SaysWhereElseToLookIfThereIsNone) {
  EXPECT_THAT(ErrorOf({}, ""), AllOf(HasSubstr("no job of yours runs on this host"),
                                     HasSubstr("--rdzv-endpoint HOST[:PORT]"),
                                     HasSubstr("hlaunch ps"), Not(HasSubstr("\n"))));
  EXPECT_THAT(ErrorOf({{}, {7, 8}}, ""), HasSubstr("do not answer: pids 7, 8"));
}

TEST(OwnJobsText, ShowsJobsOfAllKinds) {
  const OwnJobList known{GroupJobs({Found("a", 1000)}, {Kept("old", JobLife::kEnded)}), {9}};
  EXPECT_THAT(OwnJobsText(known),
              AllOf(HasSubstr("\na    running"), HasSubstr("hlaunch train.py"),
                    HasSubstr("\nold  ended, exit code 3"), HasSubstr("does not answer: pid 9")));
  const auto json = nlohmann::json::parse(OwnJobsJson(known));
  EXPECT_EQ(json["total_jobs"], 2);
  EXPECT_EQ(json["jobs"][0]["job_id"], "a");
  EXPECT_EQ(json["jobs"][0]["state"], "running");
  EXPECT_TRUE(json["jobs"][0]["log"].is_null());
  EXPECT_THAT(OwnJobsText({}), HasSubstr("no job of yours runs on this host"));
}

}  // namespace
}  // namespace hlaunch
