// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/kernel_wait.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr Duration kShortestPause = std::chrono::milliseconds(20);
constexpr double kMaxSeconds = 365.0 * 24 * 3600;

}  // namespace

std::optional<Duration> KernelWaits::Take(int worker, char state, Instant now) {
  std::optional<Instant>& since = since_[static_cast<size_t>(worker)];
  if (state != 'D') {
    since.reset();
    return std::nullopt;
  }
  if (!since) since = now;
  return now - *since >= limit_ ? std::optional(now - *since) : std::nullopt;
}

struct KernelWaitWatch::State {
  State(asio::io_context& loop, int workers, Duration the_limit, OnStuck the_on_stuck)
      : limit(the_limit),
        pause(std::clamp(limit / 4, kShortestPause, kLongestPause)),
        on_stuck(std::move(the_on_stuck)),
        waits(workers, limit),
        pids(static_cast<size_t>(workers)),
        timer(loop) {}

  const Duration limit;
  const Duration pause;  // Between two looks.
  const OnStuck on_stuck;
  KernelWaits waits;
  std::vector<pid_t> pids;  // By local rank; 0 if it does not live or was reported.
  asio::steady_timer timer;

  void Await() {
    timer.expires_after(pause);
    timer.async_wait([this](const asio::error_code& error) {
      if (error) return;
      Look();
      Await();
    });
  }

  void Look() {
    for (size_t i = 0; i < pids.size(); ++i) {
      if (pids[i] == 0) continue;
      const int local_rank = static_cast<int>(i);
      const std::optional<ProcessEntry> process = ReadProcess(pids[i]);
      const auto waited =
          waits.Take(local_rank, process ? process->state : '?', MonotonicClock().Now());
      if (!waited) continue;
      pids[i] = 0;
      on_stuck(local_rank, absl::StrFormat("is stuck in the kernel: %s for %.3g s, and %s is %.3g",
                                           process->ToString(), InSeconds(*waited),
                                           kEnvKernelWaitLimit, InSeconds(limit)));
    }
  }
};

std::optional<Duration> KernelWaitWatch::LimitOf(const WorkerSpec& spec) {
  const std::string name = absl::StrCat(kEnvKernelWaitLimit, "=");
  double seconds = 0;
  for (absl::string_view entry : spec.inherited_env) {
    if (absl::ConsumePrefix(&entry, name) && !absl::SimpleAtod(entry, &seconds)) seconds = 0;
  }
  if (!(seconds > 0)) return std::nullopt;  // Also if it is not a number.
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kMaxSeconds)));
}

std::unique_ptr<KernelWaitWatch> KernelWaitWatch::Open(asio::io_context& loop,
                                                       const WorkerSpec& spec, OnStuck on_stuck) {
  const std::optional<Duration> limit = LimitOf(spec);
  if (!limit) return nullptr;
  auto state = std::make_unique<State>(loop, spec.nproc, *limit, std::move(on_stuck));
  state->Await();
  return std::unique_ptr<KernelWaitWatch>(new KernelWaitWatch(std::move(state)));
}

KernelWaitWatch::KernelWaitWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelWaitWatch::~KernelWaitWatch() = default;

void KernelWaitWatch::Started(int local_rank, pid_t pid) {
  state_->pids[static_cast<size_t>(local_rank)] = pid;
}

void KernelWaitWatch::Ended(int local_rank) { state_->pids[static_cast<size_t>(local_rank)] = 0; }

}  // namespace hlaunch
