// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/goodput.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hlaunch {
namespace {

constexpr size_t kRestartsNamed = 3;
constexpr Duration kLeastLost = std::chrono::seconds(1);  // Less is not worth a line.
constexpr Duration kLeastNamed = std::chrono::milliseconds(50);

// "0.8 s", "40 s", "3 min 20 s", "3 h 12 min".
std::string TimeText(Duration duration) {
  const double seconds = InSeconds(duration);
  if (seconds < 9.95) return absl::StrFormat("%.1f s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

// "40 s", "40 s and 55 s", "40 s, 55 s, 41 s and 2 more, 3 min 50 s in all".
std::string RestartsText(const std::vector<Duration>& restarts) {
  std::string text;
  Duration all = {};
  for (size_t i = 0; i < restarts.size(); ++i) {
    all += restarts[i];
    if (i >= kRestartsNamed) continue;
    const bool last = i + 1 == restarts.size();
    absl::StrAppend(&text, i == 0 ? "" : last ? " and " : ", ", TimeText(restarts[i]));
  }
  if (restarts.size() <= kRestartsNamed) return text;
  return absl::StrCat(text, " and ", restarts.size() - kRestartsNamed, " more, ", TimeText(all),
                      " in all");
}

}  // namespace

void Goodput::Count(const NodeEvent& event, Instant now) {
  if (std::holds_alternative<RoundStarted>(event)) {
    if (restarts_next_ && changed_) restarts_.push_back(now - *changed_);
    restarts_next_ = false;
    if (!first_) first_ = now;
    before_.waiting += now_.waiting;
    before_.saving += now_.saving;
    now_ = {};
    runs_ = true;
    changed_ = now;
  } else if (std::holds_alternative<RoundStopped>(event) && runs_) {
    ran_ += now - *changed_;
    runs_ = false;
    changed_ = now;
  } else if (std::holds_alternative<JobRestarted>(event)) {
    restarts_next_ = true;
  } else if (const auto* lost = std::get_if<TimeLost>(&event)) {
    now_ = *lost;
  }
}

LostTime Goodput::Lost() const {
  LostTime lost = before_;
  if (first_) lost.start = *first_ - start_;
  lost.waiting += now_.waiting;
  lost.saving += now_.saving;
  for (const Duration each : restarts_) lost.restarts += each;
  return lost;
}

std::string Goodput::LostText(Instant now) const {
  const LostTime lost = Lost();
  if (lost.waiting + lost.saving < kLeastLost) return "";
  const std::pair<const char*, Duration> causes[] = {{"start", lost.start},
                                                     {"waiting for the slowest rank", lost.waiting},
                                                     {"checkpoints", lost.saving},
                                                     {"restarts", lost.restarts}};
  Duration all{};
  std::string text;
  for (const auto& [cause, duration] : causes) {
    if (duration < kLeastNamed) continue;
    all += duration;
    absl::StrAppend(&text, text.empty() ? "" : ", ", cause, " ", TimeText(duration));
  }
  return absl::StrCat("time lost: ", TimeText(all), " of ", TimeText(Whole(now)), ": ", text);
}

Duration Goodput::Ran(Instant now) const { return ran_ + (runs_ ? now - *changed_ : Duration{}); }

std::string Goodput::Text(Instant now) const {
  if (restarts_.empty()) return "";
  const double share = InSeconds(Ran(now)) / std::max(InSeconds(Whole(now)), 1e-9);
  return absl::StrFormat(
      "workers ran for %s of %s (%.0f %%); %s took %s", TimeText(Ran(now)), TimeText(Whole(now)),
      100 * share,
      restarts_.size() == 1 ? "the restart" : absl::StrCat(restarts_.size(), " restarts"),
      RestartsText(restarts_));
}

}  // namespace hlaunch
