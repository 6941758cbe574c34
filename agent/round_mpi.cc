// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/round_mpi.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/mpi/serve/shm_remains.h"
#include "agent/workers/failure/unserved_mpi.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

// The program numbers of the workers, by local rank; empty if there is one program.
std::vector<int> ProgramNumbers(const Assignment& assignment, const WorkerSpec& spec) {
  std::vector<int> numbers;
  for (int i = 0; !spec.others.empty() && i < spec.nproc; ++i) {
    numbers.push_back(ProgramNumber(spec.others, assignment.first_rank + i, assignment.world_size));
  }
  return numbers;
}

}  // namespace

RoundMpi::RoundMpi(asio::io_context& loop, OutputRelay& relay, std::unique_ptr<PmixServer> pmix,
                   Events events)
    : loop_(loop), relay_(relay), events_(std::move(events)), pmix_(std::move(pmix)) {}

absl::Status RoundMpi::Start(const Assignment& assignment, const WorkerSpec& spec,
                             const NodeFacts& facts, const JobLogs& logs,
                             const MemoryKills& kills_before) {
  first_rank_ = assignment.first_rank;
  if (spec.mpi == MpiOffer::kNone) return absl::OkStatus();
  if (pmix_) WatchPmix();
  spawned_.emplace(loop_, SpawnedWorkers::Base{assignment, spec, facts, logs, kills_before}, relay_,
                   SpawnedWorkers::Events{events_.on_spawned_failure, events_.on_spawned_exit,
                                          [this](int world, int rank) {
                                            if (pmix_) pmix_->Exited(world, rank);
                                          }});
  return OffersPmi(spec.mpi) ? OpenPmi(assignment, spec, facts) : absl::OkStatus();
}

absl::Status RoundMpi::OpenPmi(const Assignment& assignment, const WorkerSpec& spec,
                               const NodeFacts& facts) {
  PmiPlace place{absl::StrCat("hl-", NewJobId(), "-r", assignment.round),
                 assignment.first_rank,
                 spec.nproc,
                 assignment.world_size,
                 assignment.node_rank,
                 assignment.num_nodes,
                 spec.mpi != MpiOffer::kMaybe,
                 ProgramNumbers(assignment, spec)};
  place.any_user = spec.any_user;
  const bool proxy = facts.store_proxy_port != 0;
  const uint16_t store = proxy ? facts.store_proxy_port : assignment.master_port;
  HLAUNCH_ASSIGN_OR_RETURN(
      pmi_, PmiServer::Open(loop_, place, spec.mpi != MpiOffer::kDescriptor,
                            proxy ? "127.0.0.1" : assignment.master_addr,
                            assignment.worker_store ? uint16_t{0} : store,
                            {events_.on_failure, [this](int local_rank, const auto& request) {
                               return Spawn(local_rank, request);
                             }}));
  return absl::OkStatus();
}

void RoundMpi::WatchPmix() {
  PmixServer::Events on;
  on.on_failure = [this](int world, const MpiFailure& failure) {
    if (world == 0) return events_.on_failure(failure);
    spawned_->FailByMpi(world, failure);
  };
  on.spawn = [this](int world, int rank, const SpawnRequest& request) {
    if (world == 0) return Spawn(rank, request);
    return spawned_->Start(spawned_->ParentOf(world, rank), request);
  };
  pmix_->Watch(std::move(on));
}

absl::Status RoundMpi::Spawn(int local_rank, const SpawnRequest& request) {
  if (hushed_) return absl::UnavailableError("the job is being stopped");
  return spawned_->Start({local_rank, absl::StrCat("rank ", first_rank_ + local_rank)}, request);
}

absl::StatusOr<UniqueFd> RoundMpi::Link(int local_rank, NodeFacts& facts) {
  PmiLink link;
  if (pmi_) {
    HLAUNCH_ASSIGN_OR_RETURN(link, pmi_->Link(local_rank));
    facts.pmi_fd = link.fd.valid() ? absl::StrCat(kPmiDescriptor) : "";
    facts.pmi_port = link.port != 0 ? absl::StrCat("127.0.0.1:", link.port) : "";
    facts.pmi_id = link.port != 0 ? absl::StrCat(link.id) : "";
  }
  if (pmix_) facts.pmix_env = pmix_->Environment(local_rank);
  return std::move(link.fd);
}

void RoundMpi::Ended(int local_rank, bool succeeded) {
  if (pmi_ && succeeded) pmi_->Exited(local_rank);
  if (pmix_ && succeeded) pmix_->Exited(0, local_rank);
  if (pmix_ && !succeeded) pmix_->WorkerFailed();
}

void RoundMpi::WarnIfUnserved(int local_rank) {
  if (pmix_ || warned_ || !SaysUnservedMpi(relay_.LongTail(local_rank))) return;
  warned_ = true;
  LogWarning(absl::StrCat(
      "rank ", first_rank_ + local_rank,
      " exited with 0, but a program of it failed in MPI_Init: ", kAdviceOnUnservedMpi));
}

void RoundMpi::Hush() {
  hushed_ = true;
  if (pmi_) pmi_->Hush();
  if (pmix_) pmix_->Hush();
  if (spawned_) spawned_->Hush();
}

void RoundMpi::EndPmix() {
  if (!pmix_) return;
  pmix_used_ = pmix_used_ || pmix_->used();
  pmix_.reset();
}

void RoundMpi::End(bool cut_short) {
  EndPmix();
  // Open MPI 5 leaves its shared memory to its launcher, however the program ended.
  if (pmix_used_ || (pmi_ && pmi_->used() && cut_short)) RemoveMpiRemains(began_ms_);
  pmi_.reset();
  spawned_.reset();
}

std::vector<pid_t> RoundMpi::AlivePids() const {
  return spawned_ ? spawned_->AlivePids() : std::vector<pid_t>();
}

void RoundMpi::SignalGroups(int signal) const {
  if (spawned_) spawned_->SignalGroups(signal);
}

void RoundMpi::AwaitExits(Instant deadline) {
  if (spawned_) spawned_->AwaitExits(deadline);
}

}  // namespace hlaunch
