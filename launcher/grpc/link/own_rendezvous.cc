// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/own_rendezvous.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/grpc/link/shutdown_grace.h"
#include "launcher/node/descriptors.h"
#include "launcher/node/node_link.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/net/trust/sealed_stream.h"

namespace hlaunch {
namespace {

// Logs how many nodes this host carries; warns if the job may have more.
void SayCeiling(const JobSpec& spec) {
  DescriptorNeed need;
  need.max_nodes = spec.policy.max_nodes;
  need.spares = spec.policy.spares;
  need.nproc = spec.worker.nproc;
  need.store_here = spec.node.rank.value_or(0) == 0;
  const Ceiling ceiling = DecideCeiling(need, DescriptorLimit());
  if (ceiling.nodes >= spec.policy.max_nodes) {
    return LogDebug(
        absl::StrCat("this host carries about ", ceiling.nodes, " nodes: ", ceiling.reason));
  }
  LogWarning(absl::StrCat("this host carries about ", ceiling.nodes, " nodes and --nnodes allows ",
                          spec.policy.max_nodes, ": ", ceiling.reason, "; raise the hard limit to ",
                          ceiling.needed,
                          ": ulimit -n as root, LimitNOFILE= of a unit, --ulimit "
                          "nofile= of a container"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OwnRendezvous>> OwnRendezvous::Start(
    const JobSpec& spec, const Trust& trust, ListeningSocket listening,
    std::optional<VoterMember> self, std::function<void()> on_lost, std::function<void()> on_places,
    std::function<void(const VoterMembers&)> on_led) {
  std::unique_ptr<OwnRendezvous> own(new OwnRendezvous);
  JobRules rules = RulesOf(spec);
  RendezvousServer::Options options;
  if (spec.mode == JobMode::kStatic && !spec.worker_store) {
    HLAUNCH_ASSIGN_OR_RETURN(own->store_, C10dServer::Start(std::nullopt, spec.store.server));
    own->store_port_ = listening.port;
    options.c10d = [store = own->store_.get()](UniqueFd fd) { store->Adopt(std::move(fd)); };
  }
  rules.before_round = [own = own.get(), access = spec.store.server.access,
                        vouched = spec.store_sealed,
                        any_user = spec.worker.any_user](const Assignment& first) {
    own->formed_ = true;
    if (own->store_ == nullptr) return;
    if (RendezvousServer* const serving = own->serving_) serving->EndC10d();
    StoreAccess round = AccessOfRound(access.value_or(StoreAccess()), first.members,
                                      IsOwnAddress(first.master_addr) ? first.master_addr : "");
    round.vouched = vouched;
    round.any_user = any_user;
    own->store_->Reset(std::move(round), SealingKey(first.comm_secret));
  };
  options.listener = std::move(listening.fd);
  options.trust = trust;
  if (self) {
    JobVoter::Options voter;
    voter.job_id = spec.job_id;
    voter.policy = spec.policy;
    voter.self = *std::move(self);
    voter.trust = trust;
    voter.on_lost = [own = own.get(), on_lost = std::move(on_lost)](const absl::Status& why) {
      if (RendezvousServer* const serving = own->serving_) serving->EndStreams(why);
      on_lost();
    };
    voter.on_places = std::move(on_places);
    voter.on_led = std::move(on_led);
    HLAUNCH_ASSIGN_OR_RETURN(own->voter_, JobVoter::Start(std::move(voter)));
    own->founded_ = &own->voter_->Found(std::move(rules));
    options.voters = own->voter_.get();
    HLAUNCH_ASSIGN_OR_RETURN(own->server_,
                             RendezvousServer::Start(std::move(options), *own->voter_));
  } else {
    own->job_.emplace(std::move(rules), MonotonicClock());
    own->jobs_ = MakeOneJob(spec.job_id, *own->job_);
    HLAUNCH_ASSIGN_OR_RETURN(own->server_,
                             RendezvousServer::Start(std::move(options), *own->jobs_));
  }
  own->serving_ = own->server_.get();
  SayCeiling(spec);
  return own;
}

std::shared_ptr<JobRendezvous> OwnRendezvous::led_job() {
  if (voter_ != nullptr) return voter_->job();
  return {&*job_, [](JobRendezvous*) {}};
}

void OwnRendezvous::Shutdown() {
  serving_ = nullptr;
  if (server_) server_->Shutdown(kShutdownGrace);
}

}  // namespace hlaunch
