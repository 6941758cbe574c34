// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/watch_node.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "agent/health/health_changes.h"
#include "agent/health/node_health.h"
#include "proto/base/utf8_prefix.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/round/values/figures.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr int kNice = 10;                       // The workers come first.
constexpr Duration kCheckLimit = seconds(5);    // For the checks of a turn.
constexpr Duration kPatience = seconds(10);     // For the other nodes in a turn.
constexpr Duration kConnectLimit = seconds(5);  // For the store of the round.
constexpr Duration kLook = seconds(4);  // For an answer: the kernel sends its SYN three times.
constexpr Duration kBetweenLooks = seconds(5);  // The interval of turns, if shorter.
constexpr int kFewNodes = 3;                    // Fewer nodes have no majority.
constexpr size_t kWords = 400;                  // Bytes of a reason that is sent over the network.

constexpr char kPace[] = "slower than other nodes";
constexpr char kEnd[] = "the end";
constexpr char kOthers[] = "other nodes";

CheckResult OthersAnswer(const absl::Status& status) {
  CheckResult result{kOthers, {}, "", CheckState::kOk, "", ""};
  if (status.ok()) return result;
  result.state = CheckState::kWarn;
  result.reason = absl::StrCat("their health is not known: ",
                               absl::StrReplaceAll(status.message(), {{"rank ", "node rank "}}));
  result.advice = "if it lasts, see whether that node still answers";
  return result;
}

class NodeWatch {
 public:
  NodeWatch(const CheckPlan& plan, int input, const std::function<void(const CheckResult&)>& tell)
      : plan_(plan), input_(input), tell_(tell), checks_(plan) {
    own_.Take(checks_.Take(kCheckLimit));
    beside_.Take({OthersAnswer(absl::OkStatus()), {kEnd, {}, "", CheckState::kOk, "", ""}});
    if (!plan.joint || plan.joint->size < 2) return;
    const auto address = LocalAddressTowards(plan.joint->master);
    joint_.emplace(*plan.joint, address.value_or("127.0.0.1"),
                   [plan] { return ConnectToStore(*plan.joint, kConnectLimit); });
  }

  void Turn() {
    Rest(plan_.watch);
    const std::vector<CheckResult> results = checks_.Take(kCheckLimit);
    for (CheckResult& change : own_.Take(results)) Tell(std::move(change));
    if (!joint_) return;
    NodeTurn turn{NodeHealthOf(results, "").figures, finished_};
    const double pace = turn.figures[Figure::kProcessor];
    if (slow_) turn.figures[Figure::kProcessor] = std::nan("");  // It must not distort the mean.
    // After a failed turn, other nodes may be behind by up to a turn.
    const Duration patience = kPatience + (together_ ? Duration::zero() : plan_.watch);
    const absl::StatusOr<JointTurn> taken = joint_->Take(turn, patience);
    together_ = taken.ok();
    for (CheckResult& change : beside_.Take({OthersAnswer(taken.status())})) {
      // Every node finds this out, so one of them reports it.
      if (plan_.joint->node_rank == 0) tell_(change);
    }
    TellUnreached(taken.ok() ? std::vector<int>() : LookTwice());
    if (!taken.ok()) return;
    Hear(*taken);
    for (CheckResult& change : beside_.Take({ComparePace(*taken, slow_ ? std::nan("") : pace, pace),
                                             CompareEnd(*taken, plan_.joint->size, finished_)})) {
      if (change.name == kPace) slow_ = change.state != CheckState::kOk;
      Tell(std::move(change));
    }
  }

 private:
  // Waits for `duration`. The end of the input means that the workers have ended.
  void Rest(Duration duration) {
    const Instant until = MonotonicClock().Now() + duration;
    pollfd input{finished_ ? -1 : input_, POLLIN, 0};
    while (MonotonicClock().Now() < until) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - MonotonicClock().Now());
      if (::poll(&input, 1, static_cast<int>(left.count())) > 0) {
        finished_ = true;
        input.fd = -1;
      }
    }
  }

  // The nodes that answer neither of two looks.
  std::vector<int> LookTwice() {
    const std::vector<int> first = joint_->LookForUnreached(kLook);
    if (first.empty()) return first;
    Rest(std::min(kBetweenLooks, plan_.watch));
    const std::vector<int> second = joint_->LookForUnreached(kLook);
    std::vector<int> both;
    std::set_intersection(first.begin(), first.end(), second.begin(), second.end(),
                          std::back_inserter(both));
    return both;
  }

  // Reports only what this node found; the other nodes report what they find.
  void TellUnreached(std::vector<int> unreached) {
    if (unreached == unreached_) return;
    unreached_ = std::move(unreached);
    tell_(ToResult(unreached_));
  }

  void Tell(CheckResult change) {
    tell_(change);
    if (!joint_ || plan_.joint->node_rank == 0) return;
    change.name = absl::StrCat(plan_.joint->host, ": ", change.name);
    joint_->AddNews(NewsLine(std::move(change)));
  }

  void Hear(const JointTurn& turn) {
    for (const std::string& line : turn.news) {
      if (const auto change = FromLine(line)) tell_(*change);
    }
    if (turn.untold > 0 && plan_.joint->node_rank == 0) {
      tell_({kOthers,
             {},
             "",
             CheckState::kWarn,
             absl::StrCat("they have ", turn.untold, " more to say, which comes later"),
             ""});
    }
  }

  const CheckPlan plan_;
  const int input_;
  const std::function<void(const CheckResult&)>& tell_;
  RepeatedChecks checks_;
  std::optional<JointWatch> joint_;
  HealthChanges own_, beside_;
  bool finished_ = false;
  bool together_ = false;       // The last turn succeeded.
  bool slow_ = false;           // This node has reported that it is slow.
  std::vector<int> unreached_;  // The node ranks last reported as unreached.
};

}  // namespace

CheckResult ComparePace(const JointTurn& turn, double said, double own) {
  CheckResult result{kPace, {}, "", CheckState::kUnknown, "", ""};
  const double others = turn.MeanOfOthers(Figure::kProcessor, said);
  const int nodes =
      turn.known[static_cast<size_t>(Figure::kProcessor)] + (std::isfinite(said) ? 0 : 1);
  if (!std::isfinite(own) || !(others > 0) || nodes < kFewNodes) return result;
  result.state = CheckState::kOk;
  const double ratio = own / others;
  const FigureRule& rule = RuleOf(Figure::kProcessor);
  if (ratio < rule.bad) return result;
  result.state = CheckState::kWarn;
  result.reason = absl::StrFormat("%s %.3g %s, %.2g times the %.3g %s of the others", rule.name,
                                  own, rule.unit, ratio, others, rule.unit);
  result.advice = "see what else runs there, its power limit and its temperature";
  return result;
}

CheckResult CompareEnd(const JointTurn& turn, int size, bool finished) {
  CheckResult result{kEnd, {}, "", CheckState::kOk, "", ""};
  if (finished || turn.finished * 2 <= size) return result;
  result.state = CheckState::kWarn;
  result.reason = absl::StrCat(turn.finished, " of ", size,
                               " nodes have finished, and workers of this one have not");
  result.advice = "py-spy dump --pid PID shows where a worker is";
  return result;
}

std::string NewsLine(CheckResult change) {
  change.detail.clear();
  change.reason = std::string(Utf8Prefix(change.reason, kWords));
  std::string line = ToLine(change);
  // What JSON has to escape takes up to six times the room.
  while (line.size() > JointWatch::kLineBytes && change.reason.size() + change.advice.size() > 0) {
    std::string& longer =
        change.reason.size() >= change.advice.size() ? change.reason : change.advice;
    longer.resize(Utf8Prefix(longer, longer.size() / 2).size());
    line = ToLine(change);
  }
  return line;
}

void WatchNode(const CheckPlan& plan, int input,
               const std::function<void(const CheckResult&)>& tell) {
  ::nice(kNice);
  NodeWatch watch(plan, input, tell);
  while (true) watch.Turn();
}

}  // namespace hlaunch
