// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/grpc_link.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/worker/keeper.h"
#include "launcher/grpc/ask.h"
#include "launcher/grpc/own_rendezvous.h"
#include "launcher/job/credentials.h"
#include "launcher/job/hosting.h"
#include "launcher/job/join_command.h"
#include "launcher/node/first_answer.h"
#include "launcher/words/environment.h"
#include "launcher/words/programs.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/grpc/grpc_rendezvous_client.h"
#include "rendezvous/job/local_rendezvous_client.h"
#include "rendezvous/listening/listen.h"
#include "rendezvous/listening/local_addresses.h"
#include "rendezvous/listening/lookup.h"
#include "rendezvous/listening/route.h"
#include "rendezvous/trust/trust.h"

namespace hlaunch {
namespace {

constexpr int kObituaryWords = 7;  // argv[0], the word, host, port, job, node, incarnation.
constexpr Duration kObituaryTime = std::chrono::seconds(4);
// How long the owner of a port on this very host may take to answer as a rendezvous.
constexpr Duration kNeighbourPatience = std::chrono::seconds(5);
constexpr int kPortsToTry = 100;
// How long the decision who hosts waits for the resolver; what comes later is acted on as it comes.
constexpr Duration kShortLook = std::chrono::milliseconds(200);
constexpr Duration kLongLook = std::chrono::seconds(10);
constexpr Duration kConnectPatience = std::chrono::milliseconds(300);

// "a" or, where there are several services, "a:29400,b:29400".
std::string AllEndpoints(const JobSpec& spec) {
  if (spec.other_endpoints.empty()) return spec.endpoint.host;
  std::string all = HostPort(spec.endpoint);
  for (const Endpoint& other : spec.other_endpoints) absl::StrAppend(&all, ",", HostPort(other));
  return all;
}

// The other way round. Requires: AllEndpoints wrote `text`, whose first port is `port`.
absl::StatusOr<RendezvousEndpoint> EndpointIn(const std::string& text, uint16_t port,
                                              const Trust& trust) {
  if (!absl::StrContains(text, ',')) return RendezvousEndpoint{text, port, trust, {}};
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<Endpoint> all, ParseEndpoints(text, port));
  const Endpoint first = all.front();
  all.erase(all.begin());
  return RendezvousEndpoint{first.host, first.port, trust, PlacesOf(all)};
}

// The node that hosts and joins by plain calls.
class HostLink final : public NodeLink {
 public:
  static absl::StatusOr<std::unique_ptr<NodeLink>> Make(const JobSpec& spec, const Trust& trust,
                                                        HostingVerdict verdict,
                                                        ListeningSocket listening) {
    HLAUNCH_ASSIGN_OR_RETURN(auto own, OwnRendezvous::Start(spec, trust, std::move(listening)));
    return std::unique_ptr<NodeLink>(new HostLink(spec, std::move(verdict), std::move(own)));
  }

  ~HostLink() override { own_->Shutdown(); }

  RendezvousClient& client() override { return client_; }
  bool hosts() const override { return true; }
  std::string Belief(Duration waited) const override {
    const bool lonely = own_->alone(0) && spec_.mode != JobMode::kListenAndPrint;
    return lonely ? ExplainLoneliness(spec_, verdict_, waited) : "";
  }
  uint16_t shared_store_port() const override { return own_->store_port(); }
  bool port_was_taken() const override { return false; }
  void End(const Outcome& outcome) override { own_->job().End(outcome); }
  std::vector<std::string> AwaitOthers(Instant deadline) override {
    return own_->job().AwaitAllFinished(deadline);
  }
  Obituary obituary(const NodeInfo&) const override {
    return {};
  }  // Nobody would be left to hear it.

 private:
  HostLink(const JobSpec& spec, HostingVerdict verdict, std::unique_ptr<OwnRendezvous> own)
      : spec_(spec), verdict_(std::move(verdict)), own_(std::move(own)), client_(own_->job()) {}

  const JobSpec spec_;
  const HostingVerdict verdict_;
  const std::unique_ptr<OwnRendezvous> own_;
  LocalRendezvousClient client_;
};

// The node that joins where the endpoint leads. Where that may be here, because this node offers to
// host or the name turns out to be its own, a rendezvous listens in this process besides: without
// nodes if somebody else hosts. So there is one rendezvous, whatever each node believes.
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
    if (spec.mode == JobMode::kEndpoint && !port_was_taken) {
      if (verdict_.role == HostingRole::kOffers) Listen(verdict_);
      options.detour = [this] { return WayHome(); };
    }
    options.on_lookup = [this](const Resolved& found) { Reconsider(found); };
    client_.emplace(std::move(options));
  }

  RendezvousClient& client() override { return *client_; }
  bool hosts() const override {
    MutexLock lock(&mu_);
    return own_ != nullptr && own_->has_job();
  }
  uint16_t shared_store_port() const override { return 0; }
  bool port_was_taken() const override { return port_was_taken_; }

  std::string Belief(Duration waited) const override {
    if (port_was_taken_) return "";
    Silence silence;
    HostingVerdict verdict;
    {
      MutexLock lock(&mu_);
      verdict = verdict_;
      silence.resolved = resolved_;
      silence.listens = own_ != nullptr;
      if (client_->contacted()) {
        const bool alone = own_ != nullptr && own_->alone(1);
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
    if (OwnRendezvous* own = Own()) own->job().End(outcome);
  }
  std::vector<std::string> AwaitOthers(Instant deadline) override {
    OwnRendezvous* own = Own();
    return own ? own->job().AwaitAllFinished(deadline) : std::vector<std::string>();
  }
  Obituary obituary(const NodeInfo& info) const override {
    Obituary obituary;
    // A program that was sent here has no file; the keeper is the same one then.
    const std::string path = PathOfThisProgram();
    obituary.argv = {::access(path.c_str(), X_OK) == 0 ? path : kThisProgram,
                     kObituaryWord,
                     AllEndpoints(spec_),
                     absl::StrCat(endpoint_.port),
                     info.job_id,
                     info.node_id,
                     absl::StrCat(info.incarnation)};
    obituary.env = EnvironmentOf(spec_.certificates, spec_.tls);
    if (!spec_.token.empty()) obituary.env.push_back(absl::StrCat(kEnvToken, "=", spec_.token));
    return obituary;
  }

 private:
  // The rendezvous here; it stays once it is there.
  OwnRendezvous* Own() const {
    MutexLock lock(&mu_);
    return own_.get();
  }

  // Called by the client from its thread, as WayHome. What a name leads to may change: it gets
  // known late, or a virtual address moves here.
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
    }
    if (listen) Listen(verdict);
  }

  // A port that is taken is no error: another agent of this host may host, or another program may
  // be here while the endpoint leads elsewhere.
  void Listen(const HostingVerdict& verdict) {
    auto own = Open(verdict);
    if (!own.ok()) return LogDebug(absl::StrCat("not hosting: ", own.status().message()));
    LogDebug(absl::StrCat("listening on port ", spec_.endpoint.port, ": ", verdict.reason));
    MutexLock lock(&mu_);
    own_ = std::move(own).value();
  }

  absl::StatusOr<std::unique_ptr<OwnRendezvous>> Open(const HostingVerdict& verdict) const {
    HLAUNCH_ASSIGN_OR_RETURN(ListeningSocket listening,
                             hlaunch::Listen(verdict.bind_address, spec_.endpoint.port));
    return OwnRendezvous::Start(spec_, endpoint_.trust, std::move(listening));
  }

  // Nodes were led here and this one is not: most often a NAT that does not turn its own traffic.
  std::optional<std::string> WayHome() const {
    MutexLock lock(&mu_);
    if (own_ == nullptr || !own_->has_job()) return std::nullopt;
    return verdict_.bind_address.empty() ? "127.0.0.1" : verdict_.bind_address;
  }

  const JobSpec spec_;
  const bool port_was_taken_;
  const RendezvousEndpoint endpoint_;
  mutable Mutex mu_;
  HostingVerdict verdict_ ABSL_GUARDED_BY(mu_);  // By what is known now.
  Resolved resolved_ ABSL_GUARDED_BY(mu_) =
      absl::UnavailableError("no name server has answered yet");
  std::unique_ptr<OwnRendezvous> own_ ABSL_GUARDED_BY(mu_);
  std::optional<GrpcRendezvousClient> client_;  // Last: it calls, and its last word is heard here.
};

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
  const JoinCommand join = MakeJoinCommand(options, spec, {*address, listening->port});
  const int others = spec.policy.max_nodes - 1;
  // Said with --quiet as well: without it nobody can join.
  LogWarning(absl::StrCat(
      "listening; on ",
      others == 1 ? "the other host" : absl::StrCat("each of the ", others, " other hosts"),
      " run:\n    ", join.command));
  if (!join.hint.empty()) LogWarning(join.hint);
  return HostLink::Make(spec, trust, DecideHosting(spec, absl::UnavailableError(""), local, ""),
                        std::move(listening).value());
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeLink>> ConnectByGrpc(const JobSpec& spec,
                                                        const Options& options) {
  const absl::StatusOr<Trust> usable = Trust::Of(spec.token, spec.certificates, spec.tls);
  if (!usable.ok()) return absl::UnauthenticatedError(usable.status().message());
  const Trust& trust = *usable;
  if (spec.mode == JobMode::kListenAndPrint) return ListenAndPrint(spec, trust, options);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<LocalAddress> local, ListLocalAddresses());
  const auto lookup = Lookup::Start(spec.endpoint.host);
  // Where the store shares the port the decision cannot be taken later; a rank decides by itself.
  const bool now_or_never = spec.mode == JobMode::kStatic && !spec.node.rank.has_value();
  const Resolved found =
      FirstAnswer(*lookup, spec.worker.signals_to_handle, now_or_never ? kLongLook : kShortLook);
  const HostingVerdict verdict = DecideHosting(spec, found, local, HostName());
  LogDebug(verdict.reason);
  if (verdict.role != HostingRole::kHosts) {
    return std::make_unique<JoinLink>(spec, trust, verdict, lookup, false);
  }
  absl::StatusOr<ListeningSocket> listening = Listen(verdict.bind_address, spec.endpoint.port);
  if (listening.ok()) return HostLink::Make(spec, trust, verdict, std::move(listening).value());
  if (!absl::IsAlreadyExists(listening.status())) return listening.status();
  // Another agent of this host may have been first, or the port is somebody else's: its answer
  // tells.
  LogDebug(absl::StrCat(listening.status().message(), "; asking who that is"));
  return std::make_unique<JoinLink>(spec, trust, verdict, lookup, true);
}

int SendObituary(int argc, char** argv) {
  int port = 0;
  Incarnation incarnation = 0;
  if (argc != kObituaryWords || !absl::SimpleAtoi(argv[3], &port) ||
      !absl::SimpleAtoi(argv[6], &incarnation)) {
    LogError(absl::StrCat(kObituaryWord, " is for hlaunch's own use; see hlaunch --help"));
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
  const char* reason = std::getenv(kEnvObituaryReason);
  const absl::Status told = ReportNodeDeath(*endpoint, argv[4], argv[5], incarnation,
                                            reason == nullptr ? "its agent was killed" : reason,
                                            MonotonicClock().Now() + kObituaryTime);
  if (told.ok()) return kExitOk;
  LogWarning(absl::StrCat("cannot tell the rendezvous that this node is gone: ", told.message()));
  return kExitRendezvousLost;
}

}  // namespace hlaunch
