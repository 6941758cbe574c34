// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/log_pollers.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "launcher/cluster/client/cluster_questions.h"
#include "proto/base/clock.h"
#include "proto/base/thread.h"

namespace hlaunch {
namespace {

constexpr int kLogWaitSeconds = 10;  // If the connection serves one node.
constexpr int kTurnMs = 200;         // If it serves several nodes and none has said anything.
constexpr int kTriesAfterEnd = 5;    // For a node that says nothing after the job has ended.

}  // namespace

// One connection and the nodes whose logs it asks for in turn. Thread-safe.
class LogPollers::Poller {
 public:
  Poller(const std::string& path, uint64_t job, int tail, FollowInbox& inbox, int stop,
         int first_node)
      : job_(job),
        tail_(tail),
        inbox_(inbox),
        stop_(stop),
        client_(path, stop),
        added_{first_node},
        thread_("hl-log", [this] { Run(); }) {}

  void Add(int node_rank) {
    MutexLock lock(&mu_);
    added_.push_back(node_rank);
  }
  void JobEnded() {
    MutexLock lock(&mu_);
    ended_ = true;
  }

 private:
  struct Node {
    explicit Node(int node_rank) : rank(node_rank) {}
    int rank;
    std::string position;
    NodeLines lines;
    int silent_since_end = 0;
    bool over = false;
  };

  void Run() {
    std::vector<Node> nodes;
    while (true) {
      const bool job_ended = TakeNew(nodes);
      const int wait_s = nodes.size() == 1 ? (job_ended ? 1 : kLogWaitSeconds) : 0;
      bool heard = false;
      for (Node& node : nodes) heard = Ask(node, wait_s, job_ended) || heard;
      nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.over; }),
                  nodes.end());
      const int pause = in_trouble_ ? kRetryMs : heard || nodes.size() == 1 ? 0 : kTurnMs;
      if (Pause(pause)) return;
    }
  }

  // Returns true if the job has ended.
  bool TakeNew(std::vector<Node>& nodes) {
    MutexLock lock(&mu_);
    for (const int rank : std::exchange(added_, {})) nodes.emplace_back(rank);
    return ended_;
  }

  // Returns true if the thread shall end.
  bool Pause(int ms) const {
    pollfd poll = {stop_, POLLIN, 0};
    return ::poll(&poll, 1, ms) > 0;
  }

  // Returns true if the node has said something.
  bool Ask(Node& node, int wait_s, bool job_ended) {
    LogQuestion question;
    question.job = job_;
    question.node_rank = node.rank;
    question.position = node.position;
    question.tail = node.position.empty() ? tail_ : -1;
    question.wait_s = wait_s;
    absl::StatusOr<LogAnswer> answer = AskLog(client_, question);
    if (!answer.ok()) {
      TakeError(node, answer.status(), job_ended);
      return false;
    }
    in_trouble_ = false;
    if (std::exchange(told_trouble_, false)) {
      FollowNews news;
      news.well = true;
      inbox_.Put(std::move(news));
    }
    return TakeAnswer(node, *std::move(answer), job_ended);
  }

  bool TakeAnswer(Node& node, LogAnswer answer, bool job_ended) {
    FollowNews news;
    news.node_rank = node.rank;
    news.lines = node.lines.Take(answer.text);
    news.lost = answer.lost;
    const bool heard = !answer.text.empty();
    node.position = std::move(answer.position);
    node.silent_since_end = heard || !job_ended ? 0 : node.silent_since_end + 1;
    node.over = answer.ended || node.silent_since_end >= kTriesAfterEnd;
    if (node.over) {
      for (LogLine& line : node.lines.Rest()) news.lines.push_back(std::move(line));
    }
    news.node_ended = node.over;
    if (heard || node.over) inbox_.Put(std::move(news));
    return heard;
  }

  void TakeError(Node& node, const absl::Status& why, bool job_ended) {
    if (absl::IsCancelled(why)) return;
    // The node's part may not have begun yet, or its log may be gone already.
    const bool not_there = absl::IsNotFound(why);
    if (job_ended) ++node.silent_since_end;
    node.over = (!not_there && !MayBeAnsweredLater(why)) || node.silent_since_end >= kTriesAfterEnd;
    FollowNews news;
    news.node_rank = node.rank;
    news.node_ended = news.unread = node.over;
    if (absl::IsPermissionDenied(why)) {  // Another user's job: all its nodes are refused.
      news.refused = why;
      return inbox_.Put(std::move(news));
    }
    in_trouble_ = true;
    const bool first = !not_there && !std::exchange(told_trouble_, true);
    if (first || (!not_there && node.over)) news.trouble = why;
    if (node.over || !news.trouble.ok()) inbox_.Put(std::move(news));
  }

  const uint64_t job_;
  const int tail_;
  FollowInbox& inbox_;
  const int stop_;
  // Only the thread uses these.
  LocalClient client_;
  bool in_trouble_ = false;    // The last question was not answered.
  bool told_trouble_ = false;  // The inbox knows of a trouble that has not passed.
  Mutex mu_;
  std::vector<int> added_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  Thread thread_;  // The last member: the thread runs while all others are there.
};

LogPollers::LogPollers(std::string path, uint64_t job, int tail, FollowInbox& inbox)
    : path_(std::move(path)),
      job_(job),
      tail_(tail),
      inbox_(inbox),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

LogPollers::~LogPollers() {
  ::eventfd_write(stop_.get(), 1);
  inbox_.Close();
  pollers_.clear();
}

void LogPollers::Add(int node_rank) {
  if (!added_.insert(node_rank).second) return;
  const size_t at = count_++ % kMaxLogConnections;
  if (at < pollers_.size()) return pollers_[at]->Add(node_rank);
  pollers_.push_back(std::make_unique<Poller>(path_, job_, tail_, inbox_, stop_.get(), node_rank));
}

void LogPollers::JobEnded() {
  for (const auto& poller : pollers_) poller->JobEnded();
}

}  // namespace hlaunch
