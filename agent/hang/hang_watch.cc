// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/hang/hang_watch.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/hang/node_look.h"
#include "agent/hang/picture_exchange.h"
#include "agent/hang/picture_text.h"
#include "agent/hang/told_hang.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "rendezvous/hang/attribute_hang.h"
#include "rendezvous/hang/describe_hang.h"
#include "rendezvous/hang/judge_hang.h"

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

}  // namespace

struct HangWatch::State {
  State(asio::io_context& the_loop, const Assignment& assignment, const WorkerSpec& spec,
        const NodeFacts& facts, OnHang the_on_hang)
      : first_rank(assignment.first_rank),
        workers(spec.nproc),
        nodes(assignment.num_nodes),
        judges(assignment.node_rank == 0),
        apart(Apart(spec.hang_rule)),
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

  // Shares the pictures with the other nodes of the round once something stands still.
  void Share() {
    if (!exchange) return Judge(look.still() ? look.pictures() : std::vector<RankPicture>());
    if (exchange->busy()) return;
    if (!look.still() && !shares) return;
    shares = true;
    exchange->Swap(look.still() ? PictureText(look.pictures()) : kMoves,
                   [this](absl::StatusOr<PictureExchange::Told> told) {
                     if (!told.ok()) return LogDebug(told.status().message());
                     judges ? JudgeAll(*told) : Hear(told->front());
                   });
  }

  void JudgeAll(const PictureExchange::Told& told) {
    std::vector<RankPicture> all;
    for (const std::string& text : told) {
      const std::optional<std::vector<RankPicture>> ranks = ParsePictures(text);
      if (!ranks) return Judge({});  // That node goes on, or has not said anything yet.
      all.insert(all.end(), ranks->begin(), ranks->end());
    }
    Judge(all);
  }

  void Judge(const std::vector<RankPicture>& ranks) {
    const HangVerdict verdict = AttributeHang(ranks);
    const HangNews news = judge.Look(verdict, MonotonicClock().Now());
    standstill = news.age > apart && news.kind == HangNews::Kind::kNothing
                     ? DescribeHang(verdict, ranks, news.age)
                     : "";
    switch (news.kind) {
      case HangNews::Kind::kNothing:
        return;
      case HangNews::Kind::kWentOn:
        if (exchange) exchange->SetVerdict("");
        return LogInfo(
            absl::StrCat("the ranks go on after ",
                         std::chrono::duration_cast<std::chrono::seconds>(news.age).count(), " s"));
      case HangNews::Kind::kSuspect:
        ToldHang hang{DescribeHang(verdict, ranks, news.age), {}};
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
  const OnHang on_hang;
  NodeLook look;
  HangJudge judge;
  std::optional<PictureExchange> exchange;  // Set if there are other nodes.
  bool shares = false;                      // This node has told the others something.
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
