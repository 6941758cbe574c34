// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/join_link.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/grpc/link/death_report.h"
#include "launcher/grpc/link/link_facts.h"
#include "launcher/grpc/link/shutdown_grace.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/peer/port_owner.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {
namespace {

// The owner of a port on this host may take this long to answer as a rendezvous: longer if it is
// hlaunch, which may be paused or starved.
constexpr Duration kNeighbourPatience = std::chrono::seconds(5);
constexpr Duration kHlaunchPatience = std::chrono::seconds(30);
constexpr Duration kConnectPatience = std::chrono::milliseconds(300);

Duration PatienceWithOwnerOf(uint16_t port) {
  const std::optional<PortOwner> owner = FindPortOwner(port);
  return owner && IsHlaunch(*owner) ? kHlaunchPatience : kNeighbourPatience;
}

}  // namespace

JoinLink::JoinLink(const JobSpec& spec, const Trust& trust, HostingVerdict verdict,
                   std::shared_ptr<Lookup> lookup, bool port_was_taken)
    : spec_(spec),
      port_was_taken_(port_was_taken),
      endpoint_({spec.endpoint.host, spec.endpoint.port, trust, PlacesOf(spec.other_endpoints)}),
      verdict_(std::move(verdict)),
      standby_(spec_, endpoint_.trust) {
  GrpcRendezvousClient::Options options;
  options.endpoint = endpoint_;
  options.join_timeout = spec.policy.join_timeout;
  if (port_was_taken) options.answer_timeout = PatienceWithOwnerOf(spec.endpoint.port);
  options.lookup = std::move(lookup);
  if (spec.mode == JobMode::kEndpoint) {
    if (verdict_.role == HostingRole::kOffers) Listen(verdict_);
    options.detour = [this] { return WayHome(); };
  }
  options.on_lookup = [this](const Resolved& found) { Reconsider(found); };
  if (KeepsRecordAmongAgents(spec) && (trust.none() || !trust.job())) {
    // A node that finds no port is no voter, but it is still a node.
    if (auto listening = hlaunch::Listen("", 0); listening.ok()) {
      voter_port_ = listening->port;
      voter_socket_ = *std::move(listening);
    }
    options.on_voters = [this](const JobPolicy& policy, const VoterMembers& voters) {
      Voters(policy, voters);
    };
  }
  options.taken_elsewhere = [this] {
    if (const JobVoter* const voter = Voter()) return voter->TakenAt();
    const OwnRendezvous* const own = Own();
    return own != nullptr ? own->taken_at() : Instant::min();
  };
  options.patience = [this] {
    if (const JobVoter* const voter = Voter()) return voter->Patience();
    const OwnRendezvous* const own = Own();
    return own != nullptr ? own->patience() : Duration::max();
  };
  client_.emplace(std::move(options));
  MutexLock lock(&mu_);
  turning_ = &*client_;
  if (verdict_.role != HostingRole::kJoins) WatchEndpointLocked();
}

bool JoinLink::port_was_taken() const {
  MutexLock lock(&mu_);
  return port_was_taken_ && own_ == nullptr;
}

std::string JoinLink::Belief(Duration waited) const {
  if (port_was_taken()) return "";
  Silence silence;
  HostingVerdict verdict;
  {
    MutexLock lock(&mu_);
    verdict = verdict_;
    silence.resolved = resolved_;
    silence.listens = own_ != nullptr;
    if (client_->contacted()) {
      const bool alone = own_ != nullptr && own_->leads() && own_->alone(1);
      return alone ? ExplainLoneliness(spec_, verdict, waited) : "";
    }
  }
  silence.waited = waited;
  silence.local = ListLocalAddresses().value_or(std::vector<LocalAddress>());
  if (silence.resolved.ok()) {
    silence.connect_error =
        TryToConnect(silence.resolved->front(), endpoint_.port, kConnectPatience);
  }
  return ExplainSilence(spec_, verdict, silence);
}

void JoinLink::End(const Outcome& outcome) {
  if (const auto job = LedHere()) job->End(outcome);
}

std::vector<std::string> JoinLink::AwaitOthers(Instant deadline) {
  const auto job = LedHere();
  return job ? job->AwaitAllFinished(deadline) : std::vector<std::string>();
}

bool JoinLink::round_begun() const {
  MutexLock lock(&mu_);
  return !KeepsRecordAmongAgents(spec_) || !voters_.empty();
}

bool JoinLink::outlived() const {
  const JobVoter* voter = LeadingVoter();
  MutexLock lock(&mu_);
  if (voter != nullptr) return voter->Outlived();
  return own_ != nullptr && own_->outlived();
}

NodeLink::TellDeath JoinLink::Die(const NodeInfo& info, const std::string& why) {
  VoterMembers others;
  {
    MutexLock lock(&mu_);
    others = voter_ != nullptr ? voter_->Places() : voters_;
    if (others.empty() && own_ != nullptr) others = own_->voters();
  }
  Stop();
  return DeathOf(Without(others, incarnation_), endpoint_.trust, info, why);
}

std::string JoinLink::meeting_places() const {
  MutexLock lock(&mu_);
  const VoterMembers voters = voter_ != nullptr ? voter_->Places() : voters_;
  return voters.empty() ? "" : absl::StrCat(PlacesOf(voters), ",", AllEndpoints(spec_));
}

NodeLink::DeathReport JoinLink::death_report(const NodeInfo& info) const {
  std::string places = AllEndpoints(spec_);
  MutexLock lock(&mu_);
  const VoterMembers others = Without(voters_, incarnation_);
  if (!others.empty()) places = absl::StrCat(PlacesOf(others), ",", HostPort(spec_.endpoint));
  return DeathReportFor(spec_, places, endpoint_.port, info);
}

void JoinLink::Complete(NodeInfo& info) {
  info.incarnation = incarnation_;
  info.voter_port = voter_port_;
}

void JoinLink::WatchDeathReport(std::function<void()> changed) {
  MutexLock lock(&mu_);
  death_report_changed_ = std::move(changed);
}

void JoinLink::Stop() {
  std::unique_ptr<EndpointWatch> watch;
  {
    MutexLock lock(&mu_);
    death_report_changed_ = nullptr;
    turning_ = nullptr;
    ends_ = true;
    watch = std::move(watch_);
  }
  watch.reset();    // It asks the client until then.
  client_.reset();  // It calls until then; its last update may go to a server here.
  std::unique_ptr<OwnRendezvous> own;
  std::unique_ptr<RendezvousServer> server;
  std::unique_ptr<JobVoter> voter;
  {
    MutexLock lock(&mu_);
    own = std::move(own_);
    server = std::move(voter_server_);
    voter = std::move(voter_);
  }
  if (server != nullptr) server->Shutdown(kShutdownGrace);
  standby_.Shutdown();
  voter.reset();  // Both may end the servers' streams until then.
  own.reset();
}

JobVoter* JoinLink::Voter() const {
  MutexLock lock(&mu_);
  return voter_.get();
}

OwnRendezvous* JoinLink::Own() const {
  MutexLock lock(&mu_);
  return own_.get();
}

JobVoter* JoinLink::LeadingVoter() const {
  JobVoter* const voter = Voter();
  return voter != nullptr && voter->leads() ? voter : nullptr;
}

std::shared_ptr<JobRendezvous> JoinLink::LedHere() const {
  if (JobVoter* const voter = LeadingVoter()) return voter->job();
  OwnRendezvous* const own = Own();
  return own != nullptr && own->has_job() && own->leads() ? own->led_job() : nullptr;
}

void JoinLink::Voters(const JobPolicy& policy, const VoterMembers& voters) {
  std::function<void()> changed;
  JobVoter* own = nullptr;
  {
    MutexLock lock(&mu_);
    voters_ = voters;
    policy_ = policy;
    changed = death_report_changed_;
    if (own_ != nullptr && own_->has_job()) own = own_->voter();
  }
  if (changed) changed();
  const VoterMember* self = FindMember(voters, incarnation_);
  if (self == nullptr || !voter_socket_) return;
  const absl::Status made = own != nullptr ? ServeVoter(*own) : BecomeVoter(policy, *self);
  if (!made.ok()) {
    LogWarning(absl::StrCat("this node cannot keep the job's record: ", made.message()));
  }
}

absl::Status JoinLink::BecomeVoter(const JobPolicy& policy, const VoterMember& self) {
  JobVoter::Options options;
  options.job_id = spec_.job_id;
  options.policy = policy;
  options.self = self;
  options.trust = endpoint_.trust;
  {
    MutexLock lock(&mu_);
    // This host, too, may have to be told who leads: it may stand by there apart from the voter.
    const bool own = verdict_.role == HostingRole::kHosts;
    const auto address = own ? OwnReachableAddress(spec_, resolved_) : ReachableAt(resolved_);
    if (address) options.endpoint = {0, endpoint_.host, HostPort(*address, endpoint_.port)};
  }
  options.on_lost = [this](const absl::Status& why) { EndVoterStreams(why); };
  options.on_led = [this](const VoterMembers& places) { Led(places); };
  HLAUNCH_ASSIGN_OR_RETURN(auto voter, JobVoter::Start(std::move(options)));
  HLAUNCH_RETURN_IF_ERROR(ServeVoter(*voter));
  MutexLock lock(&mu_);
  voter_ = std::move(voter);
  return absl::OkStatus();
}

absl::Status JoinLink::ServeVoter(JobVoter& voter) {
  RendezvousServer::Options server;
  server.listener = std::move(voter_socket_->fd);
  server.trust = endpoint_.trust;
  server.voters = &voter;
  voter_socket_.reset();
  HLAUNCH_ASSIGN_OR_RETURN(auto served, RendezvousServer::Start(std::move(server), voter));
  MutexLock lock(&mu_);
  serving_ = served.get();
  voter_server_ = std::move(served);
  return absl::OkStatus();
}

void JoinLink::EndVoterStreams(const absl::Status& why) {
  if (RendezvousServer* const server = serving_) server->EndStreams(why);
  standby_.EndStreams(why);
}

void JoinLink::Led(const VoterMembers& places) {
  MutexLock lock(&mu_);
  if (turning_ != nullptr) turning_->LedBy(places);
}

void JoinLink::Reconsider(const Resolved& found) {
  const auto local = ListLocalAddresses();
  HostingVerdict verdict =
      DecideHosting(spec_, found, local.value_or(std::vector<LocalAddress>()), HostName());
  bool listen = false;
  {
    MutexLock lock(&mu_);
    resolved_ = found;
    listen = own_ == nullptr && verdict.role == HostingRole::kHosts &&
             spec_.mode == JobMode::kEndpoint && !port_was_taken_ && !client_->contacted();
    verdict_ = verdict;
    if (verdict.role != HostingRole::kJoins) WatchEndpointLocked();
  }
  if (listen) Listen(verdict);
}

void JoinLink::WatchEndpointLocked() {
  if (ends_ || watch_ != nullptr || own_ != nullptr || spec_.mode != JobMode::kEndpoint) return;
  watch_ = std::make_unique<EndpointWatch>([this] { return LookAtEndpoint(); });
}

bool JoinLink::LookAtEndpoint() {
  HostingVerdict verdict;
  EndpointSight sight;
  JobVoter* voter = nullptr;
  JobPolicy policy;
  {
    MutexLock lock(&mu_);
    if (own_ != nullptr) return true;
    verdict = verdict_;
    sight = {verdict.role, client_->contacted(), policy_ && !voters_.empty()};
    voter = voter_.get();
    if (policy_) policy = *policy_;
  }
  if (standby_.serves() && !standby_.guides()) return true;
  if (standby_.serves() && voter == nullptr) return false;
  switch (DecideEndpointDuty(spec_, sight)) {
    case EndpointDuty::kNothing:
      return false;
    case EndpointDuty::kFound:
      Listen(verdict);
      return false;
    case EndpointDuty::kStandBy:
      break;
  }
  if (const absl::Status stands = standby_.Begin(verdict, policy, voter); !stands.ok()) {
    LogDebug(absl::StrCat("not standing by at the endpoint: ", stands.message()));
  }
  return false;
}

void JoinLink::Listen(const HostingVerdict& verdict) {
  auto own = Open(verdict);
  if (!own.ok()) return LogDebug(absl::StrCat("not hosting: ", own.status().message()));
  LogDebug(absl::StrCat("listening on port ", spec_.endpoint.port, ": ", verdict.reason));
  MutexLock lock(&mu_);
  own_ = std::move(own).value();
}

absl::StatusOr<std::unique_ptr<OwnRendezvous>> JoinLink::Open(const HostingVerdict& verdict) {
  HLAUNCH_ASSIGN_OR_RETURN(ListeningSocket listening,
                           hlaunch::Listen(verdict.bind_address, spec_.endpoint.port));
  std::optional<std::string> address;
  {
    MutexLock lock(&mu_);
    address = OwnReachableAddress(spec_, resolved_);
  }
  std::optional<VoterMember> self;
  if (address && KeepsRecordAmongAgents(spec_)) {
    self = VoterMember{incarnation_, HostName(), HostPort(*address, endpoint_.port)};
  }
  return OwnRendezvous::Start(
      spec_, endpoint_.trust, std::move(listening), self,
      [this] { EndVoterStreams(absl::UnavailableError("another node leads")); }, [] {},
      [this](const VoterMembers& places) { Led(places); });
}

std::optional<std::string> JoinLink::WayHome() const {
  MutexLock lock(&mu_);
  if (own_ == nullptr || !own_->has_job()) return std::nullopt;
  return verdict_.bind_address.empty() ? "127.0.0.1" : verdict_.bind_address;
}

}  // namespace hlaunch
