// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/hang_watch.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/watch/hang/node_look.h"
#include "agent/watch/hang/snapshot_exchange.h"
#include "agent/watch/hang/snapshot_text.h"
#include "agent/watch/hang/told_hang.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/contract/rank_list.h"
#include "rendezvous/round/hang/attribute_hang.h"
#include "rendezvous/round/hang/describe_hang.h"
#include "rendezvous/round/hang/judge_hang.h"

namespace hlaunch {
namespace {

constexpr Duration kMostApart = std::chrono::seconds(5);  // The longest time between two looks.
constexpr Duration kLeastApart = std::chrono::milliseconds(200);
constexpr int kLooks = 8;                             // Looks within the time-out.
constexpr Duration kPause = std::chrono::seconds(2);  // A later look shows a pause of this process.
constexpr char kMoves[] = "-";                        // What a node says while its ranks go on.

Duration Apart(const HangRule& rule) {
  return rule.timeout ? std::clamp(*rule.timeout / kLooks, kLeastApart, kMostApart) : kMostApart;
}

int64_t WholeSeconds(Duration age) {
  return std::chrono::duration_cast<std::chrono::seconds>(age).count();
}

// What is said of nodes that have told nothing of their ranks; empty if there are none.
std::string NodesElsewhere(const std::vector<int>& nodes) {
  if (nodes.empty()) return "";
  return absl::StrCat("\n  no rank of node rank", nodes.size() == 1 ? " " : "s ", RankList(nodes),
                      " is known to stand still");
}

}  // namespace

struct HangWatch::State {
  State(asio::io_context& the_loop, const Assignment& assignment, const WorkerSpec& spec,
        const NodeFacts& facts, OnHang the_on_hang)
      : first_rank(assignment.first_rank),
        workers(spec.nproc),
        nodes(assignment.num_nodes),
        judges(assignment.node_rank == 0),
        apart(Apart(spec.hang_rule)),
        blind_limit(spec.hang_rule.timeout.value_or(std::chrono::minutes(1))),
        on_hang(std::move(the_on_hang)),
        look(the_loop, PlanLook(assignment, spec, facts)),
        judge(spec.hang_rule),
        timer(the_loop) {
    if (nodes > 1) exchange.emplace(the_loop, assignment);
  }

  // Waits for the time between two looks, then looks.
  void Rest() {
    next = MonotonicClock().Now() + apart;
    timer.expires_at(next);
    timer.async_wait([this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
      if (error || alive.expired()) return;
      // If this process did not run, the ranks may have been stopped together with it.
      const Duration late = MonotonicClock().Now() - next;
      if (late > kPause) judge.Forgive(late);
      look.Begin([this] {
        Share();
        Rest();
      });
    });
  }

  // Shares the snapshots with the other nodes of the round once something stands still.
  void Share() {
    if (!exchange) return Judge(look.still() ? look.snapshots() : std::vector<RankSnapshot>(), {});
    if (exchange->busy()) return;
    // Node rank 0 also listens while its own ranks go on.
    shares = shares || look.still() || (judges && look.recorded());
    if (!shares) return;
    exchange->Swap(look.still() ? SnapshotText(look.snapshots()) : kMoves,
                   [this](absl::StatusOr<SnapshotExchange::Told> told) {
                     if (!told.ok()) return NoteBlind(told.status());
                     blind_since.reset();
                     judges ? JudgeAll(*told) : Hear(told->front());
                   });
  }

  // Says once that this node cannot know whether its ranks hang, if they stand still for long.
  void NoteBlind(const absl::Status& why) {
    const Instant now = MonotonicClock().Now();
    if (!look.still()) blind_since.reset();
    if (!look.still() || said_blind) return LogDebug(why.message());
    const Duration age = now - blind_since.value_or(now);
    if (!blind_since) blind_since = now;
    if (age < blind_limit) return;
    said_blind = true;
    LogWarning(absl::StrCat("ranks of this node stand still, and for ", WholeSeconds(age),
                            " s it has not been known whether the job hangs: the nodes cannot tell "
                            "each other what their ranks do: ",
                            why.message()));
  }

  void JudgeAll(const SnapshotExchange::Told& told) {
    std::vector<RankSnapshot> all;
    std::vector<int> others;  // Nodes that go on, or have not said anything yet.
    for (size_t node = 0; node < told.size(); ++node) {
      const std::optional<std::vector<RankSnapshot>> ranks = ParseSnapshots(told[node]);
      if (!ranks) others.push_back(static_cast<int>(node));
      if (ranks) all.insert(all.end(), ranks->begin(), ranks->end());
    }
    Judge(all, others);
  }

  void Judge(const std::vector<RankSnapshot>& ranks, const std::vector<int>& others) {
    const std::vector<HangVerdict> verdicts = AttributeHangs(ranks, others.empty());
    const HangNews news = judge.Look(verdicts, MonotonicClock().Now());
    const HangVerdict verdict = verdicts.empty() ? HangVerdict() : verdicts[news.which];
    standstill = news.age > apart && news.kind == HangNews::Kind::kNothing
                     ? DescribeHang(verdict, ranks, news.age, others.empty())
                     : "";
    switch (news.kind) {
      case HangNews::Kind::kNothing:
        return;
      case HangNews::Kind::kWentOn:
        if (exchange) exchange->SetVerdict("");
        return LogInfo(absl::StrCat("the ranks go on after ", WholeSeconds(news.age), " s"));
      case HangNews::Kind::kSuspect:
        ToldHang hang{absl::StrCat(DescribeHang(verdict, ranks, news.age, others.empty()),
                                   NodesElsewhere(others)),
                      {}};
        for (const Rank rank : RanksToFail(verdict, ranks)) {
          hang.reasons[rank] = DescribeCulprit(verdict, ranks, rank, news.age);
        }
        if (exchange) exchange->SetVerdict(ToText(hang));
        return Tell(hang);
    }
  }

  // Takes the verdict of node rank 0.
  void Hear(const std::string& text) {
    if (text == heard) return;
    heard = text;
    if (const auto hang = ParseToldHang(text)) Tell(*hang);
  }

  void Tell(const ToldHang& hang) {
    LogWarning(hang.text);
    for (const auto& [rank, reason] : hang.reasons) {
      const int local_rank = rank - first_rank;
      if (local_rank >= 0 && local_rank < workers) on_hang({local_rank, reason});
    }
  }

  const Rank first_rank;
  const int workers;
  const int nodes;
  const bool judges;
  const Duration apart;
  const Duration blind_limit;  // For NoteBlind.
  const OnHang on_hang;
  NodeLook look;
  HangJudge judge;
  std::optional<SnapshotExchange> exchange;  // Set if there are other nodes.
  std::optional<Instant> blind_since;        // Set while the other nodes cannot be told anything.
  bool said_blind = false;
  bool shares = false;  // This node has told the others something.
  std::string heard;
  std::string standstill;  // From the last look, if not reported.
  asio::steady_timer timer;
  Instant next;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

std::unique_ptr<HangWatch> HangWatch::Open(asio::io_context& loop, const Assignment& assignment,
                                           const WorkerSpec& spec, const NodeFacts& facts,
                                           OnHang on_hang) {
  if (facts.tap.empty() || spec.hang_rule.timeout == Duration::zero() || spec.starts_others ||
      (assignment.worker_store && assignment.num_nodes > 1)) {
    return nullptr;
  }
  std::unique_ptr<HangWatch> watch(
      new HangWatch(std::make_unique<State>(loop, assignment, spec, facts, std::move(on_hang))));
  watch->state_->Rest();
  return watch;
}

HangWatch::HangWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
HangWatch::~HangWatch() = default;

void HangWatch::Started(int local_rank, pid_t pid) { state_->look.Started(local_rank, pid); }

void HangWatch::Ended(int local_rank, bool succeeded) { state_->look.Ended(local_rank, succeeded); }

std::string HangWatch::standstill() const { return state_->standstill; }

std::vector<pid_t> HangWatch::tools() const { return state_->look.tools(); }

}  // namespace hlaunch
