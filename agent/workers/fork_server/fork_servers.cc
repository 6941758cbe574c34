// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/fork_servers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/workers/fork_server/python_side.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

constexpr int kMostLost = 2;  // After more, something here ends them, and no more are started.
// From the start of a round to the forks for the next one: they do not disturb the ranks' own
// start.
constexpr Duration kQuietTime = std::chrono::seconds(2);

}  // namespace

struct ForkServers::Timer {
  asio::steady_timer timer;
};

ForkServers::ForkServers(asio::io_context& loop, std::string directory,
                         std::function<void()> on_reaped)
    : loop_(loop),
      directory_(std::move(directory)),
      on_reaped_(std::move(on_reaped)),
      quiet_(new Timer{asio::steady_timer(loop)}) {}
ForkServers::~ForkServers() = default;

void ForkServers::Prepare(std::vector<ForkServerPlan> plans, std::function<void()> on_settled) {
  quiet_->timer.cancel();
  on_settled_ = std::move(on_settled);
  servers_.remove_if([&](const ForkServer& server) {
    return std::none_of(plans.begin(), plans.end(),
                        [&](const ForkServerPlan& plan) { return plan.IsServedBy(server.plan()); });
  });
  for (ForkServerPlan& plan : plans) {
    const auto found =
        std::find_if(servers_.begin(), servers_.end(),
                     [&](const ForkServer& server) { return plan.IsServedBy(server.plan()); });
    if (found == servers_.end()) {
      Begin(std::move(plan));
    } else if (found->end() == ForkServer::End::kNone) {
      found->Renew([this] { Settled(); });
    } else if (found->end() == ForkServer::End::kLost && lost_ < kMostLost) {
      ++lost_;
      servers_.erase(found);
      Begin(std::move(plan));
    }
  }
  asio::post(loop_, [this, life = std::weak_ptr<bool>(life_)] {
    if (!life.expired()) Settled();
  });
}

void ForkServers::Begin(ForkServerPlan plan) {
  if (const absl::Status written = WritePythonSide(directory_); !written.ok()) {
    return LogWarning(absl::StrCat("nothing is preloaded: ", written.message()));
  }
  servers_.emplace_back(loop_, std::move(plan), directory_,
                        ForkServer::Events{[this] { Settled(); }, on_reaped_});
}

void ForkServers::Settled() {
  for (auto it = servers_.begin(); it != servers_.end(); ++it) {
    if (it->end() != ForkServer::End::kChanged) continue;
    ForkServerPlan plan = it->plan();
    servers_.erase(it);
    Begin(std::move(plan));
    break;  // The others are looked at when it is settled.
  }
  const bool all = std::all_of(servers_.begin(), servers_.end(),
                               [](const ForkServer& server) { return server.settled(); });
  if (!all) return;
  for (const ForkServer& server : servers_) {
    if (server.ready()) saved_.CountServer(server.pid(), *server.import_time());
  }
  if (auto tell = std::exchange(on_settled_, nullptr)) tell();
}

void ForkServers::Hush() {
  on_settled_ = nullptr;
  for (ForkServer& server : servers_) server.Hush();
}

std::optional<Process> ForkServers::Fork(const Command& rank) {
  for (ForkServer& server : servers_) {
    if (!server.ready() || !CanBecome(server.plan(), rank)) continue;
    absl::StatusOr<Process> process = server.Fork(rank);
    if (process.ok()) {
      saved_.CountRank(server.import_time().value_or(Duration::zero()));
      return *std::move(process);
    }
    LogInfo(absl::StrCat("a rank starts in the normal way: ", process.status().message()));
  }
  return std::nullopt;
}

void ForkServers::ExpectAnotherRound() {
  quiet_->timer.expires_after(kQuietTime);
  quiet_->timer.async_wait(
      [this, life = std::weak_ptr<bool>(life_)](const asio::error_code& error) {
        if (error || life.expired()) return;
        for (ForkServer& server : servers_) server.MakeSpares();
      });
}

std::vector<pid_t> ForkServers::pids() const {
  std::vector<pid_t> pids;
  for (const ForkServer& server : servers_) {
    const std::vector<pid_t> its = server.pids();
    pids.insert(pids.end(), its.begin(), its.end());
  }
  return pids;
}

}  // namespace hlaunch
