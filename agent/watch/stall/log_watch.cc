// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/log_watch.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/output/line_matcher.h"
#include "agent/watch/stall/late_loop.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr Duration kWarningPause = std::chrono::seconds(10);
constexpr size_t kQuotedBytes = 200;
constexpr char kStepName[] = "step";
constexpr double kMostSteps = 1e15;  // Up to here a double holds every whole number.

std::string Quote(absl::string_view line) {
  const bool whole = line.size() <= kQuotedBytes;
  return absl::StrCat("'", line.substr(0, kQuotedBytes), whole ? "" : "…", "'");
}

// A rule of --watch-log, and when its last warning was given.
struct WatchedRule {
  LineRule rule;
  std::optional<Instant> told;
  int untold = 0;  // Lines that matched since then.
};

// A rule of --watch-log-silence, and the last line that matched its pattern.
struct WatchedSilence {
  SilenceRule rule;
  std::optional<Instant> due;  // Unset if no line is expected.
  Instant last = {};
  int worker = 0;
  std::string line;
  bool told = false;  // The silence has been reported.
};

}  // namespace

struct LogWatch::State : std::enable_shared_from_this<LogWatch::State> {
  State(asio::io_context& loop, Rank the_first_rank, Events the_events)
      : first_rank(the_first_rank), events(std::move(the_events)), timer(loop) {}

  const Rank first_rank;
  const Events events;
  asio::steady_timer timer;                      // For the line that is due first.
  std::shared_ptr<const LinePatterns> patterns;  // Of `rules`, then of `silences`.
  std::vector<WatchedRule> rules;
  std::vector<WatchedSilence> silences;

  void Take(int local_rank, const LineMatch& match) {
    for (const auto& [name, value] : match.values) {
      events.on_value(first_rank + local_rank, name, value);
      if (name == kStepName && value >= 0 && value < kMostSteps) {
        events.on_step(static_cast<int64_t>(value));
      }
    }
    if (match.pattern < rules.size()) {
      TakeRule(rules[match.pattern], local_rank, match.line);
    } else {
      TakeAwaited(silences[match.pattern - rules.size()], local_rank, match.line);
    }
  }

  void TakeRule(WatchedRule& watched, int local_rank, const std::string& line) {
    const std::string wrote =
        absl::StrCat("wrote ", Quote(line), ", which matches --watch-log ", watched.rule.pattern);
    if (watched.rule.action == LineAction::kFail) return events.on_failure(local_rank, wrote);
    if (watched.rule.action != LineAction::kWarn) return;
    const Instant now = MonotonicClock().Now();
    if (watched.told && now - *watched.told < kWarningPause) {
      ++watched.untold;
      return;
    }
    const std::string more =
        watched.untold == 0 ? "" : absl::StrCat(" (and ", watched.untold, " more such lines)");
    LogWarning(absl::StrCat("rank ", first_rank + local_rank, " ", wrote, more));
    watched.told = now;
    watched.untold = 0;
  }

  void TakeAwaited(WatchedSilence& watched, int local_rank, const std::string& line) {
    if (std::exchange(watched.told, false)) {
      LogInfo(absl::StrCat("a line with ", watched.rule.pattern, " has come again, from rank ",
                           first_rank + local_rank));
    }
    const bool was_awaited = watched.due.has_value();
    watched.last = MonotonicClock().Now();
    watched.due = watched.last + watched.rule.limit;
    watched.worker = local_rank;
    watched.line = line;
    if (!was_awaited) Arm();  // Else it is armed for an earlier time, and then armed again.
  }

  void Arm() {
    std::optional<Instant> first;
    for (const WatchedSilence& watched : silences) {
      if (watched.due) first = std::min(first.value_or(*watched.due), *watched.due);
    }
    if (!first) return;
    timer.expires_at(*first);
    timer.async_wait([weak = weak_from_this(), due = *first](const asio::error_code& error) {
      const std::shared_ptr<State> self = weak.lock();
      if (error || self == nullptr) return;
      self->Judge(MonotonicClock().Now() - due > kLateLoop);
      self->Arm();
    });
  }

  void Judge(bool late) {
    const Instant now = MonotonicClock().Now();
    for (WatchedSilence& watched : silences) {
      if (!watched.due || *watched.due > now) continue;
      if (late) {
        watched.due = now + kLateLoop;
        continue;
      }
      watched.due.reset();
      watched.told = true;
      events.on_silence(
          watched.worker,
          absl::StrFormat("is silent: no line with %s for %.3g s (limit %.3g s), the last: %s",
                          watched.rule.pattern, InSeconds(now - watched.last),
                          InSeconds(watched.rule.limit), Quote(watched.line)));
    }
  }
};

std::unique_ptr<LogWatch> LogWatch::Open(asio::io_context& loop, const WorkerSpec& spec,
                                         Rank first_rank, Events events) {
  if (spec.line_rules.empty() && spec.silence_rules.empty()) return nullptr;
  auto state = std::make_shared<State>(loop, first_rank, std::move(events));
  std::vector<std::string> patterns;
  for (const LineRule& rule : spec.line_rules) {
    patterns.push_back(rule.pattern);
    state->rules.emplace_back().rule = rule;
  }
  for (const SilenceRule& rule : spec.silence_rules) {
    patterns.push_back(rule.pattern);
    state->silences.emplace_back().rule = rule;
  }
  auto compiled = LinePatterns::Compile(patterns);
  HLAUNCH_CHECK(compiled.ok());
  state->patterns = *std::move(compiled);
  return std::unique_ptr<LogWatch>(new LogWatch(std::move(state)));
}

LogWatch::LogWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}
LogWatch::~LogWatch() = default;

std::function<void(absl::string_view)> LogWatch::Reader(int local_rank) {
  auto matcher = std::make_shared<LineMatcher>(state_->patterns);
  return [weak = std::weak_ptr<State>(state_), matcher, local_rank](absl::string_view bytes) {
    const std::shared_ptr<State> state = weak.lock();
    if (state == nullptr) return;
    for (const LineMatch& match : matcher->Feed(bytes)) state->Take(local_rank, match);
  };
}

void LogWatch::Ended(int local_rank) {
  for (WatchedSilence& watched : state_->silences) {
    if (watched.worker == local_rank) watched.due.reset();
  }
}

}  // namespace hlaunch
