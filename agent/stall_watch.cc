// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/stall_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/heartbeat_server.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMostNamed = 5;

}  // namespace

struct StallWatch::State {
  State(asio::io_context& loop, Rank the_first_rank, OnStall the_on_stall)
      : first_rank(the_first_rank), on_stall(std::move(the_on_stall)), unheard(loop) {}

  const Rank first_rank;
  const OnStall on_stall;
  std::unique_ptr<HeartbeatServer> server;
  asio::steady_timer unheard;  // Until it is said who is not watched.
  std::vector<pid_t> pids;     // By local rank; 0: it does not live.
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with us.

  std::string Name(int local_rank) const { return absl::StrCat("rank ", first_rank + local_rank); }

  void SayWhoIsNotWatched() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < pids.size(); ++i) {
      const int local_rank = static_cast<int>(i);
      if (pids[i] != 0 && !server->heartbeats().IsWatched(local_rank)) {
        names.push_back(Name(local_rank));
      }
    }
    if (names.empty()) return;
    const size_t count = names.size();
    names.resize(std::min(count, kMostNamed));
    LogInfo(absl::StrCat(
        "no heartbeat has come from ", absl::StrJoin(names, ", "),
        count > names.size() ? absl::StrCat(" and ", count - names.size(), " more") : "",
        ": not watched until the script calls hlaunch.heartbeat()"));
  }

  void OnStalls(const std::vector<Stall>& stalls) {
    for (const Stall& stall : stalls) {
      LogWarning(absl::StrCat(Name(stall.worker), " has stalled: ", stall.ToString()));
    }
    const Stall& cause = *std::min_element(stalls.begin(), stalls.end(), IsBehind);
    on_stall({cause.worker, absl::StrCat("stalled: ", cause.ToString())});
  }

  void OnRecovery(int local_rank) const { LogInfo(absl::StrCat(Name(local_rank), " goes on")); }
};

absl::StatusOr<std::unique_ptr<StallWatch>> StallWatch::Open(asio::io_context& loop,
                                                             const WorkerSpec& spec,
                                                             Rank first_rank, OnStall on_stall) {
  std::unique_ptr<StallWatch> watch(
      new StallWatch(std::make_unique<State>(loop, first_rank, std::move(on_stall))));
  State& s = *watch->state_;
  s.pids.resize(static_cast<size_t>(spec.nproc));
  HLAUNCH_ASSIGN_OR_RETURN(
      s.server,
      HeartbeatServer::Open(loop, spec.nproc, spec.heartbeat_timeout,
                            {[&s](const std::vector<Stall>& stalls) { s.OnStalls(stalls); },
                             [&s](int local_rank) { s.OnRecovery(local_rank); }}));
  s.unheard.expires_after(spec.heartbeat_timeout);
  s.unheard.async_wait([&s, alive = std::weak_ptr<bool>(s.life)](const asio::error_code& error) {
    if (!error && !alive.expired()) s.SayWhoIsNotWatched();
  });
  return watch;
}

StallWatch::StallWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
StallWatch::~StallWatch() = default;

const std::string& StallWatch::address(int local_rank) const {
  return state_->server->address(local_rank);
}

void StallWatch::Started(int local_rank, pid_t pid) {
  state_->pids[static_cast<size_t>(local_rank)] = pid;
  state_->server->Listen(local_rank, pid);
}

void StallWatch::Ended(int local_rank) {
  state_->pids[static_cast<size_t>(local_rank)] = 0;
  state_->server->Forget(local_rank);
}

}  // namespace hlaunch
