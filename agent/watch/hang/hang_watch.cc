// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/hang_watch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/watch/hang/mpi_look.h"
#include "agent/watch/hang/node_look.h"
#include "agent/watch/hang/slow_watch.h"
#include "agent/watch/hang/snapshot_text.h"
#include "agent/watch/hang/told_hang.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/contract/rank_list.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/hang/attribute_hang.h"
#include "rendezvous/round/hang/describe_hang.h"
#include "rendezvous/round/hang/judge_hang.h"
#include "rendezvous/round/hang/mpi_hang.h"

namespace hlaunch {
namespace {

constexpr Duration kMostApart = std::chrono::seconds(5);  // The longest time between two looks.
constexpr Duration kLeastApart = std::chrono::milliseconds(200);
constexpr int kLooks = 8;                             // Looks within the time-out.
constexpr Duration kPause = std::chrono::seconds(2);  // A later look shows a pause of this process.
constexpr Duration kAgain = std::chrono::seconds(20);  // A text that others know is told again.
constexpr char kSample[] = "sample ";  // Node rank 0 wants a sample of stacks; with its number.
constexpr char kMoves[] = "-";         // What a node says while its ranks go on.

Duration Apart(const HangRule& rule) {
  return rule.timeout ? std::clamp(*rule.timeout / kLooks, kLeastApart, kMostApart) : kMostApart;
}

// Returns a time near `apart`, another one for each look: else looks might meet every step of a
// training at the same place.
Duration NotInStep(Duration apart, int64_t number) {
  constexpr double kGolden = 0.6180339887498949;
  const double turns = kGolden * static_cast<double>(number);
  return std::chrono::duration_cast<Duration>(apart * (0.75 + 0.5 * (turns - std::floor(turns))));
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
        const NodeFacts& facts, OnHang the_on_hang, TellNodes the_tell, OnSlow the_on_slow)
      : first_rank(assignment.first_rank),
        workers(spec.nproc),
        nodes(assignment.num_nodes),
        judges(assignment.node_rank == 0),
        apart(Apart(spec.hang_rule)),
        on_hang(std::move(the_on_hang)),
        tell(std::move(the_tell)),
        on_slow(std::move(the_on_slow)),
        look(the_loop, PlanLook(assignment, spec, facts)),
        mpi(the_loop, PlanLook(assignment, spec, facts)),
        judge(spec.hang_rule),
        slow(first_rank, facts.host, static_cast<size_t>(workers)),
        timer(the_loop) {}

  // Waits for the time between two looks, then looks.
  void Rest() {
    next = MonotonicClock().Now() + NotInStep(apart, number++);
    timer.expires_at(next);
    timer.async_wait([this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
      if (error || alive.expired()) return;
      // If this process did not run, the ranks may have been stopped together with it.
      const Duration late = MonotonicClock().Now() - next;
      if (late > kPause) judge.Forgive(late);
      look.Begin([this] { LookAtMpi(); });
    });
  }

  // A rank with a flight record tells more than its stack would.
  void LookAtMpi() {
    mpi_ranks.clear();
    if (look.recorded()) return End();
    mpi.Look(std::exchange(sample, false), [this] {
      mpi_ranks = mpi.snapshots();
      End();
    });
  }

  void End() {
    Share();
    FindSlow();
    Rest();
  }

  // Judges, or tells node rank 0 what the ranks do once one of them has stood still.
  void Share() {
    if (judges) {
      JudgeAll();
      if (nodes > 1) Say(sample ? absl::StrCat(kSample, ++samples) : verdict);
    } else if (!mpi_ranks.empty()) {  // In Python, too: a rank without torch seems to stand still.
      Say(SnapshotText(mpi_ranks, kMaxRoundWordBytes));
    } else if (look.still()) {
      Say(SnapshotText(look.snapshots(), kMaxRoundWordBytes));
    } else {
      Say(said.empty() ? "" : kMoves);
    }
  }

  // Looks for ranks that hold up the others although all go on.
  void FindSlow() {
    const Instant now = MonotonicClock().Now();
    slow.Add(look.paces(), now);
    if (!judges) {
      const std::string word = look.still() ? "" : slow.Word(kMaxRoundWordBytes);
      if (!word.empty()) tell(word);
      return;
    }
    const SlowNews news = slow.Judge(now);
    if (!news.ranks.text.empty()) LogWarning(news.ranks.text);
    if (on_slow) on_slow(news);
  }

  // Tells other nodes `text`, unless they have heard it a moment ago. Nothing is said at first.
  void Say(const std::string& text) {
    const Instant now = MonotonicClock().Now();
    const bool known = text == said && (text.empty() || now - said_at < kAgain);
    if (known) return;
    said = text;
    said_at = now;
    tell(text);
  }

  void Hear(int node_rank, const std::string& text) {
    if (!judges) return HearVerdict(text);
    if (slow.Hear(node_rank, text)) return void(told.erase(node_rank));
    auto ranks = ParseSnapshots(text);
    if (ranks) {
      told[node_rank] = *std::move(ranks);
    } else {
      told.erase(node_rank);
    }
  }

  void JudgeAll() {
    std::vector<RankSnapshot> all;
    std::vector<int> others;  // Nodes that go on, or have not said anything yet.
    for (int node = 0; node < nodes; ++node) {
      const auto ranks = told.find(node);
      if (node == 0 && !mpi_ranks.empty()) {
        all = mpi_ranks;
      } else if (node == 0 && look.still()) {
        all = look.snapshots();
      } else if (node > 0 && ranks != told.end()) {
        all.insert(all.end(), ranks->second.begin(), ranks->second.end());
      } else {
        others.push_back(node);
      }
    }
    Judge(all, nodes == 1 ? std::vector<int>() : others);
  }

  void Judge(const std::vector<RankSnapshot>& ranks, const std::vector<int>& others) {
    std::vector<HangVerdict> verdicts = AttributeHangs(ranks, others.empty());
    if (others.empty()) AddMpi(ranks, &verdicts);
    const HangNews news = judge.Look(verdicts, MonotonicClock().Now());
    const HangVerdict found = verdicts.empty() ? HangVerdict() : verdicts[news.which];
    sample = news.sample;
    standstill =
        news.age > apart && found.samples_needed == 0 && news.kind == HangNews::Kind::kNothing
            ? DescribeHang(found, ranks, news.age, others.empty())
            : "";
    switch (news.kind) {
      case HangNews::Kind::kNothing:
        return;
      case HangNews::Kind::kWentOn:
        verdict.clear();
        return LogInfo(absl::StrCat("the ranks go on after ", WholeSeconds(news.age), " s"));
      case HangNews::Kind::kSuspect:
        ToldHang hang{absl::StrCat(DescribeHang(found, ranks, news.age, others.empty()),
                                   NodesElsewhere(others)),
                      {}};
        for (const Rank rank : RanksToFail(found, ranks)) {
          hang.reasons[rank] = DescribeCulprit(found, ranks, rank, news.age);
        }
        verdict = ToText(hang, kMaxRoundWordBytes);
        return Tell(hang);
    }
  }

  static void AddMpi(const std::vector<RankSnapshot>& ranks, std::vector<HangVerdict>* verdicts) {
    HangVerdict found = AttributeMpiHang(ranks);
    if (verdicts->empty() && found.kind != HangKind::kNone) verdicts->push_back(std::move(found));
  }

  // Takes the verdict of node rank 0.
  void HearVerdict(const std::string& text) {
    if (text == heard) return;
    heard = text;
    if (absl::StartsWith(text, kSample)) {
      sample = true;
      return;
    }
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
  const TellNodes tell;
  const OnSlow on_slow;
  NodeLook look;
  MpiLook mpi;
  std::vector<RankSnapshot> mpi_ranks;  // Of this node, at the last look.
  bool sample = false;                  // The next look is to take a sample of their stacks.
  int samples = 0;                      // That were wanted so far.
  HangJudge judge;
  SlowWatch slow;
  int64_t number = 0;                             // Of looks.
  std::map<int, std::vector<RankSnapshot>> told;  // By node rank: of nodes that stand still.
  std::string said;                               // The last text for other nodes, and when it
  Instant said_at;                                // was said.
  std::string verdict;                            // For the other nodes.
  std::string heard;                              // The same, from node rank 0.
  std::string standstill;                         // From the last look, if not reported.
  asio::steady_timer timer;
  Instant next;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

std::unique_ptr<HangWatch> HangWatch::Open(asio::io_context& loop, const Assignment& assignment,
                                           const WorkerSpec& spec, const NodeFacts& facts,
                                           OnHang on_hang, TellNodes tell, OnSlow on_slow) {
  if (facts.tap.empty() || spec.hang_rule.timeout == Duration::zero() || spec.starts_others) {
    return nullptr;
  }
  std::unique_ptr<HangWatch> watch(new HangWatch(std::make_unique<State>(
      loop, assignment, spec, facts, std::move(on_hang), std::move(tell), std::move(on_slow))));
  watch->state_->Rest();
  return watch;
}

HangWatch::HangWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
HangWatch::~HangWatch() = default;

void HangWatch::Started(int local_rank, pid_t pid) {
  state_->look.Started(local_rank, pid);
  state_->mpi.Started(local_rank, pid);
}

void HangWatch::Ended(int local_rank, bool succeeded) {
  state_->look.Ended(local_rank, succeeded);
  state_->mpi.Ended(local_rank, succeeded);
}

void HangWatch::Hear(int node_rank, const std::string& text) { state_->Hear(node_rank, text); }

std::string HangWatch::standstill() const { return state_->standstill; }

std::vector<pid_t> HangWatch::tools() const {
  std::vector<pid_t> tools = state_->look.tools();
  if (state_->mpi.tool() != 0) tools.push_back(state_->mpi.tool());
  return tools;
}

}  // namespace hlaunch
