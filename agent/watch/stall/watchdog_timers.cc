// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/watchdog_timers.h"

#include <signal.h>

#include <algorithm>
#include <limits>
#include <set>

#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

std::optional<int64_t> Integer(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

// Parses the request in one line, if it is one.
std::optional<WatchdogTimer> Parse(absl::string_view line) {
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object() || Integer(json, "version") != 1) return std::nullopt;
  const auto pid = Integer(json, "pid");
  const auto signal = Integer(json, "signal");
  const auto scope = json.find("scope_id");
  const auto expires = json.find("expiration_time");
  if (!pid || *pid <= 0 || *pid > std::numeric_limits<pid_t>::max()) return std::nullopt;
  if (!signal || *signal > SIGRTMAX || scope == json.end() || !scope->is_string() ||
      expires == json.end() || !expires->is_number()) {
    return std::nullopt;
  }
  WatchdogTimer timer;
  timer.pid = static_cast<pid_t>(*pid);
  timer.scope = scope->get<std::string>();
  timer.expires = expires->get<WallSeconds>();
  timer.signal = static_cast<int>(std::max<int64_t>(*signal, 0));
  return timer;
}

}  // namespace

void WatchdogTimers::Read(absl::string_view bytes, StartTimeFn start_time) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, end);
    too_long_ = too_long_ || partial_.size() + piece.size() > kMaxLineBytes;
    if (!too_long_) partial_.append(piece.data(), piece.size());
    if (end == absl::string_view::npos) return;
    if (std::exchange(too_long_, false)) {
      ++dropped_;
    } else {
      ReadLine(partial_, start_time);
    }
    partial_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void WatchdogTimers::ReadLine(absl::string_view line, StartTimeFn start_time) {
  std::optional<WatchdogTimer> timer = Parse(line);
  if (!timer) {
    ++dropped_;
    return;
  }
  auto key = std::make_pair(timer->pid, timer->scope);
  if (timer->expires < 0) {
    timers_.erase(key);
  } else if (timers_.size() >= kMaxTimers && timers_.count(key) == 0) {
    ++dropped_;
  } else if ((timer->start_time = start_time(timer->pid)) != 0) {
    timers_[std::move(key)] = *std::move(timer);
  }
}

std::optional<WallSeconds> WatchdogTimers::Next() const {
  std::optional<WallSeconds> next;
  for (const auto& [key, timer] : timers_) {
    next = std::min(timer.expires, next.value_or(timer.expires));
  }
  return next;
}

std::vector<WatchdogTimer> WatchdogTimers::TakeExpired(WallSeconds now) {
  std::map<pid_t, WatchdogTimer> expired;
  for (const auto& [key, timer] : timers_) {
    if (timer.expires > now) continue;
    const auto [it, first] = expired.emplace(timer.pid, timer);
    const bool has_signal = it->second.signal > 0;
    const bool sooner = timer.expires < it->second.expires;
    if (!first && timer.signal > 0 && (!has_signal || sooner)) it->second = timer;
  }
  std::vector<WatchdogTimer> taken;
  for (auto it = timers_.begin(); it != timers_.end();) {
    it = expired.count(it->first.first) != 0 ? timers_.erase(it) : std::next(it);
  }
  for (auto& [pid, timer] : expired) taken.push_back(std::move(timer));
  return taken;
}

}  // namespace hlaunch
