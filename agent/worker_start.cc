// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_start.h"

#include <utility>

#include "agent/round_mpi.h"
#include "agent/watch/stall/last_words.h"
#include "agent/worker_process.h"
#include "agent/worker_watches.h"
#include "agent/workers/fork_server/fork_servers.h"
#include "agent/workers/input/stdin_copies.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

WorkerRoutes RoutesOf(const WorkerLinks& links, const WorkerSpec& spec, RoundLogs& round_logs,
                      int local_rank) {
  WorkerRoutes routes = round_logs.Routes(local_rank);
  if (static_cast<size_t>(local_rank) < spec.consoles.size()) {
    const ConsoleStreams& console = spec.consoles[static_cast<size_t>(local_rank)];
    routes.out.console_fd = console.out;
    routes.err.console_fd = console.err;
  }
  routes.out.reader = links.watches.Reader(local_rank);
  routes.err.reader = links.last_words.Read(links.watches.Reader(local_rank));
  return routes;
}

}  // namespace

absl::StatusOr<Process> StartingWorker::Await() {
  if (forked) return *std::move(forked);
  return process->Await();
}

absl::StatusOr<StartingWorker> BeginWorker(const WorkerLinks& links, const WorkerSpec& spec,
                                           const Assignment& assignment, NodeFacts facts,
                                           RoundLogs& round_logs, int local_rank) {
  StartingWorker starting;
  starting.local_rank = local_rank;
  WorkerRoutes routes = RoutesOf(links, spec, round_logs, local_rank);
  starting.log_file = routes.err.file ? routes.err.file->path() : "";
  HLAUNCH_ASSIGN_OR_RETURN(starting.output, links.relay.Open(local_rank, std::move(routes)));
  HLAUNCH_ASSIGN_OR_RETURN(starting.mpi, links.mpi.Link(local_rank, facts));
  facts.error_file = starting.error_file = round_logs.ErrorFile(local_rank);
  facts.log_dir = round_logs.WorkerDirectory(local_rank);
  links.watches.Tell(spec, local_rank, facts);
  Command command =
      WorkerCommand(spec, assignment, local_rank, facts, starting.output, starting.mpi.get());
  if (links.stdin_copies != nullptr) {
    HLAUNCH_ASSIGN_OR_RETURN(starting.in, links.stdin_copies->Link());
    command.stdin_fd = starting.in.get();
  }
  if (links.fork_servers != nullptr) starting.forked = links.fork_servers->Fork(command);
  if (!starting.forked) {
    HLAUNCH_ASSIGN_OR_RETURN(StartingProcess normal, Process::Start(std::move(command)));
    starting.process.emplace(std::move(normal));
  }
  starting.is_stand_in = static_cast<size_t>(local_rank) < spec.stand_ins.size() &&
                         !spec.stand_ins[static_cast<size_t>(local_rank)].empty();
  return starting;
}

}  // namespace hlaunch
