// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/grpc_link.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/workers/process/thread_room.h"
#include "agent/workers/worker/keeper.h"
#include "launcher/grpc/ask.h"
#include "launcher/grpc/endpoint_watch.h"
#include "launcher/grpc/host_client.h"
#include "launcher/grpc/own_rendezvous.h"
#include "launcher/grpc/shutdown_grace.h"
#include "launcher/job/spec/credentials.h"
#include "launcher/job/spec/hosting.h"
#include "launcher/job/spec/join_command.h"
#include "launcher/node/first_answer.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/text/environment.h"
#include "launcher/text/programs.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/failover/voters/job_voter.h"
#include "rendezvous/job/local_rendezvous_client.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/round/values/master_address.h"
#include "rendezvous/rpc/client/grpc_rendezvous_client.h"
#include "rendezvous/rpc/client/report_node_death.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {
namespace {

constexpr int kDeathReportWords = 7;  // argv[0], the word, host, port, job, node, incarnation.
constexpr Duration kDeathReportTime = std::chrono::seconds(4);
// The owner of a port on this host may take this long to answer as a rendezvous.
constexpr Duration kNeighbourPatience = std::chrono::seconds(5);
constexpr int kPortsToTry = 100;
// The decision which node hosts waits this long for the resolver. A later answer is used when it
// comes.
constexpr Duration kShortLook = std::chrono::milliseconds(200);
constexpr Duration kLongLook = std::chrono::seconds(10);
constexpr Duration kConnectPatience = std::chrono::milliseconds(300);

// As in "a" or, if there are several services, "a:29400,b:29400".
std::string AllEndpoints(const JobSpec& spec) {
  if (spec.other_endpoints.empty()) return spec.endpoint.host;
  std::string all = HostPort(spec.endpoint);
  for (const Endpoint& other : spec.other_endpoints) absl::StrAppend(&all, ",", HostPort(other));
  return all;
}

// The reverse of AllEndpoints. Requires: AllEndpoints wrote `text`, whose first port is `port`.
absl::StatusOr<RendezvousEndpoint> EndpointIn(const std::string& text, uint16_t port,
                                              const Trust& trust) {
  if (!absl::StrContains(text, ',')) return RendezvousEndpoint{text, port, trust, {}};
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<Endpoint> all, ParseEndpoints(text, port));
  const Endpoint first = all.front();
  all.erase(all.begin());
  return RendezvousEndpoint{first.host, first.port, trust, PlacesOf(all)};
}

// Whether the job's own agents keep its record. They do not if the workers' store shares the port
// of the rendezvous, because the store would stay behind.
bool KeepsRecordAmongAgents(const JobSpec& spec) {
  return HasVoters(spec.policy) && spec.other_endpoints.empty() &&
         (spec.mode != JobMode::kStatic || spec.worker_store);
}

// The first address of an endpoint that other hosts can reach; unset if none is known.
std::optional<std::string> ReachableAt(const Resolved& found) {
  if (!found.ok()) return std::nullopt;
  for (const std::string& address : *found) {
    if (!IsLoopback(address)) return address;
  }
  return std::nullopt;
}

// The address at which other nodes reach this host, which owns the endpoint; unset if unknown. On
// the host itself, its own name often resolves to a loopback address.
std::optional<std::string> OwnReachableAddress(const JobSpec& spec, const Resolved& found) {
  if (const auto address = ReachableAt(found)) return address;
  const bool only_here = IsLoopbackLiteral(spec.endpoint.host) || spec.endpoint.host == "localhost";
  if (only_here && found.ok() && !found->empty()) return found->front();
  return PickReachableAddress(DefaultRouteAddress(),
                              ListLocalAddresses().value_or(std::vector<LocalAddress>()));
}

// The command with which a keeper reports this node's death to a rendezvous at `places`.
NodeLink::DeathReport DeathReportFor(const JobSpec& spec, const std::string& places, uint16_t port,
                                     const NodeInfo& info) {
  NodeLink::DeathReport death_report;
  // A program that was pushed to this host has no file. The keeper runs the same program then.
  const std::string path = PathOfThisProgram();
  death_report.argv = {::access(path.c_str(), X_OK) == 0 ? path : kThisProgram,
                       kDeathReportWord,
                       places,
                       absl::StrCat(port),
                       info.job_id,
                       info.node_id,
                       absl::StrCat(info.incarnation)};
  death_report.env = EnvironmentOf(spec.certificates, spec.tls);
  if (!spec.token.empty()) death_report.env.push_back(absl::StrCat(kEnvToken, "=", spec.token));
  return death_report;
}

// As in "10.0.0.2:40001,10.0.0.3:40005".
std::string PlacesOf(const VoterMembers& voters) {
  return absl::StrJoin(voters, ",", [](std::string* out, const VoterMember& one) {
    absl::StrAppend(out, one.address);
  });
}

// Returns what tells `others` that this node is dead. Whoever leads them, or will, has then heard
// it.
NodeLink::TellDeath DeathOf(const VoterMembers& others, const Trust& trust, const NodeInfo& info,
                            const std::string& why) {
  if (others.empty()) return nullptr;
  const VoterAddress first = SplitAddress(others.front().address);
  RendezvousEndpoint places{first.literal, first.port, trust, {}};
  for (const VoterMember& other : Without(others, others.front().incarnation)) {
    const VoterAddress address = SplitAddress(other.address);
    places.others.emplace_back(address.literal, address.port);
  }
  return [places, job_id = info.job_id, node_id = info.node_id, incarnation = info.incarnation,
          why](Instant deadline) mutable {
    const absl::Status told = ReportNodeDeath(places, job_id, node_id, incarnation, why, deadline);
    if (!told.ok()) LogDebug(absl::StrCat("the death of this node: ", told.message()));
    // The next call begins with another one, since this one may have taken all the time.
    places.others.emplace_back(places.host, places.port);
    std::tie(places.host, places.port) = places.others.front();
    places.others.erase(places.others.begin());
    return told.ok() || absl::IsAborted(told);
  };
}

// `job` is null if the job is decided elsewhere.
std::optional<JobStatus> StatusOf(const std::shared_ptr<JobRendezvous>& job) {
  if (job == nullptr) return std::nullopt;
  return job->Status();
}

// The link of the node that hosts. It joins by plain calls, and over the network once another node
// leads.
class HostLink final : public NodeLink {
 public:
  // `address`: where other hosts reach this host; unset: they reach it only by the endpoint.
  static absl::StatusOr<std::unique_ptr<NodeLink>> Make(const JobSpec& spec, const Trust& trust,
                                                        HostingVerdict verdict,
                                                        ListeningSocket listening,
                                                        const std::optional<std::string>& address) {
    std::unique_ptr<HostLink> link(new HostLink(spec, trust, std::move(verdict), listening.port));
    link->own_address_ = address.value_or("127.0.0.1");
    HLAUNCH_RETURN_IF_ERROR(link->Open(std::move(listening), address));
    return std::unique_ptr<NodeLink>(std::move(link));
  }

  ~HostLink() override {
    CallNobody();
    if (own_ != nullptr) own_->Shutdown();  // Null if it was not started or has ended.
  }

  RendezvousClient& client() override { return *client_; }
  bool hosts() const override { return own_->leads(); }
  std::optional<JobStatus> Status() const override { return StatusOf(own_->led_job()); }
  std::string Belief(Duration waited) const override {
    const bool lonely = own_->leads() && own_->alone(0) && spec_.mode != JobMode::kListenAndPrint;
    return lonely ? ExplainLoneliness(spec_, verdict_, waited) : "";
  }
  std::string meeting_places() const override {
    if (const VoterMembers voters = own_->voters(); !voters.empty()) return PlacesOf(voters);
    // Nobody named a place.
    return spec_.mode == JobMode::kListenAndPrint ? HostPort(own_address_, port_) : "";
  }
  uint16_t shared_store_port() const override { return own_->store_port(); }
  bool port_was_taken() const override { return false; }
  void End(const Outcome& outcome) override { own_->led_job()->End(outcome); }
  std::vector<std::string> AwaitOthers(Instant deadline) override {
    return own_->led_job()->AwaitAllFinished(deadline);
  }
  bool outlived() const override { return own_->outlived(); }
  TellDeath Die(const NodeInfo& info, const std::string& why) override {
    const VoterMembers others = Without(own_->voters(), incarnation_);
    CallNobody();
    client_.reset();
    own_.reset();
    return DeathOf(others, trust_, info, why);
  }
  // Empty while no other node could take over.
  DeathReport death_report(const NodeInfo& info) const override {
    const VoterMembers others = Without(own_->voters(), incarnation_);
    if (others.empty()) return {};
    const VoterAddress first = SplitAddress(others.front().address);
    return DeathReportFor(spec_, others.size() == 1 ? first.literal : PlacesOf(others), first.port,
                          info);
  }
  void Complete(NodeInfo& info) override {
    if (!self_) return;
    info.incarnation = incarnation_;
    info.voter_port = port_;
    if (info.address.empty()) info.address = SplitAddress(self_->address).literal;
  }
  void WatchDeathReport(std::function<void()> changed) override {
    MutexLock lock(&mu_);
    death_report_changed_ = std::move(changed);
  }

 private:
  HostLink(const JobSpec& spec, const Trust& trust, HostingVerdict verdict, uint16_t port)
      : spec_(spec), trust_(trust), verdict_(std::move(verdict)), port_(port) {}

  absl::Status Open(ListeningSocket listening, const std::optional<std::string>& address) {
    if (KeepsRecordAmongAgents(spec_) && address) {
      self_ = VoterMember{incarnation_, HostName(), HostPort(*address, port_)};
    }
    HLAUNCH_ASSIGN_OR_RETURN(own_, OwnRendezvous::Start(
                                       spec_, trust_, std::move(listening), self_,
                                       [this] { Lost(); }, [this] { TellDeathReportChanged(); },
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

  // CallNobody ends the calls of the two below. The rendezvous calls those from its own threads.
  void CallNobody() {
    MutexLock lock(&mu_);
    leaving_ = nullptr;
    death_report_changed_ = nullptr;
  }
  void Lost() {
    MutexLock lock(&mu_);
    lost_ = true;
    if (leaving_ != nullptr) leaving_->Leave();
  }
  void Led(const VoterMembers& places) {
    MutexLock lock(&mu_);
    if (leaving_ != nullptr) leaving_->LedBy(places);
  }
  void TellDeathReportChanged() {
    std::function<void()> changed;
    {
      MutexLock lock(&mu_);
      changed = death_report_changed_;
    }
    if (changed) changed();
  }

  const JobSpec spec_;
  const Trust trust_;
  const HostingVerdict verdict_;
  const uint16_t port_;
  std::string own_address_;  // By which other hosts reach this host, if that is known.
  const Incarnation incarnation_ = NewIncarnation();
  std::optional<VoterMember> self_;  // Unset: the job ends with this node.
  Mutex mu_;
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> death_report_changed_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<OwnRendezvous> own_;
  HostClient* leaving_ ABSL_GUARDED_BY(mu_) = nullptr;  // client_, while it may be called.
  std::unique_ptr<RendezvousClient> client_;
};

// The link of a node that joins where the endpoint leads. The endpoint may lead to this host: this
// node offers to host, or the name turns out to be its own. Then a rendezvous listens in this
// process too; it gets no nodes if another node hosts. So there is one rendezvous, whatever each
// node believes. If the port is taken, this node listens once it is free.
class JoinLink final : public NodeLink {
 public:
  JoinLink(const JobSpec& spec, const Trust& trust, HostingVerdict verdict,
           std::shared_ptr<Lookup> lookup, bool port_was_taken)
      : spec_(spec),
        port_was_taken_(port_was_taken),
        endpoint_({spec.endpoint.host, spec.endpoint.port, trust, PlacesOf(spec.other_endpoints)}),
        verdict_(std::move(verdict)) {
    GrpcRendezvousClient::Options options;
    options.endpoint = endpoint_;
    options.join_timeout = spec.policy.join_timeout;
    if (port_was_taken) options.answer_timeout = kNeighbourPatience;
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

  ~JoinLink() override { Stop(); }

  RendezvousClient& client() override { return *client_; }
  bool hosts() const override { return LedHere() != nullptr; }
  std::optional<JobStatus> Status() const override { return StatusOf(LedHere()); }
  uint16_t shared_store_port() const override { return 0; }
  bool port_was_taken() const override {
    MutexLock lock(&mu_);
    return port_was_taken_ && own_ == nullptr;
  }

  std::string Belief(Duration waited) const override {
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

  void End(const Outcome& outcome) override {
    if (const auto job = LedHere()) job->End(outcome);
  }
  std::vector<std::string> AwaitOthers(Instant deadline) override {
    const auto job = LedHere();
    return job ? job->AwaitAllFinished(deadline) : std::vector<std::string>();
  }
  // The order to run a round comes with the voters.
  bool round_begun() const override {
    MutexLock lock(&mu_);
    return !KeepsRecordAmongAgents(spec_) || !voters_.empty();
  }
  bool outlived() const override {
    const JobVoter* voter = LeadingVoter();
    MutexLock lock(&mu_);
    if (voter != nullptr) return voter->Outlived();
    return own_ != nullptr && own_->outlived();
  }
  TellDeath Die(const NodeInfo& info, const std::string& why) override {
    VoterMembers others;
    {
      MutexLock lock(&mu_);
      others = voter_ != nullptr ? voter_->Places() : voters_;
      if (others.empty() && own_ != nullptr) others = own_->voters();
    }
    Stop();
    return DeathOf(Without(others, incarnation_), endpoint_.trust, info, why);
  }
  std::string meeting_places() const override {
    MutexLock lock(&mu_);
    const VoterMembers voters = voter_ != nullptr ? voter_->Places() : voters_;
    return voters.empty() ? "" : absl::StrCat(PlacesOf(voters), ",", AllEndpoints(spec_));
  }
  DeathReport death_report(const NodeInfo& info) const override {
    std::string places = AllEndpoints(spec_);
    MutexLock lock(&mu_);
    const VoterMembers others = Without(voters_, incarnation_);
    if (!others.empty()) places = absl::StrCat(PlacesOf(others), ",", HostPort(spec_.endpoint));
    return DeathReportFor(spec_, places, endpoint_.port, info);
  }
  void Complete(NodeInfo& info) override {
    info.incarnation = incarnation_;
    info.voter_port = voter_port_;
  }
  void WatchDeathReport(std::function<void()> changed) override {
    MutexLock lock(&mu_);
    death_report_changed_ = std::move(changed);
  }

 private:
  void Stop() {
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
    if (endpoint_server_ != nullptr) endpoint_server_->Shutdown(kShutdownGrace);
    voter.reset();  // Both may end the servers' streams until then.
    own.reset();
  }

  // Each is null if there is none, stays once it is set, and outlives the client.
  JobVoter* Voter() const {
    MutexLock lock(&mu_);
    return voter_.get();
  }
  OwnRendezvous* Own() const {
    MutexLock lock(&mu_);
    return own_.get();
  }

  // Null if the voter does not lead or there is none.
  JobVoter* LeadingVoter() const {
    JobVoter* const voter = Voter();
    return voter != nullptr && voter->leads() ? voter : nullptr;
  }

  // The job if it is decided here, else null.
  std::shared_ptr<JobRendezvous> LedHere() const {
    if (JobVoter* const voter = LeadingVoter()) return voter->job();
    OwnRendezvous* const own = Own();
    return own != nullptr && own->has_job() && own->leads() ? own->led_job() : nullptr;
  }

  // The client calls this from its thread.
  void Voters(const JobPolicy& policy, const VoterMembers& voters) {
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

  absl::Status BecomeVoter(const JobPolicy& policy, const VoterMember& self) {
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

  // Serves it at the port that this node has told. A voter of this node's own rendezvous is served
  // at the endpoint, too, but the next leader knows only what the node has told.
  absl::Status ServeVoter(JobVoter& voter) {
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

  void EndVoterStreams(const absl::Status& why) {
    for (RendezvousServer* const server : {serving_.load(), serving_at_endpoint_.load()}) {
      if (server != nullptr) server->EndStreams(why);
    }
  }

  // The voter calls this from its thread.
  void Led(const VoterMembers& places) {
    MutexLock lock(&mu_);
    if (turning_ != nullptr) turning_->LedBy(places);
  }

  // The client calls this and WayHome from its thread. The address of a name may change: it
  // resolves late, or a virtual address moves here.
  void Reconsider(const Resolved& found) {
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

  // The owner of a port that is taken may be about to end, as the agent of a host whose keeper was
  // killed: nobody would listen at the endpoint then, and no node could come any more.
  void WatchEndpointLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (ends_ || watch_ != nullptr || own_ != nullptr || spec_.mode != JobMode::kEndpoint) return;
    watch_ = std::make_unique<EndpointWatch>([this] { return LookAtEndpoint(); });
  }

  // Returns true if there is nothing more to look for. The watch calls it from its thread.
  bool LookAtEndpoint() {
    HostingVerdict verdict;
    EndpointSight sight;
    const JobVoter* voter = nullptr;
    {
      MutexLock lock(&mu_);
      if (own_ != nullptr) return true;
      verdict = verdict_;
      sight = {verdict.role, client_->contacted(), policy_ && !voters_.empty()};
      voter = voter_.get();
    }
    if (endpoint_server_ != nullptr && guide_ == nullptr) return true;
    if (endpoint_server_ != nullptr && voter == nullptr) return false;
    switch (DecideEndpointDuty(spec_, sight)) {
      case EndpointDuty::kNothing:
        return false;
      case EndpointDuty::kFound:
        Listen(verdict);
        return false;
      case EndpointDuty::kStandBy:
        break;
    }
    if (const absl::Status stands = StandByAtEndpoint(verdict); !stands.ok()) {
      LogDebug(absl::StrCat("not standing by at the endpoint: ", stands.message()));
    }
    return false;
  }

  // Whoever begins a new job there may need the port for a moment, so it must have been free
  // before, too.
  absl::Status StandByAtEndpoint(const HostingVerdict& verdict) {
    const bool guided = std::exchange(endpoint_server_, nullptr) != nullptr;
    guide_.reset();
    auto listening = hlaunch::Listen(verdict.bind_address, spec_.endpoint.port);
    const bool was_free = std::exchange(endpoint_was_free_, listening.ok()) || guided;
    HLAUNCH_RETURN_IF_ERROR(listening.status());
    if (!was_free) return absl::OkStatus();
    JobVoter* voter = Voter();
    std::unique_ptr<JobVoter> guide;
    if (voter == nullptr) {
      // This node may never become a voter. Those who lead the job call to the endpoint.
      JobVoter::Options options;
      {
        MutexLock lock(&mu_);
        options.policy = *policy_;
      }
      options.job_id = spec_.job_id;
      options.self = {NewIncarnation(), HostName(), HostPort(spec_.endpoint)};
      options.trust = endpoint_.trust;
      options.on_lost = [](const absl::Status&) {};
      HLAUNCH_ASSIGN_OR_RETURN(guide, JobVoter::Start(std::move(options)));
      voter = guide.get();
    }
    RendezvousServer::Options server;
    server.listener = std::move(listening->fd);
    server.trust = endpoint_.trust;
    server.voters = voter;
    HLAUNCH_ASSIGN_OR_RETURN(auto served, RendezvousServer::Start(std::move(server), *voter));
    LogDebug(absl::StrCat("standing by on port ", spec_.endpoint.port, ": ", verdict.reason));
    if (guide == nullptr) serving_at_endpoint_ = served.get();
    guide_ = std::move(guide);
    endpoint_server_ = std::move(served);
    return absl::OkStatus();
  }

  // A taken port is no error: another agent of this host may host, or another program may use the
  // port while the endpoint leads elsewhere.
  void Listen(const HostingVerdict& verdict) {
    auto own = Open(verdict);
    if (!own.ok()) return LogDebug(absl::StrCat("not hosting: ", own.status().message()));
    LogDebug(absl::StrCat("listening on port ", spec_.endpoint.port, ": ", verdict.reason));
    MutexLock lock(&mu_);
    own_ = std::move(own).value();
  }

  absl::StatusOr<std::unique_ptr<OwnRendezvous>> Open(const HostingVerdict& verdict) {
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

  // Returns an address of this rendezvous if nodes reached it but this node did not. The cause is
  // most often a NAT that does not route its own traffic back.
  std::optional<std::string> WayHome() const {
    MutexLock lock(&mu_);
    if (own_ == nullptr || !own_->has_job()) return std::nullopt;
    return verdict_.bind_address.empty() ? "127.0.0.1" : verdict_.bind_address;
  }

  const JobSpec spec_;
  const bool port_was_taken_;
  const RendezvousEndpoint endpoint_;
  mutable Mutex mu_;
  HostingVerdict verdict_ ABSL_GUARDED_BY(mu_);  // From what is known now.
  Resolved resolved_ ABSL_GUARDED_BY(mu_) =
      absl::UnavailableError("no name server has answered yet");
  std::unique_ptr<OwnRendezvous> own_ ABSL_GUARDED_BY(mu_);
  // The state as a voter. The socket belongs to the client's thread once that runs.
  const Incarnation incarnation_ = NewIncarnation();
  uint16_t voter_port_ = 0;
  std::optional<ListeningSocket> voter_socket_;
  VoterMembers voters_ ABSL_GUARDED_BY(mu_);              // The job's voters, as last reported.
  std::optional<JobPolicy> policy_ ABSL_GUARDED_BY(mu_);  // As last reported with them.
  std::function<void()> death_report_changed_ ABSL_GUARDED_BY(mu_);
  GrpcRendezvousClient* turning_ ABSL_GUARDED_BY(mu_) =
      nullptr;  // client_, while it may be called.
  std::unique_ptr<JobVoter> voter_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RendezvousServer> voter_server_ ABSL_GUARDED_BY(mu_);
  std::atomic<RendezvousServer*> serving_ = nullptr;  // voter_server_, for its own threads.
  // The state as one that stands by at the endpoint; for the watch's thread while there is one.
  bool endpoint_was_free_ = false;
  std::unique_ptr<JobVoter> guide_;  // Null: voter_ answers there.
  std::unique_ptr<RendezvousServer> endpoint_server_;
  std::atomic<RendezvousServer*> serving_at_endpoint_ = nullptr;  // It, if voter_ answers there.
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<EndpointWatch> watch_ ABSL_GUARDED_BY(mu_);
  std::optional<GrpcRendezvousClient> client_;  // Last: it calls this object until it is gone.
};

// Tells the place where this node listens: to the person, or, for a part of a cluster's job, by a
// file in its folder, from which the node daemon tells the other nodes.
absl::Status TellMeeting(const JobSpec& spec, const Options& options, const Endpoint& here) {
  if (!options.detached_directory.empty()) {
    MeetingPlace place;
    place.endpoint = HostPort(here);
    place.tls = spec.tls ? "on" : "off";
    return KeepMeeting(options.detached_directory, std::move(place), spec.token);
  }
  const JoinCommand join = MakeJoinCommand(options, spec, here);
  const int others = spec.policy.max_nodes - 1;
  // Printed with --quiet too: without this command no node can join.
  LogWarning(absl::StrCat(
      "listening; on ",
      others == 1 ? "the other host" : absl::StrCat("each of the ", others, " other hosts"),
      " run:\n    ", join.command));
  if (!join.hint.empty()) LogWarning(join.hint);
  return absl::OkStatus();
}

// Takes the first free port from `spec.endpoint.port` on and tells the person what to run.
absl::StatusOr<std::unique_ptr<NodeLink>> ListenAndPrint(const JobSpec& spec, const Trust& trust,
                                                         const Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<LocalAddress> local, ListLocalAddresses());
  const auto address = PickReachableAddress(DefaultRouteAddress(), local);
  if (!address) {
    return absl::InvalidArgumentError(
        "this host has no address that others could reach; connect it to a network or name one "
        "with --rdzv-endpoint HOST:PORT");
  }
  absl::StatusOr<ListeningSocket> listening = absl::AlreadyExistsError("");
  for (int i = 0; i < kPortsToTry && absl::IsAlreadyExists(listening.status()); ++i) {
    listening = Listen("", static_cast<uint16_t>(spec.endpoint.port + i));
  }
  if (!listening.ok()) return listening.status();
  HLAUNCH_RETURN_IF_ERROR(TellMeeting(spec, options, {*address, listening->port}));
  return HostLink::Make(spec, trust, DecideHosting(spec, absl::UnavailableError(""), local, ""),
                        std::move(listening).value(), *address);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeLink>> ConnectByGrpc(const JobSpec& spec,
                                                        const Options& options) {
  HLAUNCH_RETURN_IF_ERROR(CheckThreadsOfAgent());
  const absl::StatusOr<Trust> usable = Trust::Of(spec.token, spec.certificates, spec.tls);
  if (!usable.ok()) return absl::UnauthenticatedError(usable.status().message());
  const Trust& trust = *usable;
  if (spec.mode == JobMode::kListenAndPrint) return ListenAndPrint(spec, trust, options);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<LocalAddress> local, ListLocalAddresses());
  const auto lookup = Lookup::Start(spec.endpoint.host);
  // If the store shares the port, the decision cannot be taken later. A given node rank decides it.
  const bool now_or_never = spec.mode == JobMode::kStatic && !spec.node.rank.has_value();
  const Resolved found =
      FirstAnswer(*lookup, spec.worker.signals_to_handle, now_or_never ? kLongLook : kShortLook);
  const HostingVerdict verdict = DecideHosting(spec, found, local, HostName());
  LogDebug(verdict.reason);
  if (verdict.role != HostingRole::kHosts) {
    return std::make_unique<JoinLink>(spec, trust, verdict, lookup, false);
  }
  absl::StatusOr<ListeningSocket> listening = Listen(verdict.bind_address, spec.endpoint.port);
  if (listening.ok()) {
    return HostLink::Make(spec, trust, verdict, std::move(listening).value(),
                          OwnReachableAddress(spec, found));
  }
  if (!absl::IsAlreadyExists(listening.status())) return listening.status();
  // Another agent of this host may have been first, or another program has the port. Its answer
  // tells which.
  LogDebug(absl::StrCat(listening.status().message(), "; asking who that is"));
  return std::make_unique<JoinLink>(spec, trust, verdict, lookup, true);
}

int SendDeathReport(int argc, char** argv) {
  const char* form = std::getenv(kEnvLogForm);
  if (form != nullptr) SetLogForm(form);
  int port = 0;
  Incarnation incarnation = 0;
  if (argc != kDeathReportWords || !absl::SimpleAtoi(argv[3], &port) ||
      !absl::SimpleAtoi(argv[6], &incarnation)) {
    LogError(absl::StrCat(kDeathReportWord, " is for hlaunch's own use; see hlaunch --help"));
    return kExitUsage;
  }
  const char* given = std::getenv(kEnvToken);
  const std::string token = given == nullptr ? "" : given;
  WipeFromEnvironment(kEnvToken);
  ::prctl(PR_SET_DUMPABLE, 0);
  const Environment environment = Environment::OfThisProcess();
  const absl::StatusOr<Trust> trust =
      Trust::Of(token, CertificateFilesIn(environment), TlsIn(environment));
  if (!trust.ok()) {
    LogError(trust.status().message());
    return kExitUsage;
  }
  const absl::StatusOr<RendezvousEndpoint> endpoint =
      EndpointIn(argv[2], static_cast<uint16_t>(port), *trust);
  if (!endpoint.ok()) {
    LogError(endpoint.status().message());
    return kExitUsage;
  }
  const char* reason = std::getenv(kEnvDeathReportReason);
  const absl::Status told = ReportNodeDeath(*endpoint, argv[4], argv[5], incarnation,
                                            reason == nullptr ? "its agent was killed" : reason,
                                            MonotonicClock().Now() + kDeathReportTime);
  if (told.ok()) return kExitOk;
  LogWarning(absl::StrCat("cannot tell the rendezvous that this node is gone: ", told.message()));
  return kExitRendezvousLost;
}

}  // namespace hlaunch
