// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/job_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/report/job/status_text.h"
#include "launcher/report/status/status_model.h"
#include "launcher/report/status/status_screen.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

// As it comes over the socket.
nlohmann::json Sent(const nlohmann::json& json) { return *ParseObject(TextOf(json)); }

TEST(JobMessages, SayTheSameAfterTheJourney) {
  const JobHere here = {"a",
                        1,
                        2,
                        "node0",
                        42,
                        1000,
                        {"hlaunch", "train.py", ""},
                        "/logs/a",
                        "/dev/pts/3",
                        "/home/ann/.local/state/hlaunch/a",
                        true,
                        {"node1"}};
  EXPECT_EQ(*ReadJobHere(Sent(ToJson(here))), here);
  const JobMeeting meeting = {"n:1,m:2", "secret", "off", "/c", "/k", "/a"};
  EXPECT_EQ(*ReadJobMeeting(Sent(ToJson(meeting))), meeting);
  EXPECT_EQ(ReadEndRequest(Sent(ToJson(EndRequest{15})))->signal, 15);
}

TEST(JobMessages, CarryQuestionsAndAnswersAboutRanks) {
  RankQuestion question;
  question.kind = RankQuestion::Kind::kStacks;
  question.ranks = {0, 7};
  question.native = true;
  question.patience = std::chrono::seconds(60);
  const auto asked = ReadRankQuestion(Sent(ToJson(question)));
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->kind, question.kind);
  EXPECT_EQ(asked->ranks, question.ranks);
  EXPECT_TRUE(asked->native);
  EXPECT_EQ(asked->patience, question.patience);
  JobAnswer answer;
  answer.round = 3;
  answer.world_size = 2;
  answer.explanation = "all is well";
  answer.nodes = {{"node0", 0, 0, 2, "[]", "is busy"}};
  const auto told = ReadJobAnswer(Sent(ToJson(answer)));
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->round, 3);
  EXPECT_EQ(told->nodes[0].problem, "is busy");
  EXPECT_EQ(told->nodes[0].nproc, 2);
}

// What a command shows of a job of one node is what it shows of a job of several.
TEST(JobMessages, CarryAllThatIsShownOfAStatus) {
  JobStatus status;
  status.job_id = "a";
  status.state = JobState::kRunning;
  status.explanation = "all run";
  status.round = 2;
  status.restarts = 2;
  status.uncounted = 1;
  status.max_restarts = 3;
  status.total_nodes = 1;
  status.nodes = {{"node0", "10.0.0.1", 42, 0, 8, "running"}};
  status.nodes[0].drain_reason = "ECC";
  status.nodes[0].standing = NodeStanding::kSilent;
  status.rounds = {{1, 1000, 2000, 3000, 4000, 1, 8, 0, "rank 1 failed"},
                   {2, 4000, 5000, 0, 0, 1, 8, 2, ""}};
  status.began_ms = 1000;
  status.told_ms = 9000;
  status.ran_for = std::chrono::milliseconds(5000);
  status.world_size = 8;
  WorkerFailure failure;
  failure.rank = 1;
  failure.host = "node0";
  failure.exit_code = 3;
  failure.log_tail = "oh\xffno";
  status.failure = failure;
  status.failed_round = 1;
  status.notice = "slow";
  status.excluded = {"node9: dead"};
  const auto told = ReadJobStatus(Sent(ToJson(status)));
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(JobText(*told), JobText(status));
  EXPECT_EQ(JobJson(*told), JobJson(status));
  const ScreenSize size;
  EXPECT_THAT(StatusScreen(ModelOf(*told), size), testing::Contains(HasSubstr("oh")));
  EXPECT_EQ(StatusScreen(ModelOf(*told), size).size(), StatusScreen(ModelOf(status), size).size());
}

TEST(JobMessages, RefuseWhatTheyAreNot) {
  const auto error = [](const char* text) {
    return std::string(ReadJobStatus(*ParseObject(text)).status().message());
  };
  EXPECT_THAT(error(R"({"state": "asleep"})"), HasSubstr("state"));
  EXPECT_THAT(error(R"({"nodes": [{"node_rank": -2}]})"), HasSubstr("node_rank"));
  EXPECT_THAT(error(R"({"job_id": 7})"), HasSubstr("job_id"));
  EXPECT_FALSE(ReadRankQuestion(*ParseObject(R"({"patience_s": 3600})")).ok());
  EXPECT_FALSE(ReadEndRequest(*ParseObject(R"({"signal": 65})")).ok());
  EXPECT_FALSE(ReadJobAnswer(*ParseObject(R"({"nodes": [{"nproc": 1000000}]})")).ok());
}

}  // namespace
}  // namespace hlaunch
