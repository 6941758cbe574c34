// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/joint_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/health/joint/node_group.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// The terms that are added up: each figure, who knows it, who has finished, news.
constexpr size_t kFinished = 2 * kFigures, kNews = kFinished + 1, kTerms = kNews + 1;

template <typename Number>
Collective Reduced(DataType type, ReduceOp op, const Number& from, Number& into) {
  return AllReduce(type, op, std::as_bytes(std::span(from)),
                   std::as_writable_bytes(std::span(into)));
}

}  // namespace

double JointTurn::MeanOfOthers(Figure figure, double own) const {
  const bool counted = std::isfinite(own);
  const int others = known[static_cast<size_t>(figure)] - (counted ? 1 : 0);
  if (others < 1) return std::numeric_limits<double>::quiet_NaN();
  return (sums[figure] - (counted ? own : 0)) / others;
}

JointWatch::JointWatch(const JointPlan& plan, std::string address, ConnectFn connect)
    : plan_(plan),
      address_(std::move(address)),
      connect_(std::move(connect)),
      ways_(plan, address_) {}

void JointWatch::AddNews(std::string line) {
  line.resize(std::min(line.size(), kLineBytes));
  news_.push_back(std::move(line));
  if (news_.size() > kMaxNews) news_.pop_front();
}

absl::StatusOr<JointTurn> JointWatch::Take(const NodeTurn& turn, Duration patience) {
  if (store_ == nullptr) {
    HLAUNCH_ASSIGN_OR_RETURN(store_, connect_());
  }
  HLAUNCH_RETURN_IF_ERROR(ways_.Announce(*store_));
  if (group_ == nullptr) {
    HLAUNCH_ASSIGN_OR_RETURN(
        group_, JoinNodeGroup(store_, absl::StrCat("watch/", plan_.round, "/", groups_),
                              plan_.node_rank, plan_.size, address_, patience));
    ++groups_;
  }
  absl::StatusOr<JointTurn> taken = TakeInGroup(turn, patience);
  if (!taken.ok()) group_.reset();
  if (taken.ok()) ways_.Learn(*store_, MonotonicClock().Now() + patience).IgnoreError();
  return taken;
}

absl::StatusOr<JointTurn> JointWatch::TakeInGroup(const NodeTurn& turn, Duration patience) {
  std::array<double, kTerms> own{}, all{};
  for (size_t f = 0; f < kFigures; ++f) {
    if (!std::isfinite(turn.figures.values[f])) continue;
    own[f] = turn.figures.values[f];
    own[kFigures + f] = 1;
  }
  own[kFinished] = turn.finished ? 1 : 0;
  own[kNews] = static_cast<double>(news_.size());
  HLAUNCH_RETURN_IF_ERROR(
      group_->Run(Reduced(DataType::kFloat64, ReduceOp::kSum, own, all), patience));
  JointTurn taken;
  for (size_t f = 0; f < kFigures; ++f) {
    taken.known[f] = static_cast<int>(all[kFigures + f]);
    if (taken.known[f] > 0) taken.sums.values[f] = all[f];
  }
  taken.finished = static_cast<int>(all[kFinished]);
  const int news = static_cast<int>(all[kNews]);
  for (int i = 0; i < std::min(news, kNewsPerTurn); ++i) {
    HLAUNCH_ASSIGN_OR_RETURN(std::string line, DeliverOne(patience));
    if (!line.empty()) taken.news.push_back(std::move(line));
  }
  taken.untold = news - std::min(news, kNewsPerTurn);
  return taken;
}

// The highest node rank that has news sends its oldest line. Returns the line on node rank 0, if it
// is another node's.
absl::StatusOr<std::string> JointWatch::DeliverOne(Duration patience) {
  const std::array<int64_t, 1> own = {news_.empty() ? -1 : plan_.node_rank};
  std::array<int64_t, 1> teller{};
  HLAUNCH_RETURN_IF_ERROR(
      group_->Run(Reduced(DataType::kInt64, ReduceOp::kMax, own, teller), patience));
  if (teller[0] == plan_.node_rank) {
    if (plan_.node_rank != 0) {
      std::string line = news_.front();
      line.resize(kLineBytes, ' ');
      HLAUNCH_RETURN_IF_ERROR(group_->Send(DataType::kByte, std::as_bytes(std::span(line)), 0));
    }
    news_.pop_front();
    return "";
  }
  if (plan_.node_rank != 0 || teller[0] < 0) return "";
  std::string line(kLineBytes, ' ');
  HLAUNCH_RETURN_IF_ERROR(group_
                              ->Recv(DataType::kByte, std::as_writable_bytes(std::span(line)),
                                     static_cast<Rank>(teller[0]))
                              .status());
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace hlaunch
