// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// hlaunch-pmix: serves PMIx, which Open MPI programs need to start, to the workers of one round on
// one node. It is a separate process, since libpmix has to be loaded, which a static agent cannot
// do, and since libpmix starts threads. Its protocol: agent/mpi/serve/pmix_words.h.

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/mpi/pmix/between_nodes.h"
#include "agent/mpi/pmix/job_map.h"
#include "agent/mpi/pmix/pmix_host.h"
#include "agent/mpi/pmix/pmix_library.h"
#include "agent/mpi/pmix/spawns.h"
#include "agent/mpi/serve/node_meeting.h"
#include "agent/mpi/serve/pmix_words.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/peer/loopback_peer.h"
#include "rendezvous/store/c10d/c10d_client.h"

namespace hlaunch {
namespace {

constexpr char kAbsentKey[] = "hlaunch/pmix/absent";      // A rank will not call MPI_Init.
constexpr char kUnservedKey[] = "hlaunch/pmix/unserved";  // A node cannot serve PMIx.
// How long node rank 0 waits for a node whose hlaunch is without hlaunch-pmix, if PMIx is optional.
// It decides for all; the others have longer to hear of that.
constexpr Duration kPatience = std::chrono::seconds(20);

// Processes of all users are heard. libpmix calls accept without any context.
std::atomic<bool> any_user = false;

void Tell(const PmixNews& news) {
  static Mutex mu;
  const std::string line = absl::StrCat(ToLine(news), "\n");
  MutexLock lock(&mu);
  for (size_t at = 0; at < line.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, line.data() + at, line.size() - at);
    if (written <= 0) ::_exit(kExitInternal);  // The agent is gone.
    at += static_cast<size_t>(written);
  }
}

void TellOf(int world, PmixNews news) {
  news.world = world;
  Tell(news);
}

// OK if calls may wait longer; an error if a rank will never call MPI_Init or a node cannot serve
// PMIx.
absl::Status MayWait(NodeMeeting& meeting) {
  HLAUNCH_ASSIGN_OR_RETURN(C10dClient * store, meeting.Store());
  for (const char* key : {kAbsentKey, kUnservedKey}) {
    const absl::StatusOr<bool> told = store->Check({key});
    if (!told.ok() || !*told) continue;
    HLAUNCH_ASSIGN_OR_RETURN(const std::string why,
                             store->Get(key, MonotonicClock().Now() + kPatience));
    return absl::FailedPreconditionError(why);
  }
  return absl::OkStatus();
}

// Until when the nodes have to have met.
Instant MeetBy(const PmixPlan& plan) {
  if (!plan.optional) return Instant::max();
  return MonotonicClock().Now() + (plan.node_rank == 0 ? kPatience : 2 * kPatience);
}

// Tells the other nodes why this one cannot serve PMIx. What another node has told stays.
void TellNodes(NodeMeeting& meeting, const PmixPlan& plan, absl::string_view why) {
  const absl::StatusOr<C10dClient*> store = meeting.Store();
  if (!store.ok()) return;
  const absl::StatusOr<bool> told = (*store)->Check({kUnservedKey});
  if (told.ok() && *told) return;
  (*store)->Set(kUnservedKey, absl::StrCat(plan.host, ": ", why)).IgnoreError();
}

// Parses "2 1"; one program for all ranks if nothing is given.
absl::StatusOr<std::vector<int>> ProgramsOf(const PmixPlan& plan, int world_size) {
  std::vector<int> programs;
  int all = 0;
  for (const absl::string_view word : absl::StrSplit(plan.programs, ' ', absl::SkipEmpty())) {
    int ranks = 0;
    if (!absl::SimpleAtoi(word, &ranks) || ranks <= 0 || ranks > world_size - all) {
      return absl::InvalidArgumentError("other ranks than its nodes have run the programs");
    }
    programs.push_back(ranks);
    all += ranks;
  }
  return programs.empty() ? std::vector<int>{world_size} : programs;
}

absl::StatusOr<JobMap> MeetNodes(NodeMeeting& meeting, const PmixPlan& plan) {
  std::string lines = JobMap::ToLine({plan.nproc, plan.name_space, plan.host});
  if (plan.num_nodes > 1) {
    std::vector<int> nodes;
    for (int node = 0; node < plan.num_nodes; ++node) nodes.push_back(node);
    HLAUNCH_ASSIGN_OR_RETURN(lines, meeting.Meet("pmix/nodes", nodes, lines,
                                                 "the start of its workers: it is not there yet"));
  }
  return JobMap::FromLines(lines, plan.num_nodes);
}

PmixWork WorkOver(BetweenNodes& others, Spawns& spawns, bool all_here) {
  using Kind = PmixNews::Kind;
  PmixWork work;
  work.on_connected = [](int world, Rank rank) { TellOf(world, {Kind::kConnected, rank}); };
  work.on_finalized = [](int world, Rank rank) { TellOf(world, {Kind::kFinalized, rank}); };
  work.on_abort = [](int world, Rank rank, int code, std::string message) {
    TellOf(world, {Kind::kAbort, rank, code, std::move(message)});
  };
  work.fence = [&others](const std::vector<Rank>& ranks, std::string own, PmixWork::Done done) {
    others.Fence(ranks, std::move(own), std::move(done));
  };
  work.group = [&others](const std::string& name, const std::vector<Rank>& ranks,
                         const std::string& own, PmixWork::GroupDone done) {
    others.Group(name, ranks, own, std::move(done));
  };
  work.ask = [&others](Rank rank, PmixWork::Done done) { others.Ask(rank, std::move(done)); };
  work.spawn = [&spawns](int world, Rank rank, SpawnRequest request, PmixWork::Done done) {
    spawns.Ask(world, rank, std::move(request), std::move(done));
  };
  work.all_here = all_here;
  return work;
}

// Open MPI 4 and 5 name a rank's shared memory after its host and local rank, which another node on
// this host has as well. So each such node has its own directory for it.
void AddOwnSharedMemory(const std::string& directory, std::vector<std::string>& environment) {
  for (const char* transport : {"vader", "sm"}) {
    environment.push_back(
        absl::StrCat("OMPI_MCA_btl_", transport, "_backing_directory=", directory));
  }
}

// Reads the agent's lines until the agent closes them.
void Listen(NodeMeeting& meeting, Spawns& spawns) {
  for (std::string line; std::getline(std::cin, line);) {
    spawns.Answered(line);
    if (!absl::StartsWith(line, kPmixAbsent)) continue;
    const absl::StatusOr<C10dClient*> store = meeting.Store();
    if (!store.ok()) continue;
    (*store)->Set(kAbsentKey, line.substr(sizeof kPmixAbsent - 1)).IgnoreError();
  }
}

// libpmix asks hwloc about the machine. Ranks need nothing from hwloc's plugins (X, OpenCL,
// libxml2), and its x86 component visits every core.
void LookAtTheMachineBriefly() {
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 0);
  ::setenv("HWLOC_COMPONENTS", "-x86", 0);
}

// Ends the process once the agent has closed our input; returns only to say why ranks cannot be
// served. The objects that libpmix's threads use are never destroyed: the process exits without
// that.
absl::Status ServeNode(const PmixPlan& plan, NodeMeeting& meeting, std::atomic<bool>& met) {
  HLAUNCH_ASSIGN_OR_RETURN(const PmixLibrary library, LoadPmix(plan.library));
  HLAUNCH_ASSIGN_OR_RETURN(const JobMap map, MeetNodes(meeting, plan));
  met = true;
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<int> programs, ProgramsOf(plan, map.world_size()));
  BetweenNodes others(meeting, map, plan.node_rank, [](std::string why) {
    Tell({PmixNews::Kind::kBroken, -1, 0, std::move(why)});
  });
  Spawns spawns([](const PmixNews& news) { Tell(news); });
  HLAUNCH_ASSIGN_OR_RETURN(const std::unique_ptr<PmixHost> host,
                           PmixHost::Start(library,
                                           {map, plan.node_rank, plan.first_rank, plan.nproc,
                                            plan.directory, programs, plan.oversubscribed},
                                           WorkOver(others, spawns, plan.num_nodes == 1)));
  spawns.Serve(*host);
  for (int i = 0; i < plan.nproc; ++i) {
    HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> environment, host->EnvironmentOf(i));
    if (map.SharesHost(plan.node_rank)) AddOwnSharedMemory(plan.directory, environment);
    Tell({PmixNews::Kind::kEnvironment, plan.first_rank + i, 0, "", std::move(environment)});
  }
  others.Answer(*host);
  Tell({PmixNews::Kind::kReady});
  Listen(meeting, spawns);
  ::_exit(0);
}

// As ServeNode.
absl::Status Serve(const std::vector<std::string>& words) {
  HLAUNCH_ASSIGN_OR_RETURN(const PmixPlan plan, ParsePmixArguments(words));
  any_user = plan.any_user;
  LookAtTheMachineBriefly();
  std::atomic<bool> met = false;
  const Instant meet_by = MeetBy(plan);
  NodeMeeting meeting({plan.store_host, plan.store_port, plan.node_rank},
                      {[&meeting, &met, meet_by]() -> absl::Status {
                         if (!met && MonotonicClock().Now() > meet_by) {
                           return absl::DeadlineExceededError("not all nodes serve PMIx");
                         }
                         return MayWait(meeting);
                       },
                       [](std::string line) {
                         Tell({PmixNews::Kind::kWaiting, -1, 0, std::move(line)});
                       }});
  const absl::Status unserved = ServeNode(plan, meeting, met);
  if (plan.optional && plan.num_nodes > 1) TellNodes(meeting, plan, unserved.message());
  return unserved;
}

// Returns the connection if it may be heard; else warns, at most once in ten seconds, and closes
// it. libpmix believes what a client on loopback says of its user.
UniqueFd Admit(UniqueFd connection) {
  static Mutex mu;
  static RareLog refusals;
  const absl::Status own = any_user ? absl::OkStatus() : CheckPeerIsOwn(connection.get());
  if (own.ok()) return connection;
  MutexLock lock(&mu);
  std::string line = refusals.Admit(
      absl::StrCat("refused at the port of PMIx, which is for this job's user: ", own.message(),
                   "; --any-user serves all users"),
      MonotonicClock().Now());
  if (!line.empty()) Tell({PmixNews::Kind::kWaiting, -1, 0, std::move(line)});
  return UniqueFd();
}

}  // namespace
}  // namespace hlaunch

// libpmix calls this function instead of the C library's. Where nobody is to be heard, it sees that
// no connection was there after all.
extern "C" int accept(int listener, sockaddr* address, socklen_t* size) {
  hlaunch::UniqueFd connection(::accept4(listener, address, size, 0));
  if (!connection.valid()) return -1;
  connection = hlaunch::Admit(std::move(connection));
  if (!connection.valid()) errno = EAGAIN;
  return connection.Release();
}

int main(int argc, char** argv) {
  ::prctl(PR_SET_NAME,
          hlaunch::kPmixProgram);  // Else a program in memory has a number as its name.
  const absl::Status unserved = hlaunch::Serve({argv + 1, argv + argc});
  hlaunch::Tell({hlaunch::PmixNews::Kind::kBroken, -1, 0, std::string(unserved.message())});
  ::_exit(hlaunch::kExitInternal);
}
