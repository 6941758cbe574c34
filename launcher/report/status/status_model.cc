// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/status_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "launcher/report/status/time_words.h"
#include "launcher/text/printable.h"
#include "launcher/text/shell_words.h"
#include "proto/cluster/job_id.h"
#include "rendezvous/round/values/figures.h"

namespace hlaunch {
namespace {

constexpr size_t kMostAwaited = 12;
constexpr size_t kMostLines = 40;

std::string Count(int64_t n, absl::string_view one) {
  return absl::StrCat(n, " ", one, n == 1 ? "" : "s");
}

int64_t Millis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

bool AnySilent(const JobStatus& status) {
  return std::any_of(status.nodes.begin(), status.nodes.end(),
                     [](const NodeStatus& node) { return LightOf(node) == Light::kBad; });
}

void SetState(const JobStatus& status, StatusModel& model) {
  switch (status.state) {
    case JobState::kForming:
      model.light = Light::kWaiting;
      model.state = status.round == 0 ? "waiting for nodes" : "waiting for the next round";
      return;
    case JobState::kPreflight:
      model.light = Light::kWaiting;
      model.state = "checking nodes";
      return;
    case JobState::kRunning:
      model.light = AnySilent(status) ? Light::kBad : Light::kGood;
      model.state = AnySilent(status) ? "running, nodes missing" : "running";
      return;
    case JobState::kStopping:
      model.light = Light::kBad;
      model.state = "stopping";
      return;
    case JobState::kOver:
      model.light = status.exit_code == 0 ? Light::kIdle : Light::kBad;
      model.state = status.exit_code == 0 ? "ended well"
                                          : absl::StrCat("failed, exit code ", status.exit_code);
      return;
  }
}

std::string NodesFact(const JobStatus& status) {
  const std::string wanted = status.min_nodes == status.max_nodes
                                 ? absl::StrCat(status.max_nodes)
                                 : absl::StrCat(status.min_nodes, " to ", status.max_nodes);
  return absl::StrCat(status.total_nodes, " here of ", wanted);
}

std::string RestartsFact(const JobStatus& status) {
  const std::string counted =
      absl::StrCat(status.restarts - status.uncounted, " of ", status.max_restarts);
  if (status.uncounted == 0) return counted;
  return absl::StrCat(counted, ", and ", status.uncounted, " free");
}

// As in "96.9 %: ran 3 h 1 min of 3 h 6 min"; empty if the begin is unknown.
std::string GoodputFact(const JobStatus& status) {
  int64_t until = status.told_ms;
  const bool over = status.state == JobState::kOver && !status.rounds.empty();
  if (over && status.rounds.back().stopping_ms > 0) until = status.rounds.back().stopping_ms;
  const int64_t whole = until - status.began_ms;
  if (status.began_ms <= 0 || whole <= 0 || status.round == 0) return "";
  const int64_t ran = std::clamp<int64_t>(Millis(status.ran_for), 0, whole);
  return absl::StrFormat("%.1f %%: ran %s of %s", 100.0 * ran / whole, SpanWords(ran),
                         SpanWords(whole));
}

void AddFacts(const JobStatus& status, StatusModel& model) {
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) model.facts.push_back({name, std::move(value)});
  };
  add("Round", status.round == 0 ? "none yet" : absl::StrCat(status.round));
  add("Nodes", NodesFact(status));
  if (status.round > 0) add("Ranks", absl::StrCat(status.world_size));
  add("Restarts", RestartsFact(status));
  if (status.began_ms > 0) {
    add("Began", absl::StrCat(DateWords(status.began_ms), ", ",
                              SpanWords(status.told_ms - status.began_ms), " ago"));
  }
  add("Goodput", GoodputFact(status));
}

// Whether people wait for `node` in its state.
bool Awaited(JobState job, const NodeStatus& node) {
  if (job == JobState::kOver) return false;
  if (LightOf(node) == Light::kBad) return node.standing != NodeStanding::kLeft;
  return (job == JobState::kPreflight && node.standing == NodeStanding::kChecking) ||
         (job == JobState::kStopping && node.standing == NodeStanding::kStopping);
}

void AddAwaited(const JobStatus& status, StatusModel& model) {
  size_t count = 0;
  for (const NodeStatus& node : status.nodes) {
    if (!Awaited(status.state, node) || ++count > kMostAwaited) continue;
    model.awaited.push_back(
        absl::StrCat(PrintableLine(node.host),
                     node.node_rank < 0 ? "" : absl::StrCat(" (node rank ", node.node_rank, ")"),
                     ": ", PrintableLine(node.state)));
  }
  if (count > kMostAwaited)
    model.awaited.push_back(absl::StrCat("and ", count - kMostAwaited, " more"));
}

// The time when the round before `index` ended, or when the first node came; 0: unknown.
int64_t EndBefore(const JobStatus& status, size_t index) {
  if (index > 0) return status.rounds[index - 1].stopping_ms;
  return status.rounds[0].round == 1 ? status.began_ms : 0;
}

int64_t FirstOf(int64_t a, int64_t b) { return a > 0 ? a : b; }

// The phases of a round. Each lasts until the next one begins, or until now.
std::vector<RoundPhase> PhasesOf(const RoundStatus& round, int64_t gathered_from, int64_t now) {
  using Kind = RoundPhase::Kind;
  const int64_t end = FirstOf(round.stopped_ms, now);
  const int64_t stopping = FirstOf(round.stopping_ms, end);
  const int64_t ran = FirstOf(round.ran_ms, stopping);
  const int64_t began = FirstOf(round.began_ms, ran);
  std::vector<RoundPhase> phases;
  const auto add = [&](Kind kind, int64_t from, int64_t to) {
    if (from > 0 && to > from) phases.push_back({kind, from, to});
  };
  add(Kind::kGathering, gathered_from, began);
  add(Kind::kChecking, began, ran);
  add(Kind::kRunning, ran, stopping);
  if (round.stopping_ms > 0) add(Kind::kStopping, stopping, end);
  return phases;
}

RoundRow RowOf(const JobStatus& status, size_t index) {
  const RoundStatus& round = status.rounds[index];
  const bool last = index + 1 == status.rounds.size();
  const bool over = last && status.state == JobState::kOver;
  RoundRow row;
  row.name = absl::StrCat(round.round);
  row.began = ClockWords(FirstOf(round.began_ms, round.ran_ms));
  if (round.ran_ms > 0) {
    row.ran = SpanWords(FirstOf(round.stopping_ms, status.told_ms) - round.ran_ms);
  }
  const int64_t before = EndBefore(status, index);
  if (before > 0 && round.ran_ms > 0) row.took = SpanWords(round.ran_ms - before);
  row.size = absl::StrCat(Count(round.nodes, "node"), ", ", Count(round.world_size, "rank"));
  row.end = PrintableLine(round.reason);
  if (over && round.reason.empty() && status.exit_code == 0) row.end = "all ranks ended well";
  row.current = last && status.state != JobState::kOver && round.stopped_ms == 0;
  const int64_t gathered_from =
      index > 0 ? FirstOf(status.rounds[index - 1].stopped_ms, before) : before;
  RoundStatus shown = round;
  if (over && shown.stopped_ms == 0) shown.stopped_ms = shown.stopping_ms;
  row.phases = PhasesOf(shown, gathered_from, status.told_ms);
  return row;
}

// The row of the round that has not begun.
RoundRow NextRow(const JobStatus& status) {
  const int64_t from = status.rounds.empty() ? status.began_ms : status.rounds.back().stopped_ms;
  RoundRow row;
  row.name = "next";
  row.current = true;
  row.size = "";
  if (from > 0 && status.told_ms > from) {
    row.phases.push_back({RoundPhase::Kind::kGathering, from, status.told_ms});
  }
  return row;
}

void AddRounds(const JobStatus& status, StatusModel& model) {
  if (status.state == JobState::kForming) model.rounds.push_back(NextRow(status));
  for (size_t i = status.rounds.size(); i-- > 0;) model.rounds.push_back(RowOf(status, i));
  for (const RoundRow& row : model.rounds) {
    for (const RoundPhase& phase : row.phases) {
      const bool first = model.line_from_ms == 0;
      model.line_from_ms = first ? phase.from_ms : std::min(model.line_from_ms, phase.from_ms);
      model.line_to_ms = std::max(model.line_to_ms, phase.to_ms);
    }
  }
}

std::string EndOf(const WorkerFailure& failure) {
  if (failure.hung) return "hung";
  if (failure.signal != 0) return absl::StrCat("was ended by signal ", failure.signal);
  return absl::StrCat("exited with code ", failure.exit_code);
}

void AddLastLines(const JobStatus& status, StatusModel& model) {
  if (!status.failure) return;
  const WorkerFailure& failure = *status.failure;
  model.last_lines_of =
      absl::StrCat("rank ", failure.rank, " on ", PrintableLine(failure.host), " (pid ",
                   failure.pid, "), which ", EndOf(failure), " in round ", status.failed_round);
  const bool has_log = !failure.log_tail.empty();
  model.last_lines = PrintableLines(has_log                      ? failure.log_tail
                                    : !failure.traceback.empty() ? failure.traceback
                                                                 : failure.message,
                                    kMostLines);
  if (!failure.log_file.empty()) model.log_file = PrintableLine(failure.log_file);
}

void AddFigure(const JobStatus& status, Figure figure, StatusModel& model) {
  std::vector<double> values;
  for (const NodeStatus& node : status.nodes) values.push_back(node.figures[figure]);
  const std::optional<Spread> spread = SpreadOf(values);
  const FigureRule& rule = RuleOf(figure);
  if (!spread || spread->known < 2 || rule.scale == Scale::kOffset) return;
  FigureRow row;
  row.name = rule.name;
  row.range = FigureText(spread->min, rule.unit);
  const std::string most = FigureText(spread->max, rule.unit);
  if (most == row.range) return;  // All nodes have the same.
  absl::StrAppend(&row.range, " to ", most);
  std::vector<std::string> odd;
  const std::vector<Score> scores = ScoreFigure(values, rule);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].standing != Standing::kSlow && scores[i].standing != Standing::kBad) continue;
    odd.push_back(
        absl::StrCat(PrintableLine(status.nodes[i].host), ": ", FigureText(values[i], rule.unit)));
  }
  const size_t more = odd.size() - std::min<size_t>(odd.size(), 4);
  if (more > 0) odd.resize(4);
  row.odd =
      absl::StrCat(absl::StrJoin(odd, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "");
  model.figures.push_back(std::move(row));
}

void AddHealth(const JobStatus& status, StatusModel& model) {
  if (!status.notice.empty()) model.health.push_back(PrintableLine(status.notice));
  for (const std::string& line : status.excluded) {
    model.health.push_back(absl::StrCat("excluded: ", PrintableLine(line)));
  }
  for (size_t i = 0; i < kFigures; ++i) AddFigure(status, static_cast<Figure>(i), model);
}

void AddCommands(const JobStatus& status, const std::string& how_to_ask, StatusModel& model) {
  if (how_to_ask.empty() || status.state == JobState::kOver) return;
  // hlaunchd knows where the nodes of a cluster's job meet, and has its token.
  const std::optional<uint64_t> number = ClusterJobNumber(status.job_id);
  const std::string what = number ? absl::StrCat(*number)
                                  : absl::StrCat(PrintableLine(ShellQuote(status.job_id)), " ",
                                                 PrintableLine(how_to_ask));
  for (const char* word : {"why", "stacks"}) {
    model.commands.push_back(absl::StrCat("hlaunch ", word, " ", what));
  }
}

}  // namespace

StatusModel ModelOf(const JobStatus& status, const std::string& how_to_ask) {
  StatusModel model;
  model.job = PrintableLine(status.job_id);
  SetState(status, model);
  model.sentence = PrintableLine(status.explanation);
  model.told = DateWords(status.told_ms);
  const int wanted =
      status.round > 0 && !status.rounds.empty() ? status.rounds.back().nodes : status.min_nodes;
  model.title = absl::StrCat(status.total_nodes, "/", wanted, " ", model.state, ", ", model.job);
  AddFacts(status, model);
  AddAwaited(status, model);
  AddRounds(status, model);
  model.nodes = GroupNodes(status);
  AddLastLines(status, model);
  AddHealth(status, model);
  AddCommands(status, how_to_ask, model);
  return model;
}

}  // namespace hlaunch
