// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_group.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/group_end.h"
#include "agent/round_mpi.h"
#include "agent/stand_ins.h"
#include "agent/watch/stall/last_words.h"
#include "agent/worker_process.h"
#include "agent/worker_start.h"
#include "agent/worker_watches.h"
#include "agent/workers/fork_server/fork_servers.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/worker/memory_kills.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/cause/first_cause.h"

namespace hlaunch {
namespace {

// How long a killed process may take to vanish before it is reported instead of awaited.
constexpr Duration kKillDeadline = std::chrono::seconds(5);
// At most this many workers start at once; more is no faster on any machine tried.
constexpr size_t kStartedAtOnce = 8;

void Append(const std::vector<pid_t>& more, std::vector<pid_t>* pids) {
  pids->insert(pids->end(), more.begin(), more.end());
}

// Waits for killed workers to end. Belongs to the loop's thread.
class KillDeadlines {
 public:
  explicit KillDeadlines(asio::io_context& loop) : loop_(loop) {}

  // Calls `late` if Clear has not been called until the deadline. Only the first call for a local
  // rank counts.
  void Arm(int local_rank, std::function<void()> late) {
    const auto [timer, is_first] = timers_.try_emplace(local_rank, loop_);
    if (!is_first) return;
    timer->second.expires_after(kKillDeadline);
    timer->second.async_wait([late = std::move(late)](const asio::error_code& error) {
      if (!error) late();
    });
  }
  void Clear() { timers_.clear(); }

 private:
  asio::io_context& loop_;
  std::map<int, asio::steady_timer> timers_;  // By local rank.
};

}  // namespace

struct WorkerGroup::State {
  State(asio::io_context& the_loop, const Assignment& the_assignment, OutputRelay& the_relay,
        Events the_events, std::unique_ptr<PmixServer> pmix)
      : assignment(the_assignment),
        relay(the_relay),
        events(std::move(the_events)),
        loop(the_loop),
        last_words(
            the_loop, [this] { return GivenUp(workers, relay); },
            [this](std::vector<int> given_up) {
              if (events.on_given_up && !stopping) events.on_given_up(std::move(given_up));
            }),
        watches(the_loop, the_assignment, EventsOfWatches()),
        mpi(the_loop, the_relay, std::move(pmix),
            {[this](const MpiFailure& failure) { FailByMpi(failure); },
             [this](WorkerFailure failure) { OnSpawnedFailure(std::move(failure)); },
             [this] {
               hlaunch::ReapOrphans(Owned());
               CheckEnded();
             }}),
        stand_ins(the_loop,
                  [this](int local_rank, pid_t pid) { watches.Started(local_rank, pid); }),
        ending(
            the_loop,
            [this] {
              KillAll();
              Stopped();
            },
            [this] { CheckStopped(); }) {}

  const Assignment assignment;
  OutputRelay& relay;
  const Events events;
  const MemoryKills kills_before = CountMemoryKills();
  asio::io_context& loop;
  LastWords last_words;
  WorkerWatches watches;
  RoundMpi mpi;
  StandIns stand_ins;
  ForkServers* fork_servers = nullptr;  // Set if there may be some.
  GroupEnd ending;
  std::vector<pid_t> all_pids;  // By local rank, including reaped workers.
  bool cut_short = false;       // Not all workers ended with 0 by themselves.
  KillDeadlines kill_deadlines{loop};
  std::vector<WorkerProcess> workers;
  std::set<std::string> warnings;  // Warnings of workers that were logged already.
  pid_t spared = 0;                // A child that is not of the group.
  size_t num_alive = 0;
  bool failed = false;
  bool stopping = false;
  bool stopped = false;
  int stop_signal = 0;          // The last one that Stop sent.
  std::optional<int64_t> step;  // The highest that a worker told.

  std::vector<pid_t> AlivePids() const {
    std::vector<pid_t> pids = hlaunch::AlivePids(workers);
    Append(mpi.AlivePids(), &pids);
    return pids;
  }

  bool AnyAlive() const { return num_alive > 0 || mpi.alive() > 0; }

  // Child processes that are not of the group and outlive it.
  std::vector<pid_t> Others() const {
    return fork_servers == nullptr ? std::vector<pid_t>() : fork_servers->pids();
  }

  // Child processes that are not reaped as orphans.
  std::vector<pid_t> Owned() const {
    std::vector<pid_t> pids = AlivePids();
    Append(Others(), &pids);
    if (spared != 0) pids.push_back(spared);
    if (mpi.pmix_pid() != 0) pids.push_back(mpi.pmix_pid());
    Append(watches.tools(), &pids);
    return pids;
  }

  void OnExit(WorkerProcess& worker) {
    const pid_t pid = worker.pid();
    const ExitStatus exit = worker.Reap();
    --num_alive;
    const bool succeeded = exit.exit_code == 0 && exit.signal == 0;
    watches.Ended(worker.local_rank(), succeeded);
    stand_ins.Ended(worker.local_rank());
    TellEnd(worker, pid, exit);
    hlaunch::ReapOrphans(Owned());
    relay.Drain(worker.local_rank());
    if (!succeeded) cut_short = true;
    if (succeeded && !stopping) mpi.WarnIfUnserved(worker.local_rank());
    if (!stopping) mpi.Ended(worker.local_rank(), succeeded);
    if (!stopping && !succeeded) return TellFailure(worker, pid, exit);
    CheckEnded();
    if (num_alive == 0 && AnyAlive() && !failed && !stopping) {
      LogInfo(absl::StrCat("all ranks here have ended; the job waits for ", mpi.alive(),
                           " processes that they have spawned"));
    }
  }

  // A process has ended, and not failed.
  void CheckEnded() {
    if (stopping) return CheckStopped();
    if (!AnyAlive() && !failed) events.on_success();
  }

  void OnSpawnedFailure(WorkerFailure failure) {
    if (stopping) return;
    failed = true;
    cut_short = true;
    events.on_failure(std::move(failure));
  }

  Rank RankOf(const WorkerProcess& worker) const {
    return assignment.first_rank + worker.local_rank();
  }

  void TellEnd(const WorkerProcess& worker, pid_t pid, const ExitStatus& exit) const {
    if (!events.on_event) return;
    events.on_event(WorkerEnded{assignment.round, RankOf(worker), worker.local_rank(), pid,
                                exit.exit_code, exit.signal, stopping});
  }

  void TellFailure(WorkerProcess& worker, pid_t pid, const ExitStatus& exit) {
    failed = true;
    if (!worker.TellsFailure()) return;
    const WorkerFailure failure = worker.Failure(assignment, pid, exit, relay, kills_before);
    if (KindOf(failure) == CauseKind::kTimedOut) watches.LogStandstill();
    events.on_failure(failure);
  }

  // A worker has failed by MPI's rules. It may have exited with 0; if it lives, it waits for others
  // or is about to end itself.
  void FailByMpi(const MpiFailure& failure) {
    WorkerProcess& worker = workers[static_cast<size_t>(failure.local_rank)];
    if (stopping) return;
    cut_short = true;
    worker.Blame(failure.reason, failure.kind);
    relay.Drain(failure.local_rank);
    TellFailure(worker, all_pids[static_cast<size_t>(failure.local_rank)],
                {.exit_code = failure.exit_code});
  }

  // Once no worker lives, the group is stopped if no other process lives.
  void CheckStopped() {
    if (!stopping || stopped || AnyAlive()) return;
    mpi.EndPmix();
    if (!HasChildren(Others())) return Stopped();
    if (cut_short) ending.HurryOrphans(all_pids, Others(), stop_signal);
  }

  WorkerWatches::Events EventsOfWatches();

  absl::Status Await(StartingWorker& starting) {
    HLAUNCH_ASSIGN_OR_RETURN(Process process, starting.Await());
    const int local_rank = starting.local_rank;
    if (!process.warning().empty() && warnings.insert(process.warning()).second) {
      LogWarning(absl::StrCat("local rank ", local_rank, ": ", process.warning()));
    }
    WorkerProcess& worker = workers.emplace_back(std::move(process), local_rank,
                                                 starting.error_file, starting.log_file);
    ++num_alive;
    all_pids.push_back(worker.pid());
    if (starting.is_stand_in) {
      stand_ins.Started(local_rank, worker.pid());
    } else {
      watches.Started(local_rank, worker.pid());
    }
    if (events.on_event) {
      events.on_event(WorkerStarted{assignment.round, RankOf(worker), local_rank, worker.pid()});
    }
    return worker.Watch(loop, [this, &worker] { OnExit(worker); });
  }

  // Reports the stall, and ends the worker if that is the action.
  void Punish(const StalledWorker& stalled, StallAction action) {
    const WorkerProcess& worker = workers[static_cast<size_t>(stalled.local_rank)];
    if (events.on_event && worker.alive()) {
      events.on_event(WorkerStalled{assignment.round, RankOf(worker), worker.local_rank(),
                                    worker.pid(), stalled.reason});
    }
    if (action == StallAction::kFail) EndStalled(stalled);
  }

  // Kills with SIGKILL, because a stalled worker does not react to SIGTERM.
  void EndStalled(const StalledWorker& stalled) {
    WorkerProcess& worker = workers[static_cast<size_t>(stalled.local_rank)];
    if (!worker.alive() || stopping) return;
    worker.Blame(stalled);
    worker.SignalGroup(SIGKILL);
    kill_deadlines.Arm(stalled.local_rank, [this, &worker] {
      if (!worker.alive() || stopping) return;  // SIGKILL did not end it: a failure too.
      TellFailure(worker, worker.pid(), {.signal = SIGKILL});
    });
  }

  void SignalGroups(int signal) const {
    hlaunch::SignalGroups(workers, signal);
    mpi.SignalGroups(signal);
  }

  void KillAll() {
    const Instant deadline = MonotonicClock().Now() + kKillDeadline;
    stopping = true;
    watches.Stop();
    SignalGroups(SIGKILL);
    for (WorkerProcess& worker : workers) {
      if (worker.alive() && worker.AwaitExit(deadline)) {
        const pid_t pid = worker.pid();
        TellEnd(worker, pid, worker.Reap());
        relay.Drain(worker.local_rank());
      }
    }
    mpi.AwaitExits(deadline);
    mpi.EndPmix();
    KillOrphans(Others(), AlivePids(), deadline);
    num_alive = 0;
  }

  void Stopped() {
    if (std::exchange(stopped, true)) return;
    ending.Cancel();
    kill_deadlines.Clear();
    stand_ins.Stop();
    watches.End();
    mpi.End(cut_short);
    for (const WorkerProcess& worker : workers) relay.Close(worker.local_rank());
    asio::post(loop, events.on_stopped);  // This may destroy the object.
  }
};

WorkerWatches::Events WorkerGroup::State::EventsOfWatches() {
  WorkerWatches::Events on;
  on.on_stall = [this](const StalledWorker& stalled, StallAction action) {
    Punish(stalled, action);
  };
  on.on_overdue = [this](pid_t child, std::string reason) {
    const auto worker = std::find_if(workers.begin(), workers.end(), [child](const auto& one) {
      return one.alive() && one.pid() == child;
    });
    if (worker == workers.end()) return;
    worker->Blame({.local_rank = worker->local_rank(), .reason = std::move(reason)});
  };
  on.on_step = [this](int64_t told) { step = std::max(step.value_or(told), told); };
  on.on_boundary = [this] {
    if (!stopping) events.on_boundary();
  };
  on.on_value = [this](Rank rank, const std::string& name, double value) {
    if (events.on_event) events.on_event(LogValue{assignment.round, rank, name, value});
  };
  on.on_found = [this](const NodeEvent& event) {
    if (events.on_event) events.on_event(event);
  };
  on.on_word = [this](std::string text) {
    if (events.on_word) events.on_word(std::move(text));
  };
  return on;
}

absl::StatusOr<std::unique_ptr<WorkerGroup>> WorkerGroup::Start(
    asio::io_context& loop, const Assignment& assignment, const WorkerSpec& spec, NodeFacts facts,
    const JobLogs& logs, OutputRelay& relay, Events events, std::unique_ptr<PmixServer> pmix,
    StdinCopies* stdin_copies, ForkServers* fork_servers) {
  auto state = std::make_unique<State>(loop, assignment, relay, std::move(events), std::move(pmix));
  state->fork_servers = fork_servers;
  std::unique_ptr<WorkerGroup> group(new WorkerGroup(std::move(state)));
  State& s = *group->state_;
  s.workers.reserve(spec.nproc);  // Watch keeps references to the workers.
  RoundLogs round_logs(logs, assignment, spec.role, spec.nproc);
  HLAUNCH_RETURN_IF_ERROR(s.watches.Open(spec, logs, round_logs, facts));
  HLAUNCH_RETURN_IF_ERROR(s.mpi.Start(assignment, spec, facts, logs, s.kills_before));
  const WorkerLinks links{relay, s.watches, s.mpi, s.last_words, stdin_copies, fork_servers};
  std::deque<StartingWorker> starting;
  const auto await_first = [&] {
    const absl::Status awaited = s.Await(starting.front());
    starting.pop_front();
    return awaited;
  };
  for (int local_rank = 0; local_rank < spec.nproc; ++local_rank) {
    if (starting.size() == kStartedAtOnce) HLAUNCH_RETURN_IF_ERROR(await_first());
    HLAUNCH_ASSIGN_OR_RETURN(StartingWorker next,
                             BeginWorker(links, spec, assignment, facts, round_logs, local_rank));
    starting.push_back(std::move(next));
  }
  while (!starting.empty()) HLAUNCH_RETURN_IF_ERROR(await_first());
  return group;
}

WorkerGroup::WorkerGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}

WorkerGroup::~WorkerGroup() {
  if (std::exchange(state_->stopped, true)) return;
  state_->KillAll();
  for (const WorkerProcess& worker : state_->workers) state_->relay.Close(worker.local_rank());
}

void WorkerGroup::Stop(int signal, Duration grace) {
  State& s = *state_;
  if (s.stopped) return;
  s.stopping = true;
  s.stop_signal = signal;
  if (s.AnyAlive()) s.cut_short = true;
  s.mpi.Hush();
  s.watches.Stop();
  s.stand_ins.Stop();
  Forward(signal);
  // Orphans of workers.
  const std::vector<pid_t> others = s.Owned();
  if (HasChildren(others)) SignalDescendants(::getpid(), signal, others);
  s.ending.KillAt(MonotonicClock().Now() + (signal == SIGKILL ? Duration::zero() : grace));
  s.ending.LookSoon();
}

void WorkerGroup::Forward(int signal) { state_->SignalGroups(signal); }

void WorkerGroup::Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done) {
  state_->watches.Ask(question, std::move(done));
}

void WorkerGroup::Hear(const RoundWord& word) { state_->watches.Hear(word); }

void WorkerGroup::Spare(pid_t pid) { state_->spared = pid; }

void WorkerGroup::ReapOrphans() {
  hlaunch::ReapOrphans(state_->Owned());
  state_->CheckStopped();
}

int WorkerGroup::alive() const { return static_cast<int>(state_->num_alive); }

std::optional<int64_t> WorkerGroup::step() const { return state_->step; }

bool WorkerGroup::HasLeftovers() const {
  const std::vector<pid_t> owned = state_->Owned();
  hlaunch::ReapOrphans(owned);
  return HasChildren(owned);
}

std::vector<std::string> WorkerGroup::Leftovers() const {
  constexpr int kMostLooks = 5;  // A daemon may be in the middle of its two forks at each look.
  std::vector<std::string> names;
  for (int look = 0; look < kMostLooks && names.empty() && HasLeftovers(); ++look) {
    for (const ProcessEntry& entry : Descendants(::getpid(), state_->Owned())) {
      if (entry.state == 'Z') continue;  // It is dead and about to be reaped.
      names.push_back(absl::StrCat(entry.command, "[", entry.pid, "]"));
    }
  }
  return names;
}

}  // namespace hlaunch
