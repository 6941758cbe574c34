// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/host_link.h"

#include "launcher/grpc/link/death_report.h"
#include "launcher/grpc/link/link_facts.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "rendezvous/job/local_rendezvous_client.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/rpc/client/grpc_rendezvous_client.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {

absl::StatusOr<std::unique_ptr<NodeLink>> HostLink::Make(
    const JobSpec& spec, const Trust& trust, HostingVerdict verdict, ListeningSocket listening,
    const std::optional<std::string>& address) {
  std::unique_ptr<HostLink> link(new HostLink(spec, trust, std::move(verdict), listening.port));
  link->own_address_ = address.value_or("127.0.0.1");
  HLAUNCH_RETURN_IF_ERROR(link->Open(std::move(listening), address));
  return std::unique_ptr<NodeLink>(std::move(link));
}

HostLink::~HostLink() {
  CallNobody();
  if (own_ != nullptr) own_->Shutdown();  // Null if it was not started or has ended.
}

std::string HostLink::Belief(Duration waited) const {
  const bool lonely = own_->leads() && own_->alone(0) && spec_.mode != JobMode::kListenAndPrint;
  return lonely ? ExplainLoneliness(spec_, verdict_, waited) : "";
}

std::string HostLink::meeting_places() const {
  if (const VoterMembers voters = own_->voters(); !voters.empty()) return PlacesOf(voters);
  // Nobody named a place.
  return spec_.mode == JobMode::kListenAndPrint ? HostPort(own_address_, port_) : "";
}

std::vector<std::string> HostLink::AwaitOthers(Instant deadline) {
  return own_->led_job()->AwaitAllFinished(deadline);
}

NodeLink::TellDeath HostLink::Die(const NodeInfo& info, const std::string& why) {
  const VoterMembers others = Without(own_->voters(), incarnation_);
  CallNobody();
  client_.reset();
  own_.reset();
  return DeathOf(others, trust_, info, why);
}

NodeLink::DeathReport HostLink::death_report(const NodeInfo& info) const {
  const VoterMembers others = Without(own_->voters(), incarnation_);
  if (others.empty()) return {};
  const VoterAddress first = SplitAddress(others.front().address);
  return DeathReportFor(spec_, others.size() == 1 ? first.literal : PlacesOf(others), first.port,
                        info);
}

void HostLink::Complete(NodeInfo& info) {
  if (!self_) return;
  info.incarnation = incarnation_;
  info.voter_port = port_;
  if (info.address.empty()) info.address = SplitAddress(self_->address).literal;
}

void HostLink::WatchDeathReport(std::function<void()> changed) {
  MutexLock lock(&mu_);
  death_report_changed_ = std::move(changed);
}

absl::Status HostLink::Open(ListeningSocket listening, const std::optional<std::string>& address) {
  if (KeepsRecordAmongAgents(spec_) && address) {
    self_ = VoterMember{incarnation_, HostName(), HostPort(*address, port_)};
  }
  HLAUNCH_ASSIGN_OR_RETURN(own_, OwnRendezvous::Start(
                                     spec_, trust_, std::move(listening), self_, [this] { Lost(); },
                                     [this] { TellDeathReportChanged(); },
                                     [this](const VoterMembers& places) { Led(places); }));
  if (!self_) {
    client_ = std::make_unique<LocalRendezvousClient>(own_->job());
    return absl::OkStatus();
  }
  HostClient::Options options;
  options.job = &own_->job();
  options.remote = [this] {
    GrpcRendezvousClient::Options remote;
    remote.endpoint = {SplitAddress(self_->address).literal, port_, trust_, {}};
    remote.join_timeout = spec_.policy.join_timeout;
    remote.taken_elsewhere = [this] { return own_->taken_at(); };
    remote.patience = [this] { return own_->patience(); };
    return remote;
  };
  options.voters = [this] { return own_->voters(); };
  options.outlived = [this] { return own_->outlived(); };
  options.patience = [this] { return own_->patience(); };
  auto client = std::make_unique<HostClient>(std::move(options));
  MutexLock lock(&mu_);
  leaving_ = client.get();
  client_ = std::move(client);
  if (lost_) leaving_->Leave();
  return absl::OkStatus();
}

void HostLink::CallNobody() {
  MutexLock lock(&mu_);
  leaving_ = nullptr;
  death_report_changed_ = nullptr;
}

void HostLink::Lost() {
  MutexLock lock(&mu_);
  lost_ = true;
  if (leaving_ != nullptr) leaving_->Leave();
}

void HostLink::Led(const VoterMembers& places) {
  MutexLock lock(&mu_);
  if (leaving_ != nullptr) leaving_->LedBy(places);
}

void HostLink::TellDeathReportChanged() {
  std::function<void()> changed;
  {
    MutexLock lock(&mu_);
    changed = death_report_changed_;
  }
  if (changed) changed();
}

}  // namespace hlaunch
