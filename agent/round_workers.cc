// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/round_workers.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/health/joint/peer_ways.h"
#include "agent/mpi/serve/pmix_server.h"
#include "agent/node_facts.h"
#include "agent/node_updates.h"
#include "agent/worker_process.h"
#include "agent/workers/fork_server/plan_fork_servers.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

constexpr size_t kLeftoversNamed = 5;

// Processes that workers leave behind after success have this long to end by themselves.
constexpr Duration kLeftoverGrace = std::chrono::seconds(5);
constexpr Duration kLeftoverPause = std::chrono::milliseconds(100);  // Before they are reported.
constexpr Duration kShortJob = std::chrono::seconds(5);              // Shorter jobs need no watch.

}  // namespace

struct RoundWorkers::Awaited {
  Assignment assignment;
  NodeFacts facts;
  WorkerGroup::Events events;
  std::unique_ptr<PmixServer> pmix = nullptr;
  bool stopped = false;
};

struct RoundWorkers::Timers {
  explicit Timers(asio::io_context& loop) : leftovers(loop), health(loop) {}
  asio::steady_timer leftovers;  // Until leftovers are ended.
  asio::steady_timer health;     // Until health is watched.
};

RoundWorkers::RoundWorkers(asio::io_context& loop, const AgentOptions& options, RoundStore& store,
                           OutputRelay& relay)
    : loop_(loop),
      options_(options),
      store_(store),
      relay_(relay),
      pmix_program_(options.spec.pmix_program),
      timers_(std::make_unique<Timers>(loop)) {}
RoundWorkers::~RoundWorkers() = default;

absl::Status RoundWorkers::Start(const Assignment& assignment, WorkerGroup::Events events) {
  HLAUNCH_RETURN_IF_ERROR(RanksOfPrograms(options_.spec.others, assignment.world_size).status());
  if (assignment.node_rank == 0) HLAUNCH_RETURN_IF_ERROR(store_.Open(assignment));
  HLAUNCH_RETURN_IF_ERROR(store_.Connect(assignment));
  NodeFacts facts = GatherFacts(assignment);
  if (const std::string chosen = ChosenDefaults(assignment, options_.spec, facts);
      !chosen.empty()) {
    LogInfo(chosen);
  }
  events.on_success = [this, on_success = std::move(events.on_success)] {
    if (health_watch_) health_watch_->Finished();
    on_success();
  };
  if (options_.spec.preload.wanted()) {
    AwaitForkServers(assignment, std::move(facts), std::move(events));
    return absl::OkStatus();
  }
  return Go(assignment, std::move(facts), std::move(events));
}

void RoundWorkers::AwaitForkServers(const Assignment& assignment, NodeFacts facts,
                                    WorkerGroup::Events events) {
  std::vector<Command> ranks;
  for (int local_rank = 0; local_rank < options_.spec.nproc; ++local_rank) {
    ranks.push_back(WorkerCommand(options_.spec, assignment, local_rank, facts, {}));
  }
  ForkServerPlans plans = PlanForkServers(options_.spec.preload, ranks);
  if (!plans.why_not.empty() && assignment.round == 1) {
    LogInfo(absl::StrCat(plans.plans.empty() ? "nothing is preloaded: "
                                             : "not for all ranks modules are preloaded: ",
                         plans.why_not));
  }
  if (fork_servers_ == nullptr) {
    fork_servers_ = std::make_unique<ForkServers>(
        loop_, absl::StrCat(facts.scratch, "/fork_server"), [this] { ReapOrphans(); });
  }
  stopping_ = false;
  awaited_ = std::make_unique<Awaited>(Awaited{assignment, std::move(facts), std::move(events)});
  fork_servers_->Prepare(std::move(plans.plans), [this] {
    const std::unique_ptr<Awaited> workers = std::move(awaited_);
    const auto on_failure = workers->events.on_failure;
    const absl::Status started =
        Go(workers->assignment, std::move(workers->facts), std::move(workers->events));
    if (!started.ok()) on_failure(StartFailure(started, workers->assignment));
  });
}

absl::Status RoundWorkers::Go(const Assignment& assignment, NodeFacts facts,
                              WorkerGroup::Events events) {
  if (OffersPmix(options_.spec.mpi)) {
    AwaitPmix(assignment, std::move(facts), std::move(events));
    return absl::OkStatus();
  }
  return StartGroup(assignment, std::move(facts), std::move(events), nullptr);
}

absl::Status RoundWorkers::StartGroup(const Assignment& assignment, NodeFacts facts,
                                      WorkerGroup::Events events,
                                      std::unique_ptr<PmixServer> pmix) {
  if (options_.spec.stdin_to == StdinTo::kAll && stdin_copies_ == nullptr) {
    HLAUNCH_ASSIGN_OR_RETURN(stdin_copies_, StdinCopies::Open(loop_));
  }
  HLAUNCH_ASSIGN_OR_RETURN(
      group_, WorkerGroup::Start(loop_, assignment, options_.spec, std::move(facts), options_.logs,
                                 relay_, std::move(events), std::move(pmix), stdin_copies_.get(),
                                 fork_servers_.get()));
  if (fork_servers_ != nullptr && assignment.restart_count < assignment.max_restarts) {
    fork_servers_->ExpectAnotherRound();
  }
  WatchHealth(assignment);
  return absl::OkStatus();
}

void RoundWorkers::AwaitPmix(const Assignment& assignment, NodeFacts facts,
                             WorkerGroup::Events events) {
  const bool proxy = facts.store_proxy_port != 0;
  PmixPlan plan{.library = options_.spec.pmix_library,
                .name_space = absl::StrCat("hl-", NewJobId(), "-r", assignment.round),
                .directory = absl::StrCat(facts.scratch, "/pmix-", assignment.round),
                .host = facts.host,
                .first_rank = assignment.first_rank,
                .nproc = options_.spec.nproc,
                .node_rank = assignment.node_rank,
                .num_nodes = assignment.num_nodes,
                .store_host = proxy ? "127.0.0.1" : assignment.master_addr,
                .store_port = proxy ? facts.store_proxy_port : assignment.master_port,
                .programs = absl::StrJoin(
                    RanksOfPrograms(options_.spec.others, assignment.world_size).value(), " "),
                .oversubscribed = options_.spec.nproc > facts.usable_cores,
                .optional = options_.spec.mpi == MpiOffer::kAny,
                .any_user = options_.spec.any_user};
  awaited_ = std::make_unique<Awaited>(Awaited{assignment, std::move(facts), std::move(events)});
  awaited_->pmix =
      std::make_unique<PmixServer>(loop_, pmix_program_, std::move(plan), assignment.world_size,
                                   [this](const absl::Status& ready) { OnPmix(ready); });
}

void RoundWorkers::OnPmix(const absl::Status& ready) {
  const std::unique_ptr<Awaited> workers = std::move(awaited_);
  const auto on_failure = workers->events.on_failure;
  const bool alone = workers->assignment.world_size == 1;  // It needs the server only for spawning.
  const bool goes_on = alone || options_.spec.mpi == MpiOffer::kAny;
  if (!ready.ok() && goes_on) {
    workers->pmix.reset();
    LogWarning(absl::StrCat(alone ? "MPI_Comm_spawn will fail: "
                                  : "programs of Open MPI cannot start, since PMIx is not served: ",
                            ready.message()));
  }
  const absl::Status started =
      ready.ok() || goes_on ? StartGroup(workers->assignment, std::move(workers->facts),
                                         std::move(workers->events), std::move(workers->pmix))
                            : ready;
  if (!started.ok()) on_failure(StartFailure(started, workers->assignment));
}

void RoundWorkers::Clear() {
  group_.reset();
  awaited_.reset();
  if (stdin_copies_ != nullptr) stdin_copies_->Clear();
}

NodeFacts RoundWorkers::GatherFacts(const Assignment& assignment) const {
  NodeFacts facts = options_.facts;
  facts.host = options_.info.host;
  facts.store_proxy_port = store_.proxy_port();
  if (assignment.num_nodes > 1) facts.gloo_interface = InterfaceTowards(assignment.master_addr);
  return facts;
}

void RoundWorkers::WatchHealth(const Assignment& assignment) {
  stopping_ = false;
  if (!options_.check_command || options_.health_interval == Duration::zero()) return;
  const bool often = options_.health_interval < kShortJob;
  timers_->health.expires_after(often ? Duration::zero() : kShortJob);
  timers_->health.async_wait([this, assignment](const asio::error_code& error) {
    // A handler that was due together with a stop is not cancelled by it.
    if (error || stopping_ || group_ == nullptr || group_->alive() == 0) return;
    health_watch_.emplace(loop_, options_.check_command(PlanChecksDuring(options_, assignment)),
                          [this, round = assignment.round](const CheckResult& change) {
                            group_->Spare(health_watch_->pid());
                            TellHealth(round, change);
                          });
    group_->Spare(health_watch_->pid());
  });
}

void RoundWorkers::TellHealth(Round round, const CheckResult& change) const {
  const bool better = change.state == CheckState::kOk;
  const std::string words = absl::StrCat(change.name, ": ", change.reason,
                                         change.advice.empty() ? "" : "; ", change.advice);
  const std::optional<std::vector<int>> unreached = UnreachedOf(change);
  if (unreached) {
    if (on_unreached_) on_unreached_(*unreached);  // The rendezvous judges: it hears all sides.
  } else if (better) {
    LogInfo(words);
  } else {
    LogWarning(words);
  }
  if (options_.on_event) {
    options_.on_event(HealthChanged{round, change.name, !better, change.reason});
  }
}

void RoundWorkers::Stop(int signal, Duration grace) {
  stopping_ = true;
  timers_->health.cancel();
  health_watch_.reset();      // First, so every child that is left is the workers'.
  if (awaited_ != nullptr) {  // No worker has started yet.
    if (std::exchange(awaited_->stopped, true)) return;
    if (fork_servers_ != nullptr) fork_servers_->Hush();
    awaited_->pmix.reset();
    return asio::post(loop_, awaited_->events.on_stopped);
  }
  if (group_ == nullptr) return;
  group_->Spare(0);
  group_->Stop(signal, grace);
}

void RoundWorkers::EndLeftovers() {
  timers_->leftovers.expires_after(kLeftoverPause);
  timers_->leftovers.async_wait([this](const asio::error_code& error) {
    if (error || group_ == nullptr) return;
    const std::vector<std::string> left = group_->Leftovers();
    if (!left.empty()) LogWarning(DescribeLeftovers(left));
    Stop(SIGTERM, kLeftoverGrace);
  });
}

void RoundWorkers::Forward(int signal) {
  if (group_) group_->Forward(signal);
}

void RoundWorkers::ReapOrphans() {
  if (group_) group_->ReapOrphans();
}

bool RoundWorkers::HasLeftovers() const { return group_ && group_->HasLeftovers(); }

void RoundWorkers::Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done) {
  if (group_ != nullptr) return group_->Ask(question, std::move(done));
  done({question.number, "", "runs no workers now"});
}

void RoundWorkers::Hear(const RoundWord& word) {
  if (group_ != nullptr) group_->Hear(word);
}

std::string RoundWorkers::saved_imports() const {
  return fork_servers_ == nullptr ? "" : fork_servers_->saved().Text();
}

int RoundWorkers::alive() const { return group_ ? group_->alive() : 0; }

std::optional<int64_t> RoundWorkers::step() const { return group_ ? group_->step() : std::nullopt; }

std::string DescribeLeftovers(std::vector<std::string> processes) {
  const size_t count = processes.size();
  if (count > kLeftoversNamed) processes.resize(kLeftoversNamed);
  return absl::StrCat("the workers exited and left ", count, count == 1 ? " process" : " processes",
                      " behind: ", absl::StrJoin(processes, ", "),
                      count > processes.size() ? " …" : "", "; ending them");
}

}  // namespace hlaunch
