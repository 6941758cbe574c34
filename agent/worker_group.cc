// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/stall/stall_watch.h"
#include "agent/stall/watchdog.h"
#include "agent/worker/descendants.h"
#include "agent/worker/error_file.h"
#include "agent/worker/memory_kills.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/first_cause.h"

namespace hlaunch {
namespace {

// How long a killed process may take to vanish before it is reported instead of awaited.
constexpr Duration kKillDeadline = std::chrono::seconds(5);
constexpr size_t kMaxErrorFileBytes = 256 << 10;

struct Worker {
  Process process;
  int local_rank;
  std::string error_file;
  std::string log_file;  // Of its stderr; empty: none is kept.
  // A copy of the pidfd. epoll hands out what is ready in the order it became so, which makes
  // the order of failures the order of deaths, whatever the loop was busy with meanwhile.
  std::unique_ptr<asio::posix::stream_descriptor> exit;
  bool alive = true;
  std::string kill_reason;  // Why hlaunch ended it before anyone was stopped, if it did.
  bool told = false;        // Its failure was told before its end.
  StalledWorker stalled;    // Where it stood, if it was ended for a stall.
};

bool ReadableBy(int fd, Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
  pollfd poll_fd = {fd, POLLIN, 0};
  return ::poll(&poll_fd, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) == 1;
}

}  // namespace

struct WorkerGroup::State {
  State(asio::io_context& the_loop, const Assignment& the_assignment, OutputRelay& the_relay,
        Events the_events)
      : assignment(the_assignment),
        relay(the_relay),
        events(std::move(the_events)),
        loop(the_loop),
        kill_timer(the_loop),
        stuck_timer(the_loop) {}

  const Assignment assignment;
  OutputRelay& relay;
  const Events events;
  const MemoryKills kills_before = ReadMemoryKills();
  asio::io_context& loop;
  asio::steady_timer kill_timer;
  Instant kill_at = Instant::max();
  std::unique_ptr<Watchdog> watchdog;  // If the user wants one.
  std::unique_ptr<StallWatch> stalls;  // The same.
  asio::steady_timer stuck_timer;      // For a stalled worker to be gone once it was killed.
  std::vector<Worker> workers;
  pid_t spared = 0;  // A child that is not of the group.
  size_t num_alive = 0;
  bool failed = false;
  bool stopping = false;
  bool stopped = false;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with the group.

  std::vector<pid_t> AlivePids() const {
    std::vector<pid_t> pids;
    for (const Worker& worker : workers) {
      if (worker.alive) pids.push_back(worker.process.pid());
    }
    return pids;
  }

  // What is not to be reaped here.
  std::vector<pid_t> Owned() const {
    std::vector<pid_t> pids = AlivePids();
    if (spared != 0) pids.push_back(spared);
    if (stalls && stalls->tool() != 0) pids.push_back(stalls->tool());
    return pids;
  }

  void OnExit(Worker& worker) {
    const pid_t pid = worker.process.pid();
    const ExitStatus exit = worker.process.Reap();
    worker.alive = false;
    worker.exit.reset();
    --num_alive;
    if (stalls) stalls->Ended(worker.local_rank);
    TellEnd(worker, pid, exit);
    hlaunch::ReapOrphans(Owned());
    relay.Drain(worker.local_rank);
    if (stopping) {
      CheckStopped();
    } else if (exit.exit_code != 0 || exit.signal != 0) {
      TellFailure(worker, pid, exit);
    } else if (num_alive == 0 && !failed) {
      events.on_success();
    }
  }

  Rank RankOf(const Worker& worker) const { return assignment.first_rank + worker.local_rank; }

  void TellStart(const Worker& worker) const {
    if (!events.on_event) return;
    events.on_event(
        WorkerStarted{assignment.round, RankOf(worker), worker.local_rank, worker.process.pid()});
  }

  void TellEnd(const Worker& worker, pid_t pid, const ExitStatus& exit) const {
    if (!events.on_event) return;
    events.on_event(WorkerEnded{assignment.round, RankOf(worker), worker.local_rank, pid,
                                exit.exit_code, exit.signal, stopping});
  }

  void TellFailure(Worker& worker, pid_t pid, const ExitStatus& exit) {
    failed = true;
    if (!std::exchange(worker.told, true)) events.on_failure(Failure(worker, pid, exit));
  }

  // Once no worker lives: stopped if nothing else does. What they left has the rest of the grace:
  // the trainer may be an orphan of a wrapper script that ended first.
  void CheckStopped() {
    if (!stopping || stopped || num_alive > 0) return;
    if (!HasChildren()) Stopped();
  }

  WorkerFailure Failure(const Worker& worker, pid_t pid, const ExitStatus& exit) const {
    WorkerFailure failure;
    failure.rank = RankOf(worker);
    failure.local_rank = worker.local_rank;
    failure.node_rank = assignment.node_rank;
    failure.pid = pid;
    failure.exit_code = exit.exit_code;
    failure.signal = exit.signal;
    failure.wall_ms = WallMillis();
    const ErrorFile error = ParseErrorFile(ReadErrorFile(worker.error_file, kMaxErrorFileBytes));
    failure.message = error.message;
    failure.log_file = worker.log_file;
    failure.log_tail = relay.Tail(worker.local_rank);
    failure.traceback = error.traceback;
    if (exit.signal == 0 && error.traceback.empty()) {
      failure.traceback = TracebackIn(relay.LongTail(worker.local_rank));
    }
    failure.evidence = worker.kill_reason;
    if (!worker.stalled.frames.empty()) {
      failure.traceback = worker.stalled.traceback;
      failure.log_tail = worker.stalled.frames;
    }
    if (exit.signal == SIGKILL && failure.evidence.empty()) {
      const KillVerdict verdict = ExplainKill(kills_before, ReadMemoryKills());
      failure.out_of_memory = verdict.out_of_memory;
      failure.evidence = verdict.evidence;
    }
    return failure;
  }

  // Has the watchdog serve this round's workers; a no-op unless the user wants one.
  absl::Status StartWatchdog(const WorkerSpec& spec, NodeFacts* facts) {
    if (!Watchdog::IsWanted(spec)) return absl::OkStatus();
    HLAUNCH_ASSIGN_OR_RETURN(watchdog,
                             Watchdog::Open(loop, spec, [this](pid_t child, std::string reason) {
                               for (Worker& worker : workers) {
                                 if (worker.alive && worker.process.pid() == child)
                                   worker.kill_reason = reason;
                               }
                             }));
    facts->timer_file = watchdog->path();
    return absl::OkStatus();
  }

  // The same for heartbeats.
  absl::Status StartStallWatch(const WorkerSpec& spec, const JobLogs& logs,
                               const RoundLogs& round_logs) {
    if (spec.heartbeat_timeout == Duration::zero()) return absl::OkStatus();
    StackFiles files{{}, logs.losses};
    for (int i = 0; i < spec.nproc; ++i) files.paths.push_back(round_logs.StacksFile(i));
    HLAUNCH_ASSIGN_OR_RETURN(
        stalls, StallWatch::Open(loop, spec, assignment.first_rank, std::move(files),
                                 [this, action = spec.stall_action](const StalledWorker& stalled) {
                                   TellStall(stalled);
                                   if (action == StallAction::kFail) EndStalled(stalled);
                                 }));
    return absl::OkStatus();
  }

  void TellStall(const StalledWorker& stalled) const {
    const Worker& worker = workers[static_cast<size_t>(stalled.local_rank)];
    if (!events.on_event || !worker.alive) return;
    events.on_event(WorkerStalled{assignment.round, RankOf(worker), worker.local_rank,
                                  worker.process.pid(), stalled.reason});
  }

  // It heeds no SIGTERM, or it would not have stalled.
  void EndStalled(const StalledWorker& stalled) {
    Worker& worker = workers[static_cast<size_t>(stalled.local_rank)];
    if (!worker.alive || stopping) return;
    worker.kill_reason = stalled.reason;
    worker.stalled = stalled;
    worker.process.SignalGroup(SIGKILL);
    stuck_timer.expires_after(kKillDeadline);
    stuck_timer.async_wait([this, &worker](const asio::error_code& error) {
      if (error || !worker.alive || stopping) return;  // What no signal ends has failed as well.
      TellFailure(worker, worker.process.pid(), {.signal = SIGKILL});
    });
  }

  absl::Status Watch(Worker& worker) {
    worker.exit = std::make_unique<asio::posix::stream_descriptor>(loop);
    UniqueFd fd(::fcntl(worker.process.pidfd(), F_DUPFD_CLOEXEC, 0));
    asio::error_code error(errno, asio::system_category());
    if (fd.valid()) worker.exit->assign(fd.get(), error);
    if (error && !worker.exit->is_open()) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot watch a worker: ", error.message()));
    }
    fd.Release();
    worker.exit->async_wait(asio::posix::descriptor_base::wait_read,
                            [this, &worker](const asio::error_code& cancelled) {
                              if (!cancelled && worker.alive) OnExit(worker);
                            });
    return absl::OkStatus();
  }

  void ArmKill(Instant when) {
    if (when >= kill_at) return;
    kill_at = when;
    kill_timer.expires_at(when);
    kill_timer.async_wait([this](const asio::error_code& error) {
      if (error) return;
      KillAll();
      Stopped();
    });
  }

  void KillAll() {
    const Instant deadline = MonotonicClock().Now() + kKillDeadline;
    stopping = true;
    stalls.reset();
    for (const Worker& worker : workers) {
      if (worker.alive) worker.process.SignalGroup(SIGKILL);
    }
    for (Worker& worker : workers) {
      if (worker.alive && ReadableBy(worker.process.pidfd(), deadline)) {
        const pid_t pid = worker.process.pid();
        TellEnd(worker, pid, worker.process.Reap());
        worker.alive = false;
        worker.exit.reset();
        relay.Drain(worker.local_rank);
      }
    }
    const std::vector<pid_t> stuck = AlivePids();
    for (const ProcessEntry& process :
         KillAndReapDescendants(MonotonicClock(), deadline, stuck).stuck) {
      LogWarning(absl::StrCat("cannot end ", process.ToString(), "; going on without it"));
    }
    for (const pid_t pid : stuck) {
      LogWarning(absl::StrCat("cannot end worker ", pid,
                              ": it is stuck in the kernel; going on without it"));
    }
    num_alive = 0;
  }

  void Stopped() {
    if (std::exchange(stopped, true)) return;
    kill_timer.cancel();
    stuck_timer.cancel();
    watchdog.reset();
    for (const Worker& worker : workers) relay.Close(worker.local_rank);
    asio::post(loop, events.on_stopped);  // It may destroy us.
  }
};

absl::StatusOr<std::unique_ptr<WorkerGroup>> WorkerGroup::Start(
    asio::io_context& loop, const Assignment& assignment, const WorkerSpec& spec, NodeFacts facts,
    const JobLogs& logs, OutputRelay& relay, Events events) {
  auto state = std::make_unique<State>(loop, assignment, relay, std::move(events));
  std::unique_ptr<WorkerGroup> group(new WorkerGroup(std::move(state)));
  State& s = *group->state_;
  s.workers.reserve(spec.nproc);  // Watch keeps references.
  RoundLogs round_logs(logs, assignment, spec.role, spec.nproc);
  std::set<std::string> warnings;  // What one worker has said, the next need not repeat.
  HLAUNCH_RETURN_IF_ERROR(s.StartWatchdog(spec, &facts));
  HLAUNCH_RETURN_IF_ERROR(s.StartStallWatch(spec, logs, round_logs));
  for (int local_rank = 0; local_rank < spec.nproc; ++local_rank) {
    WorkerRoutes routes = round_logs.Routes(local_rank);
    const std::string log_file = routes.err.file ? routes.err.file->path() : "";
    HLAUNCH_ASSIGN_OR_RETURN(const WorkerOutput output, relay.Open(local_rank, std::move(routes)));
    facts.error_file = round_logs.ErrorFile(local_rank);
    facts.log_dir = round_logs.WorkerDirectory(local_rank);
    if (s.stalls) facts.heartbeat = s.stalls->address(local_rank);
    Command command;
    command.argv = WorkerArgv(spec, local_rank);
    command.env = WorkerEnv(assignment, local_rank, spec, facts);
    command.stdin_fd = spec.stdin_to_rank0 && local_rank == 0 ? STDIN_FILENO : -1;
    command.stdout_fd = output.out.get();
    command.stderr_fd = output.err.get();
    command.descriptor_limit = spec.descriptor_limit;
    if (static_cast<size_t>(local_rank) < spec.bindings.size()) {
      command.cpus = spec.bindings[local_rank].cpus;
      command.memory_node = spec.bindings[local_rank].memory_node;
    }
    HLAUNCH_ASSIGN_OR_RETURN(Process process, Process::Spawn(command));
    if (!process.warning().empty() && warnings.insert(process.warning()).second) {
      LogWarning(absl::StrCat("local rank ", local_rank, ": ", process.warning()));
    }
    s.workers.push_back(
        {std::move(process), local_rank, facts.error_file, log_file, nullptr, true, "", false, {}});
    ++s.num_alive;
    if (s.stalls) s.stalls->Started(local_rank, s.workers.back().process.pid());
    s.TellStart(s.workers.back());
    HLAUNCH_RETURN_IF_ERROR(s.Watch(s.workers.back()));
  }
  return group;
}

WorkerGroup::WorkerGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}

WorkerGroup::~WorkerGroup() {
  if (std::exchange(state_->stopped, true)) return;
  state_->KillAll();
  for (const Worker& worker : state_->workers) state_->relay.Close(worker.local_rank);
}

void WorkerGroup::Stop(int signal, Duration grace) {
  State& s = *state_;
  if (s.stopped) return;
  s.stopping = true;
  s.stalls.reset();
  Forward(signal);
  // What workers left to us.
  if (HasChildren()) SignalDescendants(::getpid(), signal, s.AlivePids());
  s.ArmKill(MonotonicClock().Now() + (signal == SIGKILL ? Duration::zero() : grace));
  asio::post(s.loop, [&s, alive = std::weak_ptr<bool>(s.life)] {
    if (!alive.expired()) s.CheckStopped();
  });
}

void WorkerGroup::Forward(int signal) {
  for (const Worker& worker : state_->workers) {
    if (worker.alive) worker.process.SignalGroup(signal);
  }
}

void WorkerGroup::Spare(pid_t pid) { state_->spared = pid; }

void WorkerGroup::ReapOrphans() {
  hlaunch::ReapOrphans(state_->Owned());
  state_->CheckStopped();
}

std::vector<std::string> WorkerGroup::Leftovers() const {
  std::vector<std::string> names;
  if (!HasChildren()) return names;
  for (const ProcessEntry& entry : Descendants(::getpid(), state_->Owned())) {
    names.push_back(absl::StrCat(entry.command, "[", entry.pid, "]"));
  }
  return names;
}

}  // namespace hlaunch
