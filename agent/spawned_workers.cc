// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/spawned_workers.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/mpi/pmi/pmi_server.h"
#include "agent/worker_process.h"
#include "agent/workers/process/process.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

constexpr int kMaxAlive = 4096;  // Of one node.

// True for variables of the job's master store. Spawned processes must not use it: its keys belong
// to the job's own ranks.
bool IsOfTheJobsStore(absl::string_view entry) {
  for (const char* name : {kEnvMasterAddr, kEnvMasterPort, kEnvUseAgentStore}) {
    if (absl::StartsWith(entry, absl::StrCat(name, "="))) return true;
  }
  return false;
}

// Sets NAME=value in an environment.
void SetVariable(const std::string& entry, std::vector<std::string>* environment) {
  const std::string name = entry.substr(0, entry.find('=') + 1);
  environment->erase(
      std::remove_if(environment->begin(), environment->end(),
                     [&name](const std::string& other) { return absl::StartsWith(other, name); }),
      environment->end());
  environment->push_back(entry);
}

bool IsThisHost(absl::string_view name, absl::string_view host) {
  return name == "localhost" || name == host || absl::StartsWith(host, absl::StrCat(name, ".")) ||
         absl::StartsWith(name, absl::StrCat(host, "."));
}

// Makes a round of one node whose workers are those of `request`.
Assignment AssignmentOf(Assignment round, int ranks) {
  round.first_rank = 0;
  round.world_size = ranks;
  round.node_rank = 0;
  round.num_nodes = 1;
  round.coordinator_port = 0;
  round.comm_secret.clear();
  return round;
}

WorkerSpec SpecOf(WorkerSpec spec, const SpawnRequest& request) {
  spec.argv.clear();
  spec.others = request.programs;
  spec.nproc = RanksOf(request);
  spec.mpi = request.pmix_world == 0 ? MpiOffer::kPort : MpiOffer::kPmix;
  spec.stdin_to = StdinTo::kNobody;
  spec.virtual_local_rank = false;
  spec.stand_ins.clear();
  spec.consoles.clear();
  spec.own_cpus = false;
  spec.device_env.clear();
  spec.bindings.clear();
  return spec;
}

NodeFacts FactsOf(NodeFacts facts) {
  facts.timer_file.clear();
  facts.heartbeat.clear();
  facts.boundary.clear();
  facts.tap.clear();
  facts.tap_packages.clear();
  facts.store_proxy_port = 0;
  facts.pmi_fd.clear();
  facts.pmix_env.clear();
  return facts;
}

// The files of a spawn go to a folder of its own, and the lines of its ranks get another prefix.
JobLogs LogsOf(JobLogs logs, int number) {
  if (!logs.directory.empty() && RestoreDirectory(logs)) {
    absl::StrAppend(&logs.directory, "/spawn_", number);
    constexpr mode_t kMode = 0777;  // The umask applies; only the owner enters the folder above.
    ::mkdir(logs.directory.c_str(), kMode);
    logs.held = std::make_shared<UniqueFd>();
    HoldDirectory(logs);
  }
  if (logs.spec.prefix_template.empty()) {
    logs.spec.prefix_template = absl::StrCat("[spawn ", number, " rank ${rank}] ");
  }
  return logs;
}

}  // namespace

// One spawn.
struct SpawnedWorkers::World {
  int number = 0;  // Counted from 1 on this node in this round.
  SpawnParent parent;
  std::string program;  // For people.
  Assignment assignment;
  WorkerSpec spec;
  NodeFacts facts;
  int first_stream = 0;  // The relay's first number for its workers.
  int pmix_world = 0;    // 0 if PMI-1 serves it.
  std::vector<std::vector<std::string>> environments = {};  // By rank, if PMIx serves it.
  std::unique_ptr<PmiServer> pmi = nullptr;
  std::deque<WorkerProcess> workers = {};  // By rank; they do not move once watched.
  std::vector<pid_t> pids = {};            // Of all workers, reaped ones too.
};

struct SpawnedWorkers::State {
  State(asio::io_context& the_loop, Base the_base, OutputRelay& the_relay, Events the_events)
      : loop(the_loop),
        base(std::move(the_base)),
        relay(the_relay),
        events(std::move(the_events)) {}

  absl::Status Serve(World& world, const SpawnRequest& request) {
    PmiPlace place{absl::StrCat("hl-", NewJobId(), "-s", world.number),
                   0,
                   world.spec.nproc,
                   world.spec.nproc,
                   0,
                   1,
                   true};
    for (int rank = 0; rank < world.spec.nproc; ++rank) {
      place.programs.push_back(ProgramNumber(world.spec.others, rank, world.spec.nproc));
    }
    place.given = request.given;
    place.any_user = world.spec.any_user;
    place.name = absl::StrCat("spawn ", world.number);
    PmiServer::Events on;
    on.on_failure = [this, &world](const MpiFailure& failure) { FailByMpi(world, failure); };
    on.spawn = [this, &world](int rank, const SpawnRequest& of_child) {
      return Start({world.parent.local_rank, NameOf(world, rank)}, of_child);
    };
    HLAUNCH_ASSIGN_OR_RETURN(
        world.pmi, PmiServer::Open(loop, std::move(place), /*by_port=*/true, "", 0, std::move(on)));
    return absl::OkStatus();
  }

  absl::Status Begin(World& world, RoundLogs& logs, int rank) {
    WorkerRoutes routes = logs.Routes(rank);
    routes.apart = true;
    std::string log_file = routes.err.file ? routes.err.file->path() : "";
    const int stream = world.first_stream + rank;
    HLAUNCH_ASSIGN_OR_RETURN(const WorkerOutput output, relay.Open(stream, std::move(routes)));
    if (world.pmi) {
      HLAUNCH_ASSIGN_OR_RETURN(const PmiLink link, world.pmi->Link(rank));
      world.facts.pmi_port = absl::StrCat("127.0.0.1:", link.port);
      world.facts.pmi_id = absl::StrCat(link.id);
    } else {
      world.facts.pmix_env = world.environments[static_cast<size_t>(rank)];
    }
    world.facts.error_file = logs.ErrorFile(rank);
    world.facts.log_dir = logs.WorkerDirectory(rank);
    Command command = WorkerCommand(world.spec, world.assignment, rank, world.facts, output);
    command.env.erase(std::remove_if(command.env.begin(), command.env.end(), IsOfTheJobsStore),
                      command.env.end());
    if (world.pmi) command.env.push_back(absl::StrCat(kEnvPmiSpawned, "=1"));
    for (const std::string& given :
         OtherProgramOf(world.spec.others, rank, world.spec.nproc)->environment) {
      SetVariable(given, &command.env);
    }
    HLAUNCH_ASSIGN_OR_RETURN(Process process, Process::Spawn(std::move(command)));
    WorkerProcess& worker = world.workers.emplace_back(std::move(process), stream,
                                                       world.facts.error_file, std::move(log_file));
    world.pids.push_back(worker.pid());
    return worker.Watch(loop, [this, &world, &worker] { OnExit(world, worker); });
  }

  absl::Status Start(const SpawnParent& parent, const SpawnRequest& request) {
    absl::Status started = Check(request);
    if (started.ok()) started = StartChecked(parent, request);
    if (!started.ok()) {
      LogWarning(
          absl::StrCat(parent.name, " cannot spawn ", ProgramOf(request), ": ", started.message()));
    }
    return started;
  }

  static std::string ProgramOf(const SpawnRequest& request) {
    return absl::StrJoin(request.programs.front().argv, " ");
  }

  absl::Status Check(const SpawnRequest& request) const {
    if (hushed) return absl::UnavailableError("the job is being stopped");
    for (const std::string& host : request.hosts) {
      if (IsThisHost(host, base.facts.host)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("processes are spawned on the host of the rank that asks, not on ", host));
    }
    if (RanksOf(request) > kMaxAlive - alive()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", kMaxAlive, " spawned processes on a node"));
    }
    return absl::OkStatus();
  }

  absl::Status StartChecked(const SpawnParent& parent, const SpawnRequest& request) {
    const int number = ++spawns;
    World& world = worlds.emplace_back(
        World{number, parent, ProgramOf(request), AssignmentOf(base.assignment, RanksOf(request)),
              SpecOf(base.spec, request), FactsOf(base.facts), FreeStreams(), request.pmix_world,
              request.environments});
    absl::Status started = StartWorld(world, request);
    if (started.ok()) return started;
    CloseStreams(world);
    worlds.pop_back();  // The started processes are killed; WorkerGroup reaps them.
    return started;
  }

  // The relay's numbers of the job's own workers come first.
  int FreeStreams() const {
    if (worlds.empty()) return base.spec.nproc;
    return worlds.back().first_stream + worlds.back().spec.nproc;
  }

  absl::Status StartWorld(World& world, const SpawnRequest& request) {
    if (world.pmix_world == 0) {
      HLAUNCH_RETURN_IF_ERROR(Serve(world, request));
    } else if (world.environments.size() != static_cast<size_t>(world.spec.nproc)) {
      return absl::InvalidArgumentError("not each rank is told where its server is");
    }
    RoundLogs logs(LogsOf(base.logs, world.number), world.assignment, world.spec.role,
                   world.spec.nproc);
    for (int rank = 0; rank < world.spec.nproc; ++rank) {
      HLAUNCH_RETURN_IF_ERROR(Begin(world, logs, rank));
    }
    LogDebug(absl::StrCat(world.parent.name, " has spawned ", world.spec.nproc, " of ",
                          world.program, ": spawn ", world.number));
    return absl::OkStatus();
  }

  static std::string NameOf(const World& world, int rank) {
    return absl::StrCat("rank ", rank, " of spawn ", world.number);
  }

  void OnExit(World& world, WorkerProcess& worker) {
    const int rank = worker.local_rank() - world.first_stream;
    const pid_t pid = worker.pid();
    const ExitStatus exit = worker.Reap();
    relay.Drain(worker.local_rank());
    const bool succeeded = exit.exit_code == 0 && exit.signal == 0;
    if (succeeded && !hushed && world.pmi) world.pmi->Exited(rank);
    if (succeeded && !hushed && !world.pmi) events.on_success(world.pmix_world, rank);
    if (!succeeded) Tell(world, worker, pid, exit, {});
    asio::post(loop, [this, guard = std::weak_ptr<bool>(life)] {
      if (!guard.expired()) RemoveEnded();
    });
    events.on_exit();  // This may destroy the object.
  }

  void RemoveEnded() {
    worlds.remove_if([this](const World& world) {
      for (const WorkerProcess& worker : world.workers) {
        if (worker.alive()) return false;
      }
      CloseStreams(world);
      return true;
    });
  }

  void FailByMpi(World& world, const MpiFailure& failure) {
    WorkerProcess& worker = world.workers[static_cast<size_t>(failure.local_rank)];
    relay.Drain(worker.local_rank());
    Tell(world, worker, world.pids[static_cast<size_t>(failure.local_rank)],
         {.exit_code = failure.exit_code}, failure);
  }

  void Tell(const World& world, WorkerProcess& worker, pid_t pid, const ExitStatus& exit,
            const MpiFailure& by_mpi) {
    if (hushed || !worker.TellsFailure()) return;
    WorkerFailure failure = worker.Failure(world.assignment, pid, exit, relay, base.kills_before);
    failure.spawned = NameOf(world, worker.local_rank() - world.first_stream);
    if (!by_mpi.reason.empty()) {
      failure.kind = by_mpi.kind;
      failure.evidence = by_mpi.reason;
    }
    failure.rank = base.assignment.first_rank + world.parent.local_rank;
    failure.local_rank = world.parent.local_rank;
    failure.node_rank = base.assignment.node_rank;
    events.on_failure(std::move(failure));
  }

  void CloseStreams(const World& world) {
    for (int rank = 0; rank < world.spec.nproc; ++rank) relay.Close(world.first_stream + rank);
  }

  int alive() const {
    int count = 0;
    for (const World& world : worlds) {
      for (const WorkerProcess& worker : world.workers) count += worker.alive() ? 1 : 0;
    }
    return count;
  }

  asio::io_context& loop;
  const Base base;
  OutputRelay& relay;
  const Events events;
  int spawns = 0;
  std::list<World> worlds;  // In the order of their streams. Handlers refer to them.
  bool hushed = false;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

SpawnedWorkers::SpawnedWorkers(asio::io_context& loop, Base base, OutputRelay& relay, Events events)
    : state_(std::make_unique<State>(loop, std::move(base), relay, std::move(events))) {}

SpawnedWorkers::~SpawnedWorkers() {
  for (const World& world : state_->worlds) state_->CloseStreams(world);
}

absl::Status SpawnedWorkers::Start(const SpawnParent& parent, const SpawnRequest& request) {
  return state_->Start(parent, request);
}

SpawnParent SpawnedWorkers::ParentOf(int pmix_world, int rank) const {
  for (const World& world : state_->worlds) {
    if (world.pmix_world != pmix_world) continue;
    return {world.parent.local_rank, State::NameOf(world, rank)};
  }
  return {};
}

void SpawnedWorkers::FailByMpi(int pmix_world, const MpiFailure& failure) {
  for (World& world : state_->worlds) {
    if (world.pmix_world == pmix_world) return state_->FailByMpi(world, failure);
  }
}

int SpawnedWorkers::alive() const { return state_->alive(); }

std::vector<pid_t> SpawnedWorkers::AlivePids() const {
  std::vector<pid_t> pids;
  for (const World& world : state_->worlds) {
    for (const WorkerProcess& worker : world.workers) {
      if (worker.alive()) pids.push_back(worker.pid());
    }
  }
  return pids;
}

void SpawnedWorkers::SignalGroups(int signal) const {
  for (const World& world : state_->worlds) {
    for (const WorkerProcess& worker : world.workers) {
      if (worker.alive()) worker.SignalGroup(signal);
    }
  }
}

void SpawnedWorkers::Hush() {
  state_->hushed = true;
  for (const World& world : state_->worlds) {
    if (world.pmi) world.pmi->Hush();
  }
}

void SpawnedWorkers::AwaitExits(Instant deadline) {
  for (World& world : state_->worlds) {
    for (WorkerProcess& worker : world.workers) {
      if (!worker.alive() || !worker.AwaitExit(deadline)) continue;
      worker.Reap();
      state_->relay.Drain(worker.local_rank());
    }
  }
}

}  // namespace hlaunch
