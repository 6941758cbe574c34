// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/heartbeats.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kFirstWord = "heartbeat/1";
constexpr int64_t kMostMillis = int64_t{1000} * 3600 * 24 * 366;

// "44,5"
bool ParseStacks(absl::string_view value, Heartbeat* heartbeat) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(',', 1));
  return absl::SimpleAtoi(parts.first, &heartbeat->stack_signal) &&
         absl::SimpleAtoi(parts.second, &heartbeat->stack_fd) && heartbeat->stack_signal > 0 &&
         heartbeat->stack_signal <= SIGRTMAX && heartbeat->stack_fd >= 0;
}

bool ParseWord(absl::string_view word, Heartbeat* heartbeat) {
  if (absl::ConsumePrefix(&word, "step=")) {
    int64_t step = 0;
    if (!absl::SimpleAtoi(word, &step)) return false;
    heartbeat->step = step;
  } else if (absl::ConsumePrefix(&word, "timeout_ms=")) {
    int64_t millis = 0;
    if (!absl::SimpleAtoi(word, &millis) || millis < 0) return false;
    heartbeat->limit = std::chrono::milliseconds(std::min(millis, kMostMillis));
  } else if (absl::ConsumePrefix(&word, "stacks=")) {
    return ParseStacks(word, heartbeat);
  }
  return true;
}

bool SaysTheSame(const Heartbeat& one, const Heartbeat& other) {
  return one.step.has_value() && one.step == other.step && one.limit == other.limit;
}

// "1.5", "62": rounded for people.
std::string Seconds(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  return seconds < 10 ? absl::StrFormat("%.2g", seconds) : absl::StrFormat("%.0f", seconds);
}

}  // namespace

std::optional<Heartbeat> ParseHeartbeat(absl::string_view datagram) {
  if (datagram.size() > kMaxHeartbeatBytes) return std::nullopt;
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripSuffix(datagram, "\n"), ' ', absl::SkipEmpty());
  if (words.empty() || words[0] != kFirstWord) return std::nullopt;
  Heartbeat heartbeat;
  for (size_t i = 1; i < words.size(); ++i) {
    if (!ParseWord(words[i], &heartbeat)) return std::nullopt;
  }
  return heartbeat;
}

std::string Stall::ToString() const {
  const std::string since = absl::StrCat(Seconds(silence), " s (limit ", Seconds(limit), " s)");
  if (beats) {
    return absl::StrCat("at step ", *step, " for ", since, ", though its heartbeats come");
  }
  return absl::StrCat("no heartbeat for ", since,
                      step ? absl::StrCat(", last step ", *step) : std::string());
}

bool IsBehind(const Stall& one, const Stall& other) {
  if (one.step && other.step && *one.step != *other.step) return *one.step < *other.step;
  return one.news < other.news;
}

Heartbeats::Heartbeats(int workers, Duration limit)
    : limit_(limit), workers_(static_cast<size_t>(workers)) {}

bool Heartbeats::IsTimed(const Worker& worker) const {
  return worker.watched && !worker.stalled && LimitOf(worker) > Duration::zero();
}

bool Heartbeats::Take(int worker, const Heartbeat& heartbeat, Instant now) {
  Worker& w = workers_[static_cast<size_t>(worker)];
  w.repeats = w.watched && SaysTheSame(w.last, heartbeat);
  w.last = heartbeat;
  if (w.repeats) return false;
  w.watched = true;
  w.news = now;
  return std::exchange(w.stalled, false);
}

void Heartbeats::Forget(int worker) { workers_[static_cast<size_t>(worker)] = {}; }

void Heartbeats::Forgive(Duration pause, Instant now) {
  for (Worker& worker : workers_) worker.news = std::min(worker.news + pause, now);
}

std::optional<Instant> Heartbeats::Next() const {
  std::optional<Instant> next;
  for (const Worker& worker : workers_) {
    if (!IsTimed(worker)) continue;
    const Instant end = worker.news + LimitOf(worker);
    next = std::min(end, next.value_or(end));
  }
  return next;
}

std::vector<Stall> Heartbeats::TakeStalled(Instant now) {
  std::vector<Stall> stalls;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (!IsTimed(worker) || now - worker.news < LimitOf(worker)) continue;
    worker.stalled = true;
    stalls.push_back({static_cast<int>(i), now - worker.news, LimitOf(worker), worker.last.step,
                      worker.repeats, worker.news});
  }
  return stalls;
}

}  // namespace hlaunch
