// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/pmix_server.h"

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/mpi/serve/awaited_notice.h"
#include "agent/workers/process/line_process.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

// The code MPI_ERR_UNKNOWN, with which Open MPI 5 ends a rank that has lost a connection to another
// rank, without any message.
constexpr int kOpenMpiLost = 14;

}  // namespace

struct PmixServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, PmixPlan the_plan, int world_size,
        std::function<void(absl::Status)> the_on_ready)
      : plan(std::move(the_plan)),
        ranks(plan.first_rank, plan.nproc, world_size),
        environments(static_cast<size_t>(plan.nproc)),
        on_ready(std::move(the_on_ready)),
        notice(
            loop, [this] { return ranks.Awaited(); }, "") {}

  void Start(asio::io_context& loop, const HeldProgram& program) {
    std::error_code error;
    std::filesystem::create_directories(plan.directory, error);
    if (!error) {
      std::filesystem::permissions(plan.directory, std::filesystem::perms::owner_all, error);
    }
    if (error) {
      return asio::post(loop, [self = shared_from_this(), why = error.message()] {
        self->Break(absl::StrCat("cannot make ", self->plan.directory, ": ", why));
      });
    }
    std::vector<std::string> argv = PmixArguments(plan);
    if (program.path() == kCarriedPmix) argv.insert(argv.begin(), kCarriedPmixWord);
    argv.insert(argv.begin(), program.path());
    process.emplace(
        loop, argv,
        LineProcess::Events{[this](absl::string_view line) { Take(line); },
                            [this](const LineProcessEnd& end) {
                              Break(absl::StrCat(kPmixProgram,
                                                 ", which serves Open MPI's start: ", end.why));
                            }},
        LineProcess::Stderr::kOurs, program.fd());
  }

  void Take(absl::string_view line) {
    const std::shared_ptr<State> self = shared_from_this();  // The events may destroy this object.
    const absl::StatusOr<PmixNews> news = PmixNewsIn(line);
    if (!news.ok()) return LogWarning(absl::StrCat(kPmixProgram, " says ", line));
    const int local_rank = news->rank - (news->world == 0 ? plan.first_rank : 0);
    MpiRanks* const world = WorldOf(news->world);
    const bool ours = world != nullptr && local_rank >= 0 && local_rank < world->nproc();
    switch (news->kind) {
      case PmixNews::Kind::kEnvironment:
        if (ours && news->world == 0) {
          environments[static_cast<size_t>(local_rank)] = news->environment;
        }
        return;
      case PmixNews::Kind::kReady:
        return BeReady(absl::OkStatus());
      case PmixNews::Kind::kConnected:
        if (ours) TellIf(news->world, world->Enter(local_rank));
        return notice.Look();
      case PmixNews::Kind::kFinalized:
        if (ours && world->state(local_rank) == MpiState::kInMpi) world->Finish(local_rank);
        return notice.Look();
      case PmixNews::Kind::kAbort:
        if (ours) Abort(*world, local_rank, *news);
        return;
      case PmixNews::Kind::kWaiting:
        if (!hushed) LogWarning(news->text);
        return;
      case PmixNews::Kind::kBroken:
        return Break(news->text);
      case PmixNews::Kind::kSpawn:
        if (ours) Spawn(news->world, local_rank, news->spawn);
        return;
    }
  }

  // The ranks of `world`; for world 0 only those of this node. Null if there is no such world.
  MpiRanks* WorldOf(int world) {
    if (world == 0) return &ranks;
    const auto found = spawned.find(world);
    return found == spawned.end() ? nullptr : &found->second;
  }

  void Spawn(int world, int rank, const SpawnRequest& request) {
    const int number = request.pmix_world;
    const int size = RanksOf(request);
    spawned.emplace(number, MpiRanks(0, size, size));  // The new ranks may call MPI_Init at once.
    const absl::Status started = events.spawn == nullptr || hushed
                                     ? absl::UnavailableError("the job is being stopped")
                                     : events.spawn(world, rank, request);
    if (!started.ok()) spawned.erase(number);
    if (!process) return;
    process->Say(started.ok() ? absl::StrCat(kPmixSpawned, number)
                              : absl::StrCat(kPmixRefused, number, " ", started.message()));
  }

  void Abort(MpiRanks& world, int local_rank, const PmixNews& news) {
    if (!news.text.empty()) LogDebug(absl::StrCat("MPI_Abort: ", news.text));
    MpiFailure failure = world.Abort(local_rank, news.code);
    if (news.code == kOpenMpiLost) {
      failure.kind = FailureKind::kMpiPeerLost;
      absl::StrAppend(&failure.reason, ", as Open MPI does where it has lost another rank");
    }
    TellIf(news.world, std::move(failure));
    notice.Look();
  }

  void BeReady(const absl::Status& status) {
    if (auto tell = std::exchange(on_ready, nullptr)) tell(status);
  }

  void TellIf(int world, std::optional<MpiFailure> failure) {
    if (failure && events.on_failure && !hushed) events.on_failure(world, *failure);
  }

  // The server is gone. A rank that is in MPI would wait for ever, so it is reported as failed.
  void Break(const std::string& why) {
    const std::shared_ptr<State> self = shared_from_this();
    if (on_ready) return BeReady(absl::FailedPreconditionError(why));
    for (int i = 0; i < plan.nproc; ++i) {
      if (ranks.state(i) != MpiState::kInMpi) continue;
      return TellIf(0, MpiFailure{i, 1,
                                  absl::StrCat(why, ", and rank ", ranks.RankOf(i),
                                               " waits in MPI_Init or after it")});
    }
  }

  void Exited(int world, int local_rank) {
    MpiRanks* const its = WorldOf(world);
    if (its == nullptr) return;
    auto failure = its->Exited(local_rank);
    if (world == 0 && !failure && ranks.state(local_rank) == MpiState::kSilent &&
        plan.num_nodes > 1 && process) {
      process->Say(absl::StrCat(kPmixAbsent, ranks.LeftBeforeInit(local_rank)));
    }
    TellIf(world, std::move(failure));
    notice.Look();
  }

  const PmixPlan plan;
  MpiRanks ranks;
  std::map<int, MpiRanks> spawned;                     // By world number.
  std::vector<std::vector<std::string>> environments;  // By local rank.
  std::function<void(absl::Status)> on_ready;          // Empty once it was called.
  Events events;
  AwaitedNotice notice;
  std::optional<LineProcess> process;
  bool hushed = false;
};

PmixServer::PmixServer(asio::io_context& loop, const HeldProgram& program, PmixPlan plan,
                       int world_size, std::function<void(absl::Status)> on_ready)
    : state_(std::make_shared<State>(loop, std::move(plan), world_size, std::move(on_ready))) {
  state_->Start(loop, program);
}

PmixServer::~PmixServer() {
  Hush();
  state_->on_ready = nullptr;
  state_->process.reset();
  std::error_code ignored;
  std::filesystem::remove_all(state_->plan.directory, ignored);
}

const std::vector<std::string>& PmixServer::Environment(int local_rank) const {
  return state_->environments[static_cast<size_t>(local_rank)];
}

void PmixServer::Watch(Events events) { state_->events = std::move(events); }

void PmixServer::Exited(int world, int rank) { state_->Exited(world, rank); }

void PmixServer::WorkerFailed() {
  const std::shared_ptr<State> state = state_;  // The events may destroy this object.
  if (state->process) state->process->TellNow();
}

void PmixServer::Hush() {
  state_->hushed = true;
  state_->notice.Hush();
}

bool PmixServer::used() const { return state_->ranks.used(); }
pid_t PmixServer::pid() const { return state_->process ? state_->process->pid() : 0; }

}  // namespace hlaunch
