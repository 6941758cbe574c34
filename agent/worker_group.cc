// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_group.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/mpi/pmi/pmi_server.h"
#include "agent/mpi/serve/pmix_server.h"
#include "agent/mpi/serve/shm_remains.h"
#include "agent/spawned_workers.h"
#include "agent/watch/hang/hang_watch.h"
#include "agent/watch/query/rank_answers.h"
#include "agent/watch/stall/kernel_wait.h"
#include "agent/watch/stall/last_words.h"
#include "agent/watch/stall/log_watch.h"
#include "agent/watch/stall/stall_watch.h"
#include "agent/watch/stall/watchdog.h"
#include "agent/worker_process.h"
#include "agent/workers/failure/unserved_mpi.h"
#include "agent/workers/fork_server/fork_servers.h"
#include "agent/workers/input/stdin_copies.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/stand_in_name.h"
#include "agent/workers/worker/memory_kills.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/ids.h"
#include "rendezvous/round/cause/first_cause.h"

namespace hlaunch {
namespace {

// How long a killed process may take to vanish before it is reported instead of awaited.
constexpr Duration kKillDeadline = std::chrono::seconds(5);
// How long processes in sessions of their own may live on once no worker lives.
constexpr Duration kOwnSessionGrace = std::chrono::seconds(2);
// At most this many workers start at once; more is no faster on any machine tried.
constexpr size_t kStartedAtOnce = 8;
constexpr Duration kStandInLook = std::chrono::milliseconds(50);
constexpr Duration kOrphanLook = std::chrono::milliseconds(500);

// A worker that has not reached its program yet.
struct StartingWorker {
  std::optional<Process> forked;
  std::optional<StartingProcess> process;  // Unless it is forked.
  WorkerOutput output;                     // Must stay open until the program runs.
  int local_rank;
  std::string error_file;
  std::string log_file;
  UniqueFd pmi;  // Must stay open as well.
  UniqueFd in;   // Must stay open as well.
  bool is_stand_in = false;
};

}  // namespace

struct WorkerGroup::State {
  State(asio::io_context& the_loop, const Assignment& the_assignment, OutputRelay& the_relay,
        Events the_events)
      : assignment(the_assignment),
        relay(the_relay),
        events(std::move(the_events)),
        loop(the_loop),
        last_words(
            the_loop, [this] { return GivenUp(); },
            [this](std::vector<int> given_up) {
              if (events.on_given_up && !stopping) events.on_given_up(std::move(given_up));
            }),
        kill_timer(the_loop),
        stand_in_timer(the_loop),
        orphan_timer(the_loop) {}

  const Assignment assignment;
  OutputRelay& relay;
  const Events events;
  const MemoryKills kills_before = CountMemoryKills();
  asio::io_context& loop;
  LastWords last_words;
  asio::steady_timer kill_timer;
  Instant kill_at = Instant::max();
  std::unique_ptr<Watchdog> watchdog;             // Set if the user wants one.
  std::unique_ptr<StallWatch> stalls;             // Set if the user wants one.
  std::unique_ptr<HangWatch> hangs;               // Set unless the user wants none.
  std::unique_ptr<LogWatch> log_watch;            // Set if the user has rules for lines.
  std::unique_ptr<KernelWaitWatch> kernel_waits;  // Set if the user has a limit for them.
  std::optional<RankAnswers> answers;             // Set until the workers are being stopped.
  std::unique_ptr<PmiServer> pmi;                 // Set if workers may be MPI programs.
  std::unique_ptr<PmixServer> pmix;               // Set if workers may use Open MPI.
  std::optional<SpawnedWorkers> spawned;          // Set if either may be the case.
  StdinCopies* stdin_copies = nullptr;            // Set if all workers read stdin.
  ForkServers* fork_servers = nullptr;            // Set if there may be some.
  const int64_t began_ms = WallMillis();
  std::vector<pid_t> all_pids;                     // By local rank, including reaped workers.
  bool cut_short = false;                          // Not all workers ended with 0 by themselves.
  bool unserved_told = false;                      // A rank's program found no PMIx server.
  bool pmix_used = false;                          // A worker used the server, which is gone.
  std::map<int, asio::steady_timer> stuck_timers;  // By local rank: for a killed one to end.
  asio::steady_timer stand_in_timer;
  asio::steady_timer orphan_timer;  // For the next look at what the workers left.
  std::vector<int> stand_ins;       // Local ranks whose worker process is not known yet.
  std::vector<WorkerProcess> workers;
  std::set<std::string> warnings;  // Warnings of workers that were logged already.
  pid_t spared = 0;                // A child that is not of the group.
  size_t num_alive = 0;
  bool failed = false;
  bool stopping = false;
  bool stopped = false;
  int stop_signal = 0;                           // The last one that Stop sent.
  std::set<std::pair<pid_t, uint64_t>> hurried;  // Orphans that got SIGTERM, by start time.
  std::optional<int64_t> step;                   // The highest that a worker told.
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with the group.

  std::vector<pid_t> AlivePids() const {
    std::vector<pid_t> pids;
    for (const WorkerProcess& worker : workers) {
      if (worker.alive()) pids.push_back(worker.pid());
    }
    if (spawned) {
      const std::vector<pid_t> others = spawned->AlivePids();
      pids.insert(pids.end(), others.begin(), others.end());
    }
    return pids;
  }

  bool AnyAlive() const { return num_alive > 0 || (spawned && spawned->alive() > 0); }

  std::vector<int> GivenUp() const {
    std::vector<int> local_ranks;
    for (const WorkerProcess& worker : workers) {
      const bool ends = worker.alive() && HasGivenUp(relay.LongTail(worker.local_rank()));
      if (ends) local_ranks.push_back(worker.local_rank());
    }
    return local_ranks;
  }

  // Child processes that are not of the group and outlive it.
  std::vector<pid_t> Others() const {
    return fork_servers == nullptr ? std::vector<pid_t>() : fork_servers->pids();
  }

  // Child processes that are not reaped as orphans.
  std::vector<pid_t> Owned() const {
    std::vector<pid_t> pids = AlivePids();
    const std::vector<pid_t> servers = Others();
    pids.insert(pids.end(), servers.begin(), servers.end());
    if (spared != 0) pids.push_back(spared);
    if (pmix && pmix->pid() != 0) pids.push_back(pmix->pid());
    if (stalls && stalls->tool() != 0) pids.push_back(stalls->tool());
    if (hangs) {
      const std::vector<pid_t> tools = hangs->tools();
      pids.insert(pids.end(), tools.begin(), tools.end());
    }
    if (answers) {
      const std::vector<pid_t> tools = answers->tools();
      pids.insert(pids.end(), tools.begin(), tools.end());
    }
    return pids;
  }

  void OnExit(WorkerProcess& worker) {
    const pid_t pid = worker.pid();
    const ExitStatus exit = worker.Reap();
    --num_alive;
    if (stalls) stalls->Ended(worker.local_rank());
    if (log_watch) log_watch->Ended(worker.local_rank());
    if (kernel_waits) kernel_waits->Ended(worker.local_rank());
    const bool succeeded = exit.exit_code == 0 && exit.signal == 0;
    if (hangs) hangs->Ended(worker.local_rank(), succeeded);
    if (answers) answers->Ended(worker.local_rank(), succeeded);
    TellEnd(worker, pid, exit);
    hlaunch::ReapOrphans(Owned());
    relay.Drain(worker.local_rank());
    if (!succeeded) cut_short = true;
    if (succeeded && !stopping) TellUnservedMpi(worker);
    if (pmi && succeeded && !stopping) pmi->Exited(worker.local_rank());
    if (pmix && succeeded && !stopping) pmix->Exited(0, worker.local_rank());
    if (pmix && !succeeded && !stopping) pmix->WorkerFailed();
    if (stopping) {
      CheckStopped();
    } else if (exit.exit_code != 0 || exit.signal != 0) {
      TellFailure(worker, pid, exit);
    } else if (!AnyAlive() && !failed) {
      events.on_success();
    } else if (num_alive == 0 && !failed) {
      LogInfo(absl::StrCat("all ranks here have ended; the job waits for ", spawned->alive(),
                           " processes that they have spawned"));
    }
  }

  // A wrapper may exit with 0 though its MPI program failed: the job goes on as the wrapper says,
  // but not in silence.
  void TellUnservedMpi(const WorkerProcess& worker) {
    if (pmix || unserved_told || !SaysUnservedMpi(relay.LongTail(worker.local_rank()))) return;
    unserved_told = true;
    LogWarning(absl::StrCat(
        "rank ", RankOf(worker),
        " exited with 0, but a program of it failed in MPI_Init: ", kAdviceOnUnservedMpi));
  }

  void OnSpawnedExit() {
    hlaunch::ReapOrphans(Owned());
    if (stopping) {
      CheckStopped();
    } else if (!AnyAlive() && !failed) {
      events.on_success();
    }
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

  void TellStart(const WorkerProcess& worker) const {
    if (!events.on_event) return;
    events.on_event(
        WorkerStarted{assignment.round, RankOf(worker), worker.local_rank(), worker.pid()});
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
    if (KindOf(failure) == CauseKind::kTimedOut) TellStandstill();
    events.on_failure(failure);
  }

  // The program numbers of the workers, by local rank; empty if there is one program.
  std::vector<int> ProgramNumbers(const WorkerSpec& spec) const {
    std::vector<int> numbers;
    for (int i = 0; !spec.others.empty() && i < spec.nproc; ++i) {
      numbers.push_back(
          ProgramNumber(spec.others, assignment.first_rank + i, assignment.world_size));
    }
    return numbers;
  }

  // Starts the server for MPI programs of this round's workers; does nothing unless they may be
  // such.
  absl::Status StartPmi(const WorkerSpec& spec, const NodeFacts& facts, const JobLogs& logs) {
    if (spec.mpi == MpiOffer::kNone) return absl::OkStatus();
    if (pmix) WatchPmix();
    spawned.emplace(loop, SpawnedWorkers::Base{assignment, spec, facts, logs, kills_before}, relay,
                    SpawnedWorkers::Events{
                        [this](WorkerFailure failure) { OnSpawnedFailure(std::move(failure)); },
                        [this] { OnSpawnedExit(); },
                        [this](int world, int rank) {
                          if (pmix) pmix->Exited(world, rank);
                        }});
    if (!OffersPmi(spec.mpi)) return absl::OkStatus();
    PmiPlace place{absl::StrCat("hl-", NewJobId(), "-r", assignment.round),
                   assignment.first_rank,
                   spec.nproc,
                   assignment.world_size,
                   assignment.node_rank,
                   assignment.num_nodes,
                   spec.mpi != MpiOffer::kMaybe,
                   ProgramNumbers(spec)};
    place.any_user = spec.any_user;
    const bool proxy = facts.store_proxy_port != 0;
    const uint16_t store = proxy ? facts.store_proxy_port : assignment.master_port;
    HLAUNCH_ASSIGN_OR_RETURN(
        pmi, PmiServer::Open(loop, place, spec.mpi != MpiOffer::kDescriptor,
                             proxy ? "127.0.0.1" : assignment.master_addr,
                             assignment.worker_store ? uint16_t{0} : store,
                             {[this](const MpiFailure& failure) { FailByMpi(failure); },
                              [this](int local_rank, const SpawnRequest& request) {
                                return Spawn(local_rank, request);
                              }}));
    return absl::OkStatus();
  }

  void WatchPmix() {
    PmixServer::Events on;
    on.on_failure = [this](int world, const MpiFailure& failure) {
      if (world == 0) return FailByMpi(failure);
      spawned->FailByMpi(world, failure);
    };
    on.spawn = [this](int world, int rank, const SpawnRequest& request) {
      if (world == 0) return Spawn(rank, request);
      return spawned->Start(spawned->ParentOf(world, rank), request);
    };
    pmix->Watch(std::move(on));
  }

  absl::Status Spawn(int local_rank, const SpawnRequest& request) {
    if (stopping) return absl::UnavailableError("the job is being stopped");
    return spawned->Start({local_rank, absl::StrCat("rank ", assignment.first_rank + local_rank)},
                          request);
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
    EndPmix();
    if (!HasChildren(Others())) return Stopped();
    if (cut_short) HurryOrphans();
  }

  // Processes in a worker's session have the rest of the grace: the trainer may be an orphan of a
  // wrapper script that ended first. But a shell's background processes ignore SIGINT, and nothing
  // has reached processes in sessions of their own.
  void HurryOrphans() {
    std::vector<ProcessEntry> deaf, others;
    bool trainer_may_live = false;
    for (ProcessEntry& entry : Descendants(::getpid(), Others())) {
      if (entry.state == 'Z') continue;
      const bool of_worker =
          std::find(all_pids.begin(), all_pids.end(), entry.session) != all_pids.end();
      const bool is_deaf = of_worker && stop_signal != SIGTERM && IgnoresSignal(entry, stop_signal);
      trainer_may_live = trainer_may_live || (of_worker && !is_deaf);
      (is_deaf ? deaf : others).push_back(std::move(entry));
    }
    if (deaf.empty() && others.empty()) return;  // They are about to be reaped, or unknown.
    if (!trainer_may_live) {
      deaf.insert(deaf.end(), others.begin(), others.end());
      ArmKill(MonotonicClock().Now() + kOwnSessionGrace);
    }
    for (const ProcessEntry& entry : deaf) {
      if (hurried.emplace(entry.pid, entry.start_time).second) SignalProcess(entry, SIGTERM);
    }
    // A process that a shell has just made does not ignore the signal yet.
    orphan_timer.expires_after(kOrphanLook);
    orphan_timer.async_wait(
        [this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
          if (!error && !alive.expired()) CheckStopped();
        });
  }

  // Ends the PMIx server. Its process is the last child, and no worker needs it any more.
  void EndPmix() {
    if (!pmix) return;
    pmix_used = pmix_used || pmix->used();
    pmix.reset();
  }

  // Starts the watchdog for this round's workers; does nothing unless the user wants one.
  absl::Status StartWatchdog(const WorkerSpec& spec, NodeFacts* facts) {
    if (!Watchdog::IsWanted(spec)) return absl::OkStatus();
    HLAUNCH_ASSIGN_OR_RETURN(
        watchdog, Watchdog::Open(loop, spec, [this](pid_t child, std::string reason) {
          for (WorkerProcess& worker : workers) {
            if (!worker.alive() || worker.pid() != child) continue;
            worker.Blame({.local_rank = worker.local_rank(), .reason = std::move(reason)});
            break;
          }
        }));
    facts->timer_file = watchdog->path();
    return absl::OkStatus();
  }

  bool HearsBoundaries(const WorkerSpec& spec) const {
    return spec.hears_boundaries && assignment.first_rank == 0;
  }

  // Starts the watch of heartbeats, and of the good moments that rank 0 tells.
  absl::Status StartStallWatch(const WorkerSpec& spec, const JobLogs& logs,
                               const RoundLogs& round_logs) {
    if (spec.heartbeat_timeout == Duration::zero() && !HearsBoundaries(spec)) {
      return absl::OkStatus();
    }
    StackFiles files{{}, logs.losses};
    for (int i = 0; i < spec.nproc; ++i) files.paths.push_back(round_logs.StacksFile(i));
    HLAUNCH_ASSIGN_OR_RETURN(
        stalls, StallWatch::Open(loop, spec, assignment.first_rank, std::move(files),
                                 {[this, action = spec.stall_action](const StalledWorker& stalled) {
                                    Punish(stalled, action);
                                  },
                                  [this](int64_t told) { TakeStep(told); },
                                  [this](int local_rank) {
                                    const bool of_rank_0 = assignment.first_rank + local_rank == 0;
                                    if (of_rank_0 && !stopping) events.on_boundary();
                                  }}));
    return absl::OkStatus();
  }

  // Starts the watch by the rules for lines.
  void StartLogWatch(const WorkerSpec& spec) {
    LogWatch::Events on;
    on.on_failure = [this](int local_rank, std::string reason) {
      Punish(
          {.local_rank = local_rank, .kind = FailureKind::kWroteLine, .reason = std::move(reason)},
          StallAction::kFail);
    };
    on.on_silence = [this, action = spec.stall_action](int local_rank, std::string reason) {
      LogWarning(absl::StrCat("rank ", assignment.first_rank + local_rank, " ", reason));
      TellStandstill();
      Punish({.local_rank = local_rank, .kind = FailureKind::kSilent, .reason = std::move(reason)},
             action);
    };
    on.on_value = [this](Rank rank, const std::string& name, double value) {
      if (events.on_event) events.on_event(LogValue{assignment.round, rank, name, value});
    };
    on.on_step = [this](int64_t told) { TakeStep(told); };
    log_watch = LogWatch::Open(loop, spec, assignment.first_rank, std::move(on));
  }

  // Starts the watch of workers that are stuck in the kernel. A new worker would hit what holds
  // this one.
  void StartKernelWaitWatch(const WorkerSpec& spec) {
    kernel_waits = KernelWaitWatch::Open(loop, spec, [this](int local_rank, std::string reason) {
      Punish({.local_rank = local_rank, .reason = std::move(reason), .no_restart = true},
             StallAction::kFail);
    });
  }

  absl::StatusOr<StartingWorker> Begin(const WorkerSpec& spec, NodeFacts& facts,
                                       RoundLogs& round_logs, int local_rank) {
    WorkerRoutes routes = round_logs.Routes(local_rank);
    if (static_cast<size_t>(local_rank) < spec.consoles.size()) {
      const ConsoleStreams& console = spec.consoles[static_cast<size_t>(local_rank)];
      routes.out.console_fd = console.out;
      routes.err.console_fd = console.err;
    }
    std::string log_file = routes.err.file ? routes.err.file->path() : "";
    if (log_watch) {
      routes.out.reader = log_watch->Reader(local_rank);
      routes.err.reader = log_watch->Reader(local_rank);
    }
    routes.err.reader = last_words.Read(std::move(routes.err.reader));
    HLAUNCH_ASSIGN_OR_RETURN(WorkerOutput output, relay.Open(local_rank, std::move(routes)));
    PmiLink link;
    if (pmi) {
      HLAUNCH_ASSIGN_OR_RETURN(link, pmi->Link(local_rank));
      facts.pmi_fd = link.fd.valid() ? absl::StrCat(kPmiDescriptor) : "";
      facts.pmi_port = link.port != 0 ? absl::StrCat("127.0.0.1:", link.port) : "";
      facts.pmi_id = link.port != 0 ? absl::StrCat(link.id) : "";
    }
    if (pmix) facts.pmix_env = pmix->Environment(local_rank);
    facts.error_file = round_logs.ErrorFile(local_rank);
    facts.log_dir = round_logs.WorkerDirectory(local_rank);
    if (spec.heartbeat_timeout > Duration::zero()) facts.heartbeat = stalls->address(local_rank);
    if (HearsBoundaries(spec) && local_rank == 0) facts.boundary = stalls->address(local_rank);
    Command command = WorkerCommand(spec, assignment, local_rank, facts, output, link.fd.get());
    UniqueFd in;
    if (stdin_copies != nullptr) {
      HLAUNCH_ASSIGN_OR_RETURN(in, stdin_copies->Link());
      command.stdin_fd = in.get();
    }
    std::optional<StartingProcess> process;
    std::optional<Process> forked;
    if (fork_servers != nullptr) forked = fork_servers->Fork(command);
    if (!forked) {
      HLAUNCH_ASSIGN_OR_RETURN(StartingProcess normal, Process::Start(std::move(command)));
      process.emplace(std::move(normal));
    }
    const bool is_stand_in = static_cast<size_t>(local_rank) < spec.stand_ins.size() &&
                             !spec.stand_ins[static_cast<size_t>(local_rank)].empty();
    return StartingWorker{std::move(forked),  std::move(process), std::move(output),
                          local_rank,         facts.error_file,   std::move(log_file),
                          std::move(link.fd), std::move(in),      is_stand_in};
  }

  static absl::StatusOr<Process> Begun(StartingWorker& starting) {
    if (starting.forked) return *std::move(starting.forked);
    return starting.process->Await();
  }

  absl::Status Await(StartingWorker& starting) {
    HLAUNCH_ASSIGN_OR_RETURN(Process process, Begun(starting));
    const int local_rank = starting.local_rank;
    if (!process.warning().empty() && warnings.insert(process.warning()).second) {
      LogWarning(absl::StrCat("local rank ", local_rank, ": ", process.warning()));
    }
    WorkerProcess& worker = workers.emplace_back(std::move(process), local_rank,
                                                 starting.error_file, starting.log_file);
    ++num_alive;
    all_pids.push_back(worker.pid());
    if (starting.is_stand_in) {
      stand_ins.push_back(local_rank);
      AwaitWorkersElsewhere();
    } else {
      TellWatchers(local_rank, worker.pid());
    }
    TellStart(worker);
    return worker.Watch(loop, [this, &worker] { OnExit(worker); });
  }

  void TellWatchers(int local_rank, pid_t pid) {
    if (stalls) stalls->Started(local_rank, pid);
    if (hangs) hangs->Started(local_rank, pid);
    if (kernel_waits) kernel_waits->Started(local_rank, pid);
    if (answers) answers->Started(local_rank, pid);
  }

  // The processes of workers that run elsewhere become known a moment after their stand-ins.
  void AwaitWorkersElsewhere() {
    stand_in_timer.expires_after(kStandInLook);
    stand_in_timer.async_wait([this](const asio::error_code& error) {
      if (error) return;
      std::vector<int> unknown;
      for (const int local_rank : std::exchange(stand_ins, {})) {
        const WorkerProcess& worker = workers[static_cast<size_t>(local_rank)];
        const auto process = worker.alive() ? ReadProcess(worker.pid()) : std::nullopt;
        const pid_t pid = process ? WorkerInName(process->command) : 0;
        if (pid != 0) TellWatchers(local_rank, pid);
        if (pid == 0 && worker.alive()) unknown.push_back(local_rank);
      }
      stand_ins = std::move(unknown);
      if (!stand_ins.empty() && !stopping) AwaitWorkersElsewhere();
    });
  }

  void StartHangWatch(const WorkerSpec& spec, const NodeFacts& facts) {
    hangs = HangWatch::Open(loop, assignment, spec, facts,
                            [this, action = spec.hang_action](const HangCulprit& culprit) {
                              Punish({.local_rank = culprit.local_rank,
                                      .kind = FailureKind::kHangs,
                                      .reason = culprit.reason},
                                     action);
                            });
  }

  void TakeStep(int64_t told) { step = std::max(step.value_or(told), told); }

  // Reports the stall, and ends the worker if that is the action.
  void Punish(const StalledWorker& stalled, StallAction action) {
    TellStall(stalled);
    if (action == StallAction::kFail) EndStalled(stalled);
  }

  // Logs which rank holds up the job at this moment, if that is known and was not reported before.
  void TellStandstill() const {
    if (!hangs || hangs->standstill().empty()) return;
    LogWarning(absl::StrCat("before that, ", hangs->standstill()));
  }

  void TellStall(const StalledWorker& stalled) const {
    const WorkerProcess& worker = workers[static_cast<size_t>(stalled.local_rank)];
    if (!events.on_event || !worker.alive()) return;
    events.on_event(WorkerStalled{assignment.round, RankOf(worker), worker.local_rank(),
                                  worker.pid(), stalled.reason});
  }

  // Kills with SIGKILL, because a stalled worker does not react to SIGTERM.
  void EndStalled(const StalledWorker& stalled) {
    WorkerProcess& worker = workers[static_cast<size_t>(stalled.local_rank)];
    if (!worker.alive() || stopping) return;
    worker.Blame(stalled);
    worker.SignalGroup(SIGKILL);
    const auto [timer, is_first] = stuck_timers.try_emplace(stalled.local_rank, loop);
    if (!is_first) return;
    timer->second.expires_after(kKillDeadline);
    timer->second.async_wait([this, &worker](const asio::error_code& error) {
      if (error || !worker.alive() || stopping) return;  // SIGKILL did not end it: a failure too.
      TellFailure(worker, worker.pid(), {.signal = SIGKILL});
    });
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
    hangs.reset();
    log_watch.reset();
    kernel_waits.reset();
    answers.reset();
    for (const WorkerProcess& worker : workers) {
      if (worker.alive()) worker.SignalGroup(SIGKILL);
    }
    if (spawned) spawned->SignalGroups(SIGKILL);
    for (WorkerProcess& worker : workers) {
      if (worker.alive() && worker.AwaitExit(deadline)) {
        const pid_t pid = worker.pid();
        TellEnd(worker, pid, worker.Reap());
        relay.Drain(worker.local_rank());
      }
    }
    if (spawned) spawned->AwaitExits(deadline);
    EndPmix();
    const std::vector<pid_t> stuck = AlivePids();
    std::vector<pid_t> spare = Others();
    spare.insert(spare.end(), stuck.begin(), stuck.end());
    for (const ProcessEntry& process :
         KillAndReapDescendants(MonotonicClock(), deadline, spare).stuck) {
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
    stuck_timers.clear();
    stand_in_timer.cancel();
    orphan_timer.cancel();
    watchdog.reset();
    EndPmix();
    // Open MPI 5 leaves its shared memory to its launcher, however the program ended.
    if (pmix_used || (pmi && pmi->used() && cut_short)) RemoveMpiRemains(began_ms);
    pmi.reset();
    spawned.reset();
    for (const WorkerProcess& worker : workers) relay.Close(worker.local_rank());
    asio::post(loop, events.on_stopped);  // This may destroy the object.
  }
};

absl::StatusOr<std::unique_ptr<WorkerGroup>> WorkerGroup::Start(
    asio::io_context& loop, const Assignment& assignment, const WorkerSpec& spec, NodeFacts facts,
    const JobLogs& logs, OutputRelay& relay, Events events, std::unique_ptr<PmixServer> pmix,
    StdinCopies* stdin_copies, ForkServers* fork_servers) {
  auto state = std::make_unique<State>(loop, assignment, relay, std::move(events));
  state->pmix = std::move(pmix);
  state->stdin_copies = stdin_copies;
  state->fork_servers = fork_servers;
  std::unique_ptr<WorkerGroup> group(new WorkerGroup(std::move(state)));
  State& s = *group->state_;
  s.workers.reserve(spec.nproc);  // Watch keeps references to the workers.
  RoundLogs round_logs(logs, assignment, spec.role, spec.nproc);
  HLAUNCH_RETURN_IF_ERROR(s.StartWatchdog(spec, &facts));
  HLAUNCH_RETURN_IF_ERROR(s.StartStallWatch(spec, logs, round_logs));
  HLAUNCH_RETURN_IF_ERROR(s.StartPmi(spec, facts, logs));
  s.StartLogWatch(spec);
  s.StartKernelWaitWatch(spec);
  std::deque<StartingWorker> starting;
  const auto await_first = [&] {
    const absl::Status awaited = s.Await(starting.front());
    starting.pop_front();
    return awaited;
  };
  s.StartHangWatch(spec, facts);
  s.answers.emplace(loop, PlanLook(assignment, spec, facts));
  for (int local_rank = 0; local_rank < spec.nproc; ++local_rank) {
    if (starting.size() == kStartedAtOnce) HLAUNCH_RETURN_IF_ERROR(await_first());
    HLAUNCH_ASSIGN_OR_RETURN(StartingWorker next, s.Begin(spec, facts, round_logs, local_rank));
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
  if (s.pmi) s.pmi->Hush();
  if (s.pmix) s.pmix->Hush();
  if (s.spawned) s.spawned->Hush();
  s.stalls.reset();
  s.hangs.reset();
  s.log_watch.reset();
  s.kernel_waits.reset();
  s.answers.reset();
  Forward(signal);
  // Orphans of workers.
  const std::vector<pid_t> others = s.Owned();
  if (HasChildren(others)) SignalDescendants(::getpid(), signal, others);
  s.ArmKill(MonotonicClock().Now() + (signal == SIGKILL ? Duration::zero() : grace));
  asio::post(s.loop, [&s, alive = std::weak_ptr<bool>(s.life)] {
    if (!alive.expired()) s.CheckStopped();
  });
}

void WorkerGroup::Forward(int signal) {
  for (const WorkerProcess& worker : state_->workers) {
    if (worker.alive()) worker.SignalGroup(signal);
  }
  if (state_->spawned) state_->spawned->SignalGroups(signal);
}

void WorkerGroup::Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done) {
  if (state_->answers) return state_->answers->Answer(question, std::move(done));
  done({question.number, "", "is stopping its workers"});
}

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
