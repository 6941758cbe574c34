// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/health_helper.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/line_process.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {

struct HealthHelper::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, std::vector<AwaitedCheck> wanted,
        std::function<void(std::vector<CheckResult>)> tell_whom)
      : timer(loop), checks(std::move(wanted)), done(std::move(tell_whom)) {}

  void Start(asio::io_context& loop, const std::vector<std::string>& argv) {
    process.emplace(loop, argv,
                    LineProcess::Events{[this](absl::string_view line) { Take(line); },
                                        [this](const LineProcessEnd& end) { Finish(end.why); }});
    Await();
  }

  // Waits while a result may still come. A check whose limit has passed is not waited for.
  void Await() {
    const Instant now = MonotonicClock().Now();
    std::optional<Instant> next;
    for (const AwaitedCheck& check : checks) {
      const Instant end = begin + check.limit;
      if (results.contains(check.name) || end <= now) continue;
      next = std::min(next.value_or(end), end);
    }
    if (!next) return Finish("");
    if (awaiting == next) return;
    awaiting = next;
    timer.expires_at(*next);
    timer.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && self->done != nullptr) self->Await();
    });
  }

  void Take(absl::string_view line) {
    std::optional<CheckResult> result = FromLine(line);
    if (!result) return;
    results[result->name] = std::move(*result);
    Await();
  }

  // `why` is the reason given for missing results; if it is empty, their time was up.
  void Finish(const std::string& why) {
    Stop();
    std::vector<CheckResult> all;
    for (const AwaitedCheck& check : checks) {
      if (const auto it = results.find(check.name); it != results.end()) {
        all.push_back(it->second);
        continue;
      }
      const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(check.limit);
      const std::string late =
          absl::StrCat("it did not end within ", static_cast<double>(limit.count()) / 1000, " s");
      all.push_back({check.name, {}, "", CheckState::kUnknown, why.empty() ? late : why, ""});
    }
    if (auto tell = std::exchange(done, nullptr)) tell(std::move(all));
  }

  void Stop() {
    timer.cancel();
    process.reset();  // Kills the process if it still runs.
  }

  asio::steady_timer timer;
  const std::vector<AwaitedCheck> checks;
  const Instant begin = MonotonicClock().Now();
  std::optional<Instant> awaiting;
  std::function<void(std::vector<CheckResult>)> done;
  std::optional<LineProcess> process;
  std::map<std::string, CheckResult> results;
};

HealthHelper::HealthHelper(asio::io_context& loop, const std::vector<std::string>& argv,
                           std::vector<AwaitedCheck> checks,
                           std::function<void(std::vector<CheckResult>)> done)
    : state_(std::make_shared<State>(loop, std::move(checks), std::move(done))) {
  state_->Start(loop, argv);
}

HealthHelper::~HealthHelper() {
  state_->done = nullptr;
  state_->Stop();
}

}  // namespace hlaunch
