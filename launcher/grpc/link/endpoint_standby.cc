// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/endpoint_standby.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/grpc/link/shutdown_grace.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/ids.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {

absl::Status EndpointStandby::Begin(const HostingVerdict& verdict, const JobPolicy& policy,
                                    JobVoter* voter) {
  const bool served = std::exchange(server_, nullptr) != nullptr;
  guide_.reset();
  auto listening = Listen(verdict.bind_address, spec_.endpoint.port);
  const bool was_free = std::exchange(was_free_, listening.ok()) || served;
  HLAUNCH_RETURN_IF_ERROR(listening.status());
  if (!was_free) return absl::OkStatus();
  std::unique_ptr<JobVoter> guide;
  if (voter == nullptr) {
    JobVoter::Options options;
    options.policy = policy;
    options.job_id = spec_.job_id;
    options.self = {NewIncarnation(), HostName(), HostPort(spec_.endpoint)};
    options.trust = trust_;
    options.on_lost = [](const absl::Status&) {};
    HLAUNCH_ASSIGN_OR_RETURN(guide, JobVoter::Start(std::move(options)));
    voter = guide.get();
  }
  RendezvousServer::Options options;
  options.listener = std::move(listening->fd);
  options.trust = trust_;
  options.voters = voter;
  HLAUNCH_ASSIGN_OR_RETURN(auto server, RendezvousServer::Start(std::move(options), *voter));
  LogDebug(absl::StrCat("standing by on port ", spec_.endpoint.port, ": ", verdict.reason));
  if (guide == nullptr) serving_voter_ = server.get();
  guide_ = std::move(guide);
  server_ = std::move(server);
  return absl::OkStatus();
}

void EndpointStandby::EndStreams(const absl::Status& why) {
  if (RendezvousServer* const server = serving_voter_) server->EndStreams(why);
}

void EndpointStandby::Shutdown() {
  if (server_ != nullptr) server_->Shutdown(kShutdownGrace);
}

}  // namespace hlaunch
