// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/client/follow_inbox.h"
#include "launcher/cluster/client/follow_job_of_cluster.h"
#include "launcher/cluster/client/kept_logs.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/cluster/client/log_pollers.h"
#include "proto/base/clock.h"
#include "tests/launcher/cluster/commands/small_daemon.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

std::string Line(const std::string& text, const char* stream = "stdout") {
  return absl::StrCat("2026-11-25T16:41:07.123Z ", stream, " F ", text, "\n");
}

// A cluster with one job. It answers long polls at once, after a yield. Thread-safe.
class OneJob {
 public:
  explicit OneJob(int nodes) {
    job_.number = 17;
    job_.version = 1;
    job_.user = "anna";
    job_.why = "needs 2 nodes";
    job_.max_nodes = nodes;
  }

  void Change(const std::function<void(JobView&)>& change) {
    MutexLock lock(&mu_);
    change(job_);
    ++job_.version;
  }
  void Run() {
    Change([](JobView& job) {
      job.state = ClusterJobState::kRunning;
      for (int rank = 0; rank < job.max_nodes; ++rank) {
        PartView part;
        part.node_rank = rank;
        part.host = absl::StrCat("node", rank);
        part.state = "running";
        job.parts.push_back(part);
      }
    });
  }
  void End(int code) {
    Change([code](JobView& job) {
      job.state = ClusterJobState::kEnded;
      job.exit_code = code;
    });
  }
  void Say(int rank, const std::string& line) {
    MutexLock lock(&mu_);
    logs_[rank] += line;
  }
  void Lose(int rank) {
    MutexLock lock(&mu_);
    lost_.insert(rank);
  }
  void BecomeAnothers() {
    MutexLock lock(&mu_);
    is_anothers_ = true;
  }
  int asked(const std::string& verb) {
    MutexLock lock(&mu_);
    return asked_[verb];
  }

  std::optional<Envelope> Answer(const Envelope& question) {
    std::this_thread::yield();
    MutexLock lock(&mu_);
    ++asked_[question.ask];
    if (question.ask == "job") {
      if (question.body.value("job", 0) != 17) {
        return ErrorTo(question, absl::NotFoundError("there is no job of that number"));
      }
      return AnswerTo(question, ToJson(job_));
    }
    if (question.ask != "log") return AnswerTo(question, nlohmann::json::object());
    if (is_anothers_) return ErrorTo(question, absl::PermissionDeniedError("it is bob's"));
    const auto asked = ReadLogQuestion(question.body);
    if (lost_.count(asked->node_rank) > 0) {
      return ErrorTo(question, absl::UnavailableError("its host is gone"));
    }
    const std::string& log = logs_[asked->node_rank];
    const size_t from = asked->position.empty() ? 0 : std::stoul(asked->position);
    LogAnswer answer;
    answer.text = log.substr(from);
    answer.position = absl::StrCat(log.size());
    answer.ended = job_.state == ClusterJobState::kEnded;
    return AnswerTo(question, ToJson(answer));
  }

 private:
  Mutex mu_;
  JobView job_ ABSL_GUARDED_BY(mu_);
  std::map<int, std::string> logs_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> asked_ ABSL_GUARDED_BY(mu_);
  std::set<int> lost_ ABSL_GUARDED_BY(mu_);  // Nodes whose logs cannot be read.
  bool is_anothers_ ABSL_GUARDED_BY(mu_) = false;
};

class FollowJobTest : public ::testing::Test {
 protected:
  std::unique_ptr<SmallDaemon> Serve(OneJob& job) {
    return std::make_unique<SmallDaemon>(SocketOfTest(),
                                         [&job](const Envelope& q) { return job.Answer(q); });
  }
  ClusterFollowWish Wish() {
    ClusterFollowWish wish;
    wish.socket = SocketOfTest();
    wish.job = 17;
    wish.show = [this](const LogLine& line) { lines_.push_back(line.text); };
    return wish;
  }
  std::vector<std::string> lines_;
};

TEST_F(FollowJobTest, ShowsAllNodesUntilTheEnd) {
  OneJob job(2);
  const auto daemon = Serve(job);
  ClusterFollowWish wish = Wish();
  std::vector<ClusterJobState> states;
  wish.seen = [&](const JobView& view) {
    states.push_back(view.state);
    if (view.state == ClusterJobState::kWaiting) {
      job.Say(0, Line("[0] one"));
      job.Say(1, Line("[1] two", "stderr"));
      job.Run();
    }
  };
  bool told = false;
  wish.shown = [&] {
    if (lines_.size() == 2 && !std::exchange(told, true)) {
      job.Say(1, Line("[1] three"));
      job.End(3);
    }
  };
  const ClusterFollowed followed = FollowJobOfCluster(wish);
  EXPECT_EQ(followed.end, ClusterFollowEnd::kEnded);
  EXPECT_EQ(followed.job.exit_code, 3);
  EXPECT_THAT(lines_, SizeIs(3));
  EXPECT_EQ(lines_[2], "[1] three");
  EXPECT_THAT(states, ElementsAre(ClusterJobState::kWaiting, ClusterJobState::kRunning,
                                  ClusterJobState::kEnded));
}

TEST_F(FollowJobTest, HasManyNodesInTurnsOverFewConnections) {
  constexpr int kNodes = 50;
  OneJob job(kNodes);
  for (int rank = 0; rank < kNodes; ++rank) job.Say(rank, Line(absl::StrCat("[", rank, "]")));
  job.Run();
  const auto daemon = Serve(job);
  ClusterFollowWish wish = Wish();
  wish.shown = [&] {
    if (lines_.size() == kNodes) job.End(0);
  };
  EXPECT_EQ(FollowJobOfCluster(wish).end, ClusterFollowEnd::kEnded);
  EXPECT_THAT(std::set<std::string>(lines_.begin(), lines_.end()), SizeIs(kNodes));
  EXPECT_LE(daemon->connections(), static_cast<int>(kMaxLogConnections) + 1);
}

TEST_F(FollowJobTest, GoesOnAfterADaemonWasStartedAnew) {
  OneJob job(1);
  job.Run();
  job.Say(0, Line("before"));
  std::unique_ptr<SmallDaemon> daemon = Serve(job);
  ClusterFollowWish wish = Wish();
  int turns = 0;
  wish.shown = [&] {
    if (lines_.size() == 1 && turns++ == 0) {
      daemon.reset();
      job.Say(0, Line("meanwhile"));
      daemon = Serve(job);
    }
    if (lines_.size() == 2) job.End(0);
  };
  EXPECT_EQ(FollowJobOfCluster(wish).end, ClusterFollowEnd::kEnded);
  EXPECT_THAT(lines_, ElementsAre("before", "meanwhile"));
}

TEST_F(FollowJobTest, SaysThatThereIsNoSuchJob) {
  OneJob job(1);
  const auto daemon = Serve(job);
  ClusterFollowWish wish = Wish();
  wish.job = 18;
  const ClusterFollowed followed = FollowJobOfCluster(wish);
  EXPECT_EQ(followed.end, ClusterFollowEnd::kRefused);
  EXPECT_THAT(std::string(followed.why.message()), HasSubstr("no job of that number"));
}

TEST_F(FollowJobTest, DoesNotWaitForWhatItMayNotRead) {
  OneJob job(2);
  job.Run();
  job.BecomeAnothers();
  const auto daemon = Serve(job);
  const ClusterFollowed followed = FollowJobOfCluster(Wish());
  EXPECT_EQ(followed.end, ClusterFollowEnd::kRefused);
  EXPECT_EQ(followed.why.message(), "it is bob's");
}

TEST_F(FollowJobTest, EndsWhereEnoughWasSeenAndReadsNoLogs) {
  OneJob job(2);
  job.Run();
  const auto daemon = Serve(job);
  ClusterFollowWish wish = Wish();
  wish.shows_logs = false;
  wish.enough = [](const JobView& view) { return view.state == ClusterJobState::kRunning; };
  EXPECT_EQ(FollowJobOfCluster(wish).end, ClusterFollowEnd::kEnough);
  EXPECT_EQ(job.asked("log"), 0);
}

TEST_F(FollowJobTest, EndsAtTheDeadlineWhereNobodySaysHowTheJobIs) {
  SmallDaemon daemon(SocketOfTest(), [](const Envelope& question) {
    return ErrorTo(question, absl::UnavailableError("no connection to the head"));
  });
  ClusterFollowWish wish = Wish();
  wish.deadline = MonotonicClock().Now();
  const ClusterFollowed followed = FollowJobOfCluster(wish);
  EXPECT_EQ(followed.end, ClusterFollowEnd::kEnough);
  EXPECT_EQ(followed.job.number, 17u);
}

TEST_F(FollowJobTest, NamesTheNodesOfWhichLinesAreMissing) {
  OneJob job(3);
  job.Say(1, Line("[1]"));
  job.Lose(0);
  job.Lose(2);
  job.Run();
  job.End(0);
  const auto daemon = Serve(job);
  const ClusterFollowed followed = FollowJobOfCluster(Wish());
  EXPECT_EQ(followed.end, ClusterFollowEnd::kEnded);
  EXPECT_THAT(followed.incomplete, ElementsAre(0, 2));
  EXPECT_THAT(lines_, ElementsAre("[1]"));
}

TEST_F(FollowJobTest, MissesNothingOfAJobWhoseLogsCanBeRead) {
  OneJob job(2);
  job.Run();
  job.End(0);
  const auto daemon = Serve(job);
  EXPECT_THAT(FollowJobOfCluster(Wish()).incomplete, IsEmpty());
}

// What ShowKeptLogs makes of `job`.
absl::StatusOr<size_t> ShowKept(OneJob& job) {
  SmallDaemon daemon(SocketOfTest(), [&job](const Envelope& q) { return job.Answer(q); });
  LocalClient client(SocketOfTest());
  const absl::StatusOr<JobView> view = AskJob(client, 17);
  return view.ok() ? ShowKeptLogs(client, *view, {}, "") : view.status();
}

TEST(ShowKeptLogs, CountsTheNodesWhoseLogsCannotBeRead) {
  OneJob job(3);
  job.Run();
  job.Lose(1);
  const absl::StatusOr<size_t> missing = ShowKept(job);
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_EQ(*missing, 1u);
}

TEST(ShowKeptLogs, FailsWhereNoLogCanBeRead) {
  OneJob job(1);
  job.Run();
  job.Lose(0);
  EXPECT_TRUE(absl::IsUnavailable(ShowKept(job).status()));
}

// Polls the log of one node until it has ended. Each question gets the next error of `fails`; then
// a line comes.
std::vector<FollowNews> PollLog(const std::vector<absl::Status>& fails) {
  std::atomic<size_t> asked = 0;
  SmallDaemon daemon(SocketOfTest(), [&](const Envelope& question) {
    const size_t at = asked++;
    if (at < fails.size()) return ErrorTo(question, fails[at]);
    return AnswerTo(question, ToJson(LogAnswer{Line("hello"), "1", false, true}));
  });
  FollowInbox inbox;
  LogPollers pollers(SocketOfTest(), 17, -1, inbox);
  pollers.Add(0);
  std::vector<FollowNews> all;
  while (all.empty() || !all.back().node_ended) {
    pollfd poll = {inbox.fd(), POLLIN, 0};
    ::poll(&poll, 1, -1);
    for (FollowNews& news : inbox.Take()) all.push_back(std::move(news));
  }
  return all;
}

TEST(LogPollers, AskAgainAfterAnAnswerThatCannotBeRead) {
  const std::vector<FollowNews> news = PollLog({absl::InternalError("no text")});
  EXPECT_THAT(news.back().lines, SizeIs(1));
}

TEST(LogPollers, TellATroubleThatComesAfterALogThatWasNotThere) {
  const std::vector<FollowNews> news =
      PollLog({absl::NotFoundError("no log"), absl::UnavailableError("no head")});
  EXPECT_EQ(std::count_if(news.begin(), news.end(),
                          [](const FollowNews& each) { return absl::IsUnavailable(each.trouble); }),
            1);
  EXPECT_THAT(news.back().lines, SizeIs(1));
}

TEST_F(FollowJobTest, ShowsOneNodeAlone) {
  OneJob job(3);
  for (int rank = 0; rank < 3; ++rank) job.Say(rank, Line(absl::StrCat("[", rank, "]")));
  job.Run();
  job.End(0);
  const auto daemon = Serve(job);
  ClusterFollowWish wish = Wish();
  wish.node = "node1";
  EXPECT_EQ(FollowJobOfCluster(wish).end, ClusterFollowEnd::kEnded);
  EXPECT_THAT(lines_, ElementsAre("[1]"));
}

}  // namespace
}  // namespace hlaunch
