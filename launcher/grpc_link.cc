// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc_link.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launcher/hosting.h"
#include "launcher/join_command.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/c10d_server.h"
#include "rendezvous/grpc_rendezvous_client.h"
#include "rendezvous/job_rendezvous.h"
#include "rendezvous/jobs.h"
#include "rendezvous/listen.h"
#include "rendezvous/local_rendezvous_client.h"
#include "rendezvous/rendezvous_server.h"
#include "rendezvous/route.h"

namespace hlaunch {
namespace {

constexpr char kObituaryFlag[] = "--obituary";
constexpr int kObituaryWords = 7;  // argv[0], the flag, host, port, job, node, incarnation.
constexpr Duration kObituaryTime = std::chrono::seconds(4);
constexpr Duration kShutdownGrace = std::chrono::seconds(1);
// How long the owner of a port on this very host may take to answer as a rendezvous.
constexpr Duration kNeighbourPatience = std::chrono::seconds(5);
constexpr int kPortsToTry = 100;

// The rendezvous in this process.
class HostLink final : public NodeLink {
 public:
  static absl::StatusOr<std::unique_ptr<NodeLink>> Make(const JobSpec& spec,
                                                        ListeningSocket listening) {
    std::unique_ptr<HostLink> link(new HostLink);
    JobRules rules = RulesOf(spec);
    RendezvousServer::Options options;
    if (spec.mode == JobMode::kStatic) {
      HLAUNCH_ASSIGN_OR_RETURN(link->store_, C10dServer::Start(std::nullopt));
      link->store_port_ = listening.port;
      rules.before_round = [store = link->store_.get()](Round) { store->Reset(); };
      options.c10d = [store = link->store_.get()](UniqueFd fd) { store->Adopt(std::move(fd)); };
    }
    link->rendezvous_.emplace(std::move(rules), MonotonicClock());
    link->jobs_ = MakeOneJob(spec.job_id, *link->rendezvous_);
    options.listener = std::move(listening.fd);
    options.token = spec.token;
    HLAUNCH_ASSIGN_OR_RETURN(link->server_,
                             RendezvousServer::Start(std::move(options), *link->jobs_));
    link->client_.emplace(*link->rendezvous_);
    return link;
  }

  ~HostLink() override {
    if (server_) server_->Shutdown(kShutdownGrace);
  }

  RendezvousClient& client() override { return *client_; }
  bool hosts() const override { return true; }
  uint16_t shared_store_port() const override { return store_port_; }
  bool port_was_taken() const override { return false; }
  void End(const Outcome& outcome) override { rendezvous_->End(outcome); }
  std::vector<std::string> AwaitOthers(Instant deadline) override {
    return rendezvous_->AwaitAllFinished(deadline);
  }
  Obituary obituary(const NodeInfo&) const override {
    return {};
  }  // Nobody would be left to hear it.

 private:
  HostLink() = default;

  // In the order in which they may be destroyed last to first.
  std::unique_ptr<C10dServer> store_;  // Null: workers get a port of their own.
  uint16_t store_port_ = 0;
  std::optional<JobRendezvous> rendezvous_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<RendezvousServer> server_;
  std::optional<LocalRendezvousClient> client_;
};

// The rendezvous elsewhere.
class JoinLink final : public NodeLink {
 public:
  JoinLink(RendezvousEndpoint endpoint, Duration join_timeout, bool port_was_taken)
      : endpoint_(std::move(endpoint)),
        port_was_taken_(port_was_taken),
        client_({endpoint_, join_timeout}) {}

  RendezvousClient& client() override { return client_; }
  bool hosts() const override { return false; }
  uint16_t shared_store_port() const override { return 0; }
  bool port_was_taken() const override { return port_was_taken_; }
  void End(const Outcome&) override {}
  std::vector<std::string> AwaitOthers(Instant) override { return {}; }
  Obituary obituary(const NodeInfo& info) const override {
    std::error_code error;
    Obituary obituary;
    obituary.argv = {std::filesystem::read_symlink("/proc/self/exe", error).string(),
                     kObituaryFlag,
                     endpoint_.host,
                     absl::StrCat(endpoint_.port),
                     info.job_id,
                     info.node_id,
                     absl::StrCat(info.incarnation)};
    if (!endpoint_.token.empty()) {
      obituary.env = {absl::StrCat(kEnvToken, "=", endpoint_.token)};
    }
    return obituary;
  }

 private:
  const RendezvousEndpoint endpoint_;
  const bool port_was_taken_;
  GrpcRendezvousClient client_;
};

// Takes the first free port from `spec.endpoint.port` on and tells the person what to run.
absl::StatusOr<std::unique_ptr<NodeLink>> ListenAndPrint(const JobSpec& spec,
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
  return HostLink::Make(spec, std::move(listening).value());
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeLink>> ConnectByGrpc(const JobSpec& spec,
                                                        const Options& options) {
  if (spec.mode == JobMode::kListenAndPrint) return ListenAndPrint(spec, options);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<LocalAddress> local, ListLocalAddresses());
  // A rank that never hosts need not wait for the resolver here.
  const bool never = spec.mode == JobMode::kStatic && spec.node_rank.value_or(0) != 0;
  const HostingVerdict verdict = DecideHosting(
      spec, never ? absl::UnavailableError("not asked") : ResolveHost(spec.endpoint.host), local,
      HostName());
  LogDebug(verdict.reason);
  const RendezvousEndpoint endpoint = {spec.endpoint.host, spec.endpoint.port, spec.token};
  if (!verdict.hosts) return std::make_unique<JoinLink>(endpoint, spec.policy.join_timeout, false);
  absl::StatusOr<ListeningSocket> listening = Listen(verdict.bind_address, spec.endpoint.port);
  if (listening.ok()) return HostLink::Make(spec, std::move(listening).value());
  if (!absl::IsAlreadyExists(listening.status())) return listening.status();
  // Another agent of this host may have been first, or the port is somebody else's: its answer
  // tells.
  LogDebug(absl::StrCat(listening.status().message(), "; asking who that is"));
  return std::make_unique<JoinLink>(endpoint,
                                    std::min(spec.policy.join_timeout, kNeighbourPatience), true);
}

bool IsObituary(int argc, char** argv) {
  return argc == kObituaryWords && absl::string_view(argv[1]) == kObituaryFlag;
}

int SendObituary(int /*argc*/, char** argv) {
  int port = 0;
  Incarnation incarnation = 0;
  if (!absl::SimpleAtoi(argv[3], &port) || !absl::SimpleAtoi(argv[6], &incarnation)) {
    return kExitUsage;
  }
  const char* token = std::getenv(kEnvToken);
  const RendezvousEndpoint endpoint = {argv[2], static_cast<uint16_t>(port),
                                       token == nullptr ? "" : token};
  const absl::Status told =
      ReportNodeDeath(endpoint, argv[4], argv[5], incarnation, "its agent was killed",
                      MonotonicClock().Now() + kObituaryTime);
  if (told.ok()) return kExitOk;
  LogWarning(absl::StrCat("cannot tell the rendezvous that this node is gone: ", told.message()));
  return kExitRendezvousLost;
}

}  // namespace hlaunch
