// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/local_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <chrono>
#include <memory>
#include <string>

#include "launcher/cluster/client/cluster_questions.h"
#include "tests/launcher/cluster/commands/small_daemon.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::optional<Envelope> Echo(const Envelope& question) {
  return AnswerTo(question, {{"verb", question.ask}});
}

TEST(LocalClient, AsksOverOneConnection) {
  SmallDaemon daemon(SocketOfTest(), Echo);
  LocalClient client(SocketOfTest());
  for (const char* verb : {"here", "jobs", "nodes"}) {
    const auto answer = client.Ask(verb, nlohmann::json::object(), seconds(20));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ((*answer)["verb"], verb);
  }
  EXPECT_EQ(daemon.connections(), 1);
}

TEST(LocalClient, PassesErrorsOnAndStaysConnected) {
  SmallDaemon daemon(SocketOfTest(), [](const Envelope& question) -> std::optional<Envelope> {
    if (question.ask == "job") return ErrorTo(question, absl::NotFoundError("no job 17"));
    return Echo(question);
  });
  LocalClient client(SocketOfTest());
  const auto answer = client.Ask("job", {{"job", 17}}, seconds(20));
  EXPECT_EQ(answer.status(), absl::NotFoundError("no job 17"));
  EXPECT_TRUE(client.Ask("here", nlohmann::json::object(), seconds(20)).ok());
  EXPECT_EQ(daemon.connections(), 1);
}

TEST(LocalClient, SaysWhyItsConnectionIsRefused) {
  SmallDaemon daemon(SocketOfTest(), [](const Envelope&) {
    return ErrorTo(Envelope(), absl::ResourceExhaustedError("too many connections of user ann"));
  });
  LocalClient client(SocketOfTest());
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(client.Ask("here", nlohmann::json::object(), seconds(20)).status(),
              absl::ResourceExhaustedError("too many connections of user ann"));
    EXPECT_EQ(daemon.connections(), again + 1);
  }
}

TEST(LocalClient, SaysThatThereIsNoDaemon) {
  LocalClient client("/tmp/hl-no-such-socket");
  EXPECT_TRUE(absl::IsNotFound(client.Connect(MonotonicClock().Now())));
  const auto answer = client.Ask("here", nlohmann::json::object(), seconds(20));
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("no hlaunchd runs on this host"));
  EXPECT_TRUE(absl::IsNotFound(AskHere(client).status()));
}

TEST(LocalClient, ConnectsAgainAfterTheDaemonWasStartedAnew) {
  auto daemon = std::make_unique<SmallDaemon>(SocketOfTest(), Echo);
  LocalClient client(SocketOfTest());
  ASSERT_TRUE(client.Ask("here", nlohmann::json::object(), seconds(20)).ok());
  daemon.reset();
  EXPECT_TRUE(
      absl::IsUnavailable(client.Ask("here", nlohmann::json::object(), seconds(20)).status()));
  daemon = std::make_unique<SmallDaemon>(SocketOfTest(), Echo);
  EXPECT_TRUE(client.Ask("here", nlohmann::json::object(), seconds(20)).ok());
}

TEST(LocalClient, EndsAWaitAtItsDeadlineAndTakesNoLateAnswer) {
  std::atomic<bool> late = false;
  SmallDaemon daemon(SocketOfTest(), [&](const Envelope& question) {
    if (question.ask == "slow") {
      while (!late) std::this_thread::yield();
    }
    return Echo(question);
  });
  LocalClient client(SocketOfTest());
  const auto silent = client.Ask("slow", nlohmann::json::object(), milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(silent.status())) << silent.status();
  late = true;
  const auto next = client.Ask("next", nlohmann::json::object(), seconds(20));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)["verb"], "next");
}

TEST(LocalClient, EndsAWaitWhenItIsInterrupted) {
  std::atomic<bool> done = false;
  SmallDaemon daemon(SocketOfTest(), [&](const Envelope& question) {
    while (!done) std::this_thread::yield();
    return Echo(question);
  });
  const UniqueFd interrupt(::eventfd(1, EFD_CLOEXEC));
  LocalClient client(SocketOfTest(), interrupt.get());
  EXPECT_TRUE(absl::IsCancelled(
      client.Ask("here", nlohmann::json::object(), std::chrono::hours(1)).status()));
  done = true;
}

TEST(LocalClient, SendsNoQuestionThatIsTooLong) {
  LocalClient client("/tmp/hl-no-such-socket");
  const auto answer = client.Ask("submit", {{"x", std::string(kMaxUserFrame, 'x')}}, seconds(1));
  EXPECT_TRUE(absl::IsInvalidArgument(answer.status()));
}

TEST(Questions, ReadTheirAnswers) {
  SmallDaemon daemon(SocketOfTest(), [](const Envelope& question) -> std::optional<Envelope> {
    if (question.ask == "here") {
      return AnswerTo(question, {{"version", "1"},
                                 {"host", "node1"},
                                 {"head", "node0:29400"},
                                 {"connected", true},
                                 {"trouble", ""}});
    }
    if (question.ask == "submit") return AnswerTo(question, {{"job", 17}});
    if (question.ask == "jobs") {
      JobView job;
      job.number = 17;
      job.user = "anna";
      return AnswerTo(question,
                      {{"jobs", {ToJson(job), {{"number", "strange"}}}}, {"left_out", 3}});
    }
    if (question.ask == "nodes") {
      HostView host;
      host.name = "node1";
      return AnswerTo(question, {{"hosts", {ToJson(host)}}, {"head", "node0:29400"}});
    }
    return AnswerTo(question, {{"job", "seventeen"}});
  });
  LocalClient client(SocketOfTest());
  EXPECT_EQ(AskHere(client)->head, "node0:29400");
  EXPECT_TRUE(AskHere(client)->connected);
  JobRequest request;
  request.script = {"train.py"};
  EXPECT_EQ(*AskSubmit(client, request), 17u);
  const auto jobs = AskJobs(client, {});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->jobs.size(), 1u);
  EXPECT_EQ(jobs->jobs[0].number, 17u);
  EXPECT_EQ(jobs->missing.left_out, 3u);
  EXPECT_EQ(jobs->missing.unreadable, 1u);
  EXPECT_EQ(AskNodes(client)->hosts.at(0).name, "node1");
  EXPECT_TRUE(absl::IsInternal(AskMeeting(client, 17).status()) || AskMeeting(client, 17).ok());
}

}  // namespace
}  // namespace hlaunch
