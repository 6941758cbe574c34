// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/joint_check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/health/joint/known_sum.h"
#include "agent/health/joint/measure_pair.h"
#include "agent/health/joint/node_group.h"
#include "agent/health/joint/roll_call.h"
#include "comm/process_group.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/store/c10d/c10d_client.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kTermsPerNode = 500;  // Its part of the sum: one packet or three.
constexpr uint64_t kSumSeed = 0;
constexpr Duration kRequestLimit = seconds(5);
constexpr Duration kFarewell = seconds(1);  // For the other nodes to read the last answer.
constexpr Duration kBlame = seconds(1);     // For a group to find whom it waited for in vain.

struct Limits {
  Duration all;   // For the whole check.
  Duration come;  // For the other nodes to come.
  Duration sum;   // For the sum.
  Duration pair;  // For one pair.
  PairTest test;  // What one pair sends.
};

Limits LimitsOf(bool full) {
  if (full) return {seconds(45), seconds(20), seconds(5), seconds(3), PairTest()};
  return {seconds(11), seconds(8), seconds(2), milliseconds(1500), {20, 8, 2, 1 << 20}};
}

// The line that one end of a pair says in a round.
std::string PairLine(const PairResult& result) {
  return absl::StrCat(result.failed, " ", result.wrong, " ", result.latency_us, " ", result.gbit_s,
                      " ", result.why);
}

std::optional<PairResult> ReadPairLine(const NodePair& pair, absl::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 4));
  PairResult result{pair};
  if (words.size() != 5 || !absl::SimpleAtod(words[2], &result.latency_us) ||
      !absl::SimpleAtod(words[3], &result.gbit_s)) {
    return {};
  }
  result.failed = words[0] != "0";
  result.wrong = words[1] != "0";
  result.why = words[4];
  return result;
}

std::string FiguresLine(const NodeFigures& figures) {
  return absl::StrJoin(figures.values, " ");  // Unknown values are "nan".
}

class JointCheck {
 public:
  JointCheck(const JointPlan& plan, std::shared_ptr<Store> store, std::string address,
             Duration farewell)
      : plan_(plan),
        limits_(LimitsOf(plan.full)),
        prefix_(absl::StrCat("hlaunch/joint/", plan.round, "/")),
        store_(std::move(store)),
        address_(std::move(address)),
        farewell_(farewell),
        end_(MonotonicClock().Now() + limits_.all) {}

  JointReport Run() {
    const absl::Status done = Check();
    Leave().IgnoreError();
    JointReport report = done.ok() ? JudgeTogether(facts_) : JointReport();
    report.why = std::string(done.message());
    report.node_rank = plan_.node_rank;
    return report;
  }

 private:
  Instant Within(Duration limit) const { return std::min(end_, MonotonicClock().Now() + limit); }

  absl::StatusOr<RollCall> Call(absl::string_view what, absl::string_view line, Duration limit) {
    const std::string key = absl::StrCat(prefix_, what);
    for (std::string& each : RollCallKeys(key)) keys_.push_back(std::move(each));
    return CallRoll(*store_, key, plan_.node_rank, present_, line, Within(limit));
  }

  absl::Status Check() {
    facts_.size = plan_.size;
    for (Rank rank = 0; rank < plan_.size; ++rank) present_.push_back(rank);
    HLAUNCH_ASSIGN_OR_RETURN(facts_.hosts, Call("here", "", limits_.come));
    present_.clear();
    for (const auto& [rank, nothing] : facts_.hosts) present_.push_back(rank);
    if (!facts_.hosts.contains(plan_.node_rank)) {
      return absl::DeadlineExceededError("this node came too late to the joint check");
    }
    if (present_.size() == static_cast<size_t>(plan_.size)) {
      const std::string said = AddTogether();
      HLAUNCH_ASSIGN_OR_RETURN(facts_.sums, Call("sum", said, limits_.sum + limits_.pair + kBlame));
    }
    const bool exact = std::all_of(facts_.sums.begin(), facts_.sums.end(),
                                   [](const auto& sum) { return sum.second == kSumExact; });
    if (!plan_.full && exact) return absl::OkStatus();
    return ExamineAll();
  }

  // The part for which each node gets a line of every node: names, figures, pairs.
  absl::Status ExamineAll() {
    HLAUNCH_ASSIGN_OR_RETURN(const RollCall names, Call("hosts", plan_.host, limits_.pair));
    for (const auto& [rank, name] : names) facts_.hosts[rank] = name;
    if (plan_.full) {
      HLAUNCH_ASSIGN_OR_RETURN(facts_.figures,
                               Call("figures", FiguresLine(plan_.figures), limits_.pair));
    }
    return MeasurePairs();
  }

  // Adds up the numbers of all nodes. Returns what this node says of the sum.
  std::string AddTogether() {
    RememberGroup("all", plan_.size);
    auto group = Group("all", plan_.node_rank, plan_.size, limits_.sum);
    if (!group.ok()) return std::string(group.status().message());
    std::vector<int64_t> terms(kTermsPerNode), sum(kTermsPerNode);
    FillTerms(plan_.node_rank, kSumSeed, terms);
    const absl::Status done =
        (*group)->Run(AllReduce(DataType::kInt64, ReduceOp::kSum, std::as_bytes(std::span(terms)),
                                std::as_writable_bytes(std::span(sum))));
    if (!done.ok()) return std::string(done.message());
    return IsSumOf(present_, kSumSeed, sum) ? kSumExact : kSumWrong;
  }

  // Measures pairs. pair_plan numbers only the nodes that came, from 0.
  absl::Status MeasurePairs() {
    absl::Status done;
    const auto measure = [&](const std::vector<NodePair>& pairs) {
      if (done.ok()) {
        auto results = MeasureRound(pairs);
        if (results.ok()) return *std::move(results);
        done = results.status();
      }
      return std::vector<PairResult>(pairs.size());  // It will not be used.
    };
    PairReport report = TestPairs(static_cast<int>(present_.size()), limits_.test, measure);
    HLAUNCH_RETURN_IF_ERROR(done);
    for (PairResult& result : report.results) result.pair = Ranks(result.pair);
    for (int& node : report.verdict.bad_nodes) node = At(node);
    for (int& node : report.verdict.open) node = At(node);
    for (NodePair& link : report.verdict.bad_links) link = Ranks(link);
    facts_.pairs = std::move(report.results);
    facts_.verdict = std::move(report.verdict);
    facts_.rounds = report.rounds;
    return absl::OkStatus();
  }

  Rank At(int node) const { return present_[static_cast<size_t>(node)]; }
  NodePair Ranks(const NodePair& pair) const { return {At(pair.a), At(pair.b)}; }

  absl::StatusOr<std::vector<PairResult>> MeasureRound(const std::vector<NodePair>& pairs) {
    if (MonotonicClock().Now() >= end_) {
      return absl::DeadlineExceededError("the time for the joint check is over");
    }
    const std::string round = absl::StrCat("pairs", ++rounds_);
    std::string line;
    for (const NodePair& pair : pairs) {
      const NodePair ranks = Ranks(pair);
      const std::string name = absl::StrCat(round, "/", ranks.a, "-", ranks.b);
      RememberGroup(name, 2);
      if (ranks.a != plan_.node_rank && ranks.b != plan_.node_rank) continue;
      line = PairLine(MeasureOwn(name, ranks));
    }
    HLAUNCH_ASSIGN_OR_RETURN(const RollCall said, Call(round, line, limits_.pair + seconds(1)));
    std::vector<PairResult> results;
    for (const NodePair& pair : pairs) results.push_back(Combine(pair, said));
    return results;
  }

  PairResult MeasureOwn(const std::string& name, const NodePair& ranks) {
    auto group = Group(name, ranks.a == plan_.node_rank ? 0 : 1, 2, limits_.pair);
    if (group.ok()) return MeasurePair(**group, ranks, limits_.test);
    return {ranks, true, 0, 0, false, std::string(group.status().message())};
  }

  // Combines what the two ends of a pair say.
  PairResult Combine(const NodePair& pair, const RollCall& said) const {
    PairResult both{pair};
    for (const Rank rank : {At(pair.a), At(pair.b)}) {
      const auto line = said.find(rank);
      const auto one = line == said.end() ? std::nullopt : ReadPairLine(pair, line->second);
      if (!one) {
        both.failed = true;
        both.why = absl::StrCat(facts_.hosts.at(rank), " said nothing of it");
        continue;
      }
      if (one->failed && (!both.failed || one->wrong)) both.why = one->why;
      both.failed = both.failed || one->failed;
      both.wrong = both.wrong || one->wrong;
      both.latency_us = std::max(both.latency_us, one->latency_us);
      both.gbit_s = both.gbit_s == 0 ? one->gbit_s : std::min(both.gbit_s, one->gbit_s);
    }
    return both;
  }

  absl::StatusOr<std::unique_ptr<ProcessGroup>> Group(const std::string& name, int rank, int size,
                                                      Duration limit) {
    return JoinNodeGroup(store_, GroupName(name), rank, size, address_,
                         Within(limit) - MonotonicClock().Now());
  }

  std::string GroupName(absl::string_view name) const {
    return absl::StrCat("joint/", plan_.round, "/", name);
  }

  // Notes the keys of a group, to remove them at the end.
  void RememberGroup(absl::string_view name, int size) {
    const std::string prefix = absl::StrCat("hlaunch/comm/", GroupName(name), "/");
    for (int rank = 0; rank < size; ++rank) keys_.push_back(absl::StrCat(prefix, rank));
    keys_.insert(keys_.end(), {prefix + "failure", prefix + "waits", prefix + "search"});
  }

  // The first node that came removes the keys once no node reads them any more; no worker starts
  // before that node has answered. A node that came too late is not waited for and may not know all
  // keys, so it has no part in this.
  absl::Status Leave() {
    if (std::find(present_.begin(), present_.end(), plan_.node_rank) == present_.end()) {
      return absl::OkStatus();
    }
    const std::string left = prefix_ + "left", gone = prefix_ + "gone";
    HLAUNCH_ASSIGN_OR_RETURN(const int64_t count, store_->Add(left, 1));
    if (count == static_cast<int64_t>(present_.size())) {
      HLAUNCH_RETURN_IF_ERROR(store_->Set(gone, ""));
    }
    if (plan_.node_rank != present_.front()) return absl::OkStatus();
    store_->Wait({gone}, MonotonicClock().Now() + farewell_).IgnoreError();
    keys_.insert(keys_.end(), {left, gone});
    for (const std::string& key : keys_) HLAUNCH_RETURN_IF_ERROR(store_->Delete(key).status());
    return absl::OkStatus();
  }

  const JointPlan plan_;
  const Limits limits_;
  const std::string prefix_;
  const std::shared_ptr<Store> store_;
  const std::string address_;
  const Duration farewell_;
  const Instant end_;
  JointFacts facts_;
  std::vector<Rank> present_;
  int rounds_ = 0;
  std::vector<std::string> keys_;  // The keys that were made or may have been made.
};

}  // namespace

Duration JointLimit(bool full) { return LimitsOf(full).all + 2 * kFarewell; }

JointReport CheckTogether(const JointPlan& plan, std::shared_ptr<Store> store,
                          const std::string& address, Duration farewell) {
  return JointCheck(plan, std::move(store), address, farewell).Run();
}

absl::StatusOr<std::unique_ptr<Store>> ConnectToStore(const JointPlan& plan, Duration limit) {
  C10dClientOptions options;
  options.request_timeout = kRequestLimit;
  return C10dClient::Connect(plan.master, plan.port, MonotonicClock().Now() + limit, options);
}

JointReport CheckTogether(const JointPlan& plan) {
  JointReport report;
  absl::StatusOr<std::unique_ptr<Store>> store = ConnectToStore(plan, LimitsOf(plan.full).come);
  const absl::StatusOr<std::string> address =
      store.ok() ? LocalAddressTowards(plan.master) : store.status();
  if (!address.ok()) {
    report.why = std::string(address.status().message());
    return report;
  }
  return CheckTogether(plan, *std::move(store), *address, kFarewell);
}

}  // namespace hlaunch
