// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/node_news.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"

namespace hlaunch {

NodeNews::NodeNews(asio::io_context& loop, NodeEventFn on_event)
    : on_event_(std::move(on_event)), waiting_(loop, [this](const std::string& words) {
        LogInfo(words);
        Tell(NodeWaiting{words});
      }) {}

void NodeNews::Joined() {
  if (!std::exchange(joined_, true)) Tell(NodeJoined{});
}

void NodeNews::RoundStarts(const Assignment& assignment, int nproc) {
  waiting_.Stop();
  if (!assignment.notice.empty()) LogWarning(assignment.notice);
  if (assignment.restart_count > restart_count_) {
    Tell(JobRestarted{assignment.round, assignment.restart_count});
  }
  restart_count_ = assignment.restart_count;
  const Rank last = assignment.first_rank + nproc - 1;
  LogDebug(absl::StrCat("round ", assignment.round, ": rank", nproc == 1 ? " " : "s ",
                        assignment.first_rank, nproc == 1 ? "" : absl::StrCat("-", last), " of ",
                        assignment.world_size, nproc == 1 ? " runs here" : " run here"));
  Tell(RoundStarted{assignment, nproc});
}

void NodeNews::RoundStops(Round round, const std::string& reason) {
  Tell(RoundStopped{round, reason});
}

void NodeNews::OfJob(const std::vector<News>& latest) {
  for (const News& news : latest) {
    const bool told = std::any_of(told_.begin(), told_.end(), [&](const News& one) {
      return one.number == news.number && one.text == news.text;
    });
    if (!told) LogWarning(news.text);
  }
  told_ = latest;
}

void NodeNews::Contact(bool connected, const std::string& detail, bool in_job) {
  if (connected) {
    waiting_.Stop();
    if (!std::exchange(lost_contact_, false)) return;
    LogInfo(detail);
    Tell(ContactChanged{true, detail});
  } else if (in_job) {
    lost_contact_ = true;
    Tell(ContactChanged{false, detail});
    LogWarning(detail);
  } else {
    waiting_.Wait(absl::StrCat("waiting for ", detail));
  }
}

void NodeNews::Tell(const NodeEvent& event) const {
  if (on_event_) on_event_(event);
}

}  // namespace hlaunch
