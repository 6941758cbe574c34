// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/own_jobs/watch_status.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/report/job/status_text.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/report/status/live_screen.h"
#include "launcher/report/status/status_model.h"
#include "launcher/report/status/status_screen.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/printable.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr Duration kFirstPatience = std::chrono::seconds(10);
constexpr Duration kLookPatience = std::chrono::seconds(2);      // For one look of many.
constexpr Duration kSilencePatience = std::chrono::seconds(30);  // Until a watch gives up.

LiveFrame FrameOf(const StatusToWatch& watched, const JobList& list) {
  if (watched.lists) {
    const std::string text = JobListText(list.jobs, list.total, list.leader);
    return {[text](const ScreenSize& size) { return TextScreen(text, size); }, text};
  }
  const StatusModel model = ModelOf(list.jobs[0], watched.how_to_ask);
  const bool over = list.jobs[0].state == JobState::kOver;
  return {[model](const ScreenSize& size) { return StatusScreen(model, size); },
          absl::StrCat(model.state, list.jobs[0].round, model.title, model.awaited.size()), over};
}

// Looks at the jobs again and again. Tolerates a rendezvous that is silent for a while.
class StatusWatch {
 public:
  explicit StatusWatch(const StatusToWatch& watched) : watched_(watched) {}

  LiveFrame Look() {
    absl::StatusOr<JobList> list = watched_.fetch(latest_ ? kLookPatience : kFirstPatience);
    const Instant now = MonotonicClock().Now();
    end_ = list.status();
    if (list.ok()) latest_ = *std::move(list);
    if (list.ok()) heard_ = now;
    if (!latest_) return Nothing();
    LiveFrame frame = FrameOf(watched_, *latest_);
    if (end_.ok()) return frame;
    if (watched_.ends_unseen && absl::IsNotFound(end_)) return Gone(std::move(frame));
    frame.last = now - heard_ > kSilencePatience || !absl::IsUnavailable(end_);
    return Stale(std::move(frame), std::string(end_.message()));
  }

  // Why the watch ended before the job was over; OK if the job was over or the person ended the
  // watch.
  const absl::Status& end() const { return end_; }

 private:
  static LiveFrame Nothing() {
    return {[](const ScreenSize&) { return std::vector<std::string>(); }, "", true};
  }

  // What was seen last of a job that has ended since.
  LiveFrame Gone(LiveFrame frame) {
    end_ = absl::OkStatus();
    return Below("THE JOB HAS ENDED; this is what was seen last", std::move(frame), true);
  }

  // Returns the same frame below a line that says how old it is.
  LiveFrame Stale(LiveFrame frame, const std::string& why) const {
    const auto silent =
        std::chrono::duration_cast<std::chrono::seconds>(MonotonicClock().Now() - heard_);
    const std::string head =
        absl::StrCat("NOTHING HEARD FOR ", silent.count(), " s: ", PrintableLine(why));
    const bool last = frame.last;
    return Below(head, std::move(frame), last);
  }

  static LiveFrame Below(const std::string& head, LiveFrame frame, bool last) {
    const auto draw = [head, draw = frame.draw](const ScreenSize& size) {
      std::vector<std::string> lines = TextScreen(head, size);
      ScreenSize rest = size;
      if (rest.lines > 1) --rest.lines;
      for (std::string& line : draw(rest)) lines.push_back(std::move(line));
      return lines;
    };
    return {draw, absl::StrCat("silent, ", frame.about), last};
  }

  const StatusToWatch& watched_;
  std::optional<JobList> latest_;
  Instant heard_;
  absl::Status end_;
};

}  // namespace

int WatchStatus(const StatusToWatch& watched) {
  StatusWatch watch(watched);
  bool ended = false;
  WatchLive([&] {
    LiveFrame frame = watch.Look();
    ended = frame.last;
    return frame;
  });
  if (!ended || watch.end().ok()) return kExitOk;
  return FailToAsk(watch.end(), ExitCodeOf(FailedStep::kAsk, watch.end()));
}

}  // namespace hlaunch
