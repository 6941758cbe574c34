// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/notice/stop_notice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

constexpr Duration kAtOnce = std::chrono::milliseconds(300);  // Most workers have stopped by then.

}  // namespace

struct StopNotice::State {
  explicit State(asio::io_context& loop) : timer(loop) {}
  asio::steady_timer timer;
};

StopNotice::StopNotice(asio::io_context& loop) : state_(std::make_unique<State>(loop)) {}
StopNotice::~StopNotice() = default;

void StopNotice::Begin(std::string reason, Duration grace, std::function<int()> alive) {
  state_->timer.expires_after(kAtOnce);
  state_->timer.async_wait(
      [reason = std::move(reason), grace, alive = std::move(alive)](const asio::error_code& error) {
        if (!error) LogWarning(DescribeStopping(reason, alive(), grace - kAtOnce));
      });
}

void StopNotice::End() { state_->timer.cancel(); }

std::string DescribeStopping(const std::string& reason, int workers, Duration grace) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(grace).count();
  const std::string what = workers == 0   ? "what its workers left behind"
                           : workers == 1 ? "1 worker"
                                          : absl::StrCat(workers, " workers");
  return absl::StrCat(reason, reason.empty() ? "" : "; ", "stopping ", what, ", up to ", seconds,
                      " s (--shutdown-timeout)");
}

}  // namespace hlaunch
