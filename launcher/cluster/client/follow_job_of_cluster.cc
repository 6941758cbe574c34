// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/follow_job_of_cluster.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/client/follow_inbox.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/cluster/client/log_pollers.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/thread.h"

namespace hlaunch {
namespace {

constexpr int kJobWaitSeconds = 15;
// How long after the job's end its last lines may take to come.
constexpr Duration kPatienceAfterEnd = std::chrono::seconds(20);

// Asks for the job again and again until it has ended. The object's thread ends with it.
class JobPoller {
 public:
  JobPoller(const std::string& path, uint64_t job, FollowInbox& inbox)
      : job_(job),
        inbox_(inbox),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        client_(path, stop_.get()),
        thread_("hl-job", [this] { Run(); }) {}
  ~JobPoller() {
    ::eventfd_write(stop_.get(), 1);
    thread_.Join();
  }

 private:
  void Run() {
    uint64_t seen = 0;
    bool in_trouble = false;
    while (true) {
      absl::StatusOr<JobView> job = AskJob(client_, job_, seen, kJobWaitSeconds);
      FollowNews news;
      if (job.ok()) {
        news.well = std::exchange(in_trouble, false);
        const bool ended = job->state == ClusterJobState::kEnded;
        if (job->version != seen || seen == 0 || news.well) {
          seen = job->version;
          news.job = *std::move(job);
          inbox_.Put(std::move(news));
        }
        if (ended) return;
        if (Pause(0)) return;
        continue;
      }
      if (absl::IsCancelled(job.status())) return;
      if (!MayBeAnsweredLater(job.status())) {
        news.refused = job.status();
        return inbox_.Put(std::move(news));
      }
      if (!std::exchange(in_trouble, true)) {
        news.trouble = job.status();
        inbox_.Put(std::move(news));
      }
      if (Pause(kRetryMs)) return;
    }
  }

  bool Pause(int ms) const {
    pollfd poll = {stop_.get(), POLLIN, 0};
    return ::poll(&poll, 1, ms) > 0;
  }

  const uint64_t job_;
  FollowInbox& inbox_;
  const UniqueFd stop_;
  LocalClient client_;
  Thread thread_;  // The last member: the thread starts when all others are there.
};

// Belongs to the thread that follows.
class Follower {
 public:
  explicit Follower(const ClusterFollowWish& wish)
      : wish_(wish),
        logs_(wish.socket, wish.job, wish.tail, inbox_),
        poller_(wish.socket, wish.job, inbox_) {
    job_.number = wish.job;
  }
  ~Follower() { inbox_.Close(); }

  ClusterFollowed Run() {
    while (true) {
      const bool asked = Wait();
      for (FollowNews& news : inbox_.Take()) TakeNews(std::move(news));
      if (wish_.shown) wish_.shown();
      if (!refused_.ok()) return {ClusterFollowEnd::kRefused, job_, refused_};
      if (const int signal = asked ? SignalToLeave() : 0; signal != 0) {
        return {ClusterFollowEnd::kLeft, job_, absl::OkStatus(), signal};
      }
      if (IsEnough()) return {ClusterFollowEnd::kEnough, job_, absl::OkStatus()};
      if (IsOver()) return {ClusterFollowEnd::kEnded, job_, absl::OkStatus(), 0, Incomplete()};
    }
  }

 private:
  // Waits until there is something to do. Returns true if a signal came.
  bool Wait() const {
    constexpr int kTick = 500;  // For the deadlines.
    pollfd polls[] = {{inbox_.fd(), POLLIN, 0}, {wish_.signals, POLLIN, 0}};
    ::poll(polls, 2, kTick);
    return polls[1].revents != 0;
  }

  // Returns the signal on which to leave the job alone; 0: none came.
  int SignalToLeave() const {
    signalfd_siginfo info;
    while (::read(wish_.signals, &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (wish_.asked && wish_.asked(signal)) return signal;
    }
    return 0;
  }

  bool IsEnough() const {
    if (has_job_ && wish_.enough && wish_.enough(job_)) return true;
    return MonotonicClock().Now() >= wish_.deadline;
  }

  bool IsOver() const {
    if (!has_job_ || job_.state != ClusterJobState::kEnded) return false;
    return over_.size() >= logs_.nodes().size() || MonotonicClock().Now() >= give_up_;
  }

  // Those that said that lines are lost, and those that did not come to their end.
  std::vector<int> Incomplete() const {
    std::vector<int> incomplete(lost_.begin(), lost_.end());
    for (const int node : logs_.nodes()) {
      if (over_.count(node) == 0 && lost_.count(node) == 0) incomplete.push_back(node);
    }
    std::sort(incomplete.begin(), incomplete.end());
    return incomplete;
  }

  void TakeNews(FollowNews news) {
    if (!news.refused.ok()) refused_ = news.refused;
    TellTrouble(news);
    if (news.job.has_value()) TakeJob(*std::move(news.job));
    if (news.lost || news.unread) lost_.insert(news.node_rank);
    if (news.lost) LogWarning(absl::StrCat("node ", news.node_rank, ": lines are missing here"));
    for (const LogLine& line : news.lines) {
      if (wish_.show) wish_.show(line);
    }
    if (!news.lines.empty()) give_up_ = MonotonicClock().Now() + kPatienceAfterEnd;
    if (news.node_ended) over_.insert(news.node_rank);
  }

  // Several threads ask and meet the same trouble, which is told once.
  void TellTrouble(const FollowNews& news) {
    if (!news.trouble.ok() && news.trouble.message() != trouble_) {
      trouble_ = std::string(news.trouble.message());
      LogWarning(absl::StrCat(PrintableLine(trouble_), "; job ", wish_.job,
                              " is not disturbed by that, and is followed again once it can be"));
    }
    if (news.well && !trouble_.empty()) {
      LogInfo(absl::StrCat("job ", wish_.job, " can be followed again"));
      trouble_.clear();
    }
  }

  void TakeJob(JobView job) {
    job_ = std::move(job);
    has_job_ = true;
    if (wish_.seen) wish_.seen(job_);
    // While the job waits, no part of it has a log.
    const bool begun = job_.state != ClusterJobState::kWaiting;
    for (const PartView& part : job_.parts) {
      if (begun && wish_.shows_logs && IsNode(part, wish_.node)) logs_.Add(part.node_rank);
    }
    if (job_.state != ClusterJobState::kEnded) return;
    give_up_ = MonotonicClock().Now() + kPatienceAfterEnd;
    logs_.JobEnded();
  }

  const ClusterFollowWish& wish_;
  JobView job_;
  bool has_job_ = false;
  absl::Status refused_;
  std::string trouble_;  // The trouble that was told last; empty: there is none.
  std::set<int> over_;   // Nodes that send no more lines.
  std::set<int> lost_;   // Nodes of which lines are missing.
  Instant give_up_;
  FollowInbox inbox_;
  LogPollers logs_;
  JobPoller poller_;
};

}  // namespace

bool IsNode(const PartView& part, const std::string& node) {
  return node.empty() || node == part.host || node == absl::StrCat(part.node_rank);
}

ClusterFollowed FollowJobOfCluster(const ClusterFollowWish& wish) { return Follower(wish).Run(); }

}  // namespace hlaunch
