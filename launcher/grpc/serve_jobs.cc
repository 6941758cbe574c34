// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/serve_jobs.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/watch/observe/metrics_server.h"
#include "agent/workers/process/thread_room.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/command/service_options.h"
#include "launcher/grpc/job_leader.h"
#include "launcher/grpc/link/shutdown_grace.h"
#include "launcher/grpc/shared_place.h"
#include "launcher/job/spec/credentials.h"
#include "launcher/node/descriptors.h"
#include "launcher/node/service_manager.h"
#include "launcher/node/stop_request.h"
#include "launcher/report/status/page_server.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/job/job_registry.h"
#include "rendezvous/job/led_jobs.h"
#include "rendezvous/net/socket/find_host.h"
#include "rendezvous/net/socket/listen_at.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/net/trust/openssl_modules.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/rpc/rendezvous_server.h"

namespace hlaunch {
namespace {

constexpr Duration kStopLimit =
    std::chrono::seconds(15);  // What a stop may take, a slow disk included.

// Why this process cannot start a thread; empty if it can.
std::string WhyNoThread() { return std::string(CheckThreads(1).message()); }

// Called when the stop hangs. Either a file system does not answer, or there is a bug: the journal
// can bear that. Or no thread can be started: gRPC 1.51 counts a thread that it could not start,
// gives it work, and waits for it. All that must survive was written before anyone was told of it,
// so that counts as a normal stop.
void GiveUpStopping() {
  const std::string no_thread = WhyNoThread();
  LogError(absl::StrCat("the stop took longer than ",
                        std::chrono::duration_cast<std::chrono::seconds>(kStopLimit).count(),
                        " s; ending without it", no_thread.empty() ? "" : "; ", no_thread));
  ::_exit(no_thread.empty() ? kExitInternal : kExitOk);
}

absl::StatusOr<ListeningSocket> ListenWhereTold(const Endpoint& endpoint) {
  absl::StatusOr<ListeningSocket> listening = ListenAt(endpoint.host, endpoint.port);
  const bool by_name = !IsAddressLiteral(endpoint.host) && endpoint.host != "localhost";
  if (listening.ok() && by_name && IsLoopbackLiteral(listening->address)) {
    LogWarning(absl::StrCat("--listen ", endpoint.host, " is ", listening->address,
                            " here, which no other host reaches; give an address in digits"));
  }
  return listening;
}

// What is set up between the command line and the server.
struct Beginning {
  std::unique_ptr<Journal> journal;   // Null: nothing is kept, or the place is shared.
  std::optional<SharedPlace> shared;  // Where several services keep their jobs.
  JobRegistry::Options registry;
  Trust trust;
  std::string token;  // Secret; empty: there is none.
};

// Errors: the user can fix each of them.
absl::StatusOr<Beginning> Begin(
    const ServiceOptions& options,
    const std::function<absl::Status(Journal::Step, const std::string&)>& before_step) {
  Beginning beginning;
  HLAUNCH_ASSIGN_OR_RETURN(const Credentials found,
                           FindCredentials({options.token_file, options.certificates, options.tls},
                                           Environment::OfThisProcess(), ReadTokenFile));
  WipeFromEnvironment(kEnvToken);
  HLAUNCH_ASSIGN_OR_RETURN(beginning.trust,
                           Trust::Of(found.token.secret, found.certificates, found.tls));
  if (!beginning.trust.none()) ::prctl(PR_SET_DUMPABLE, 0);
  beginning.token = found.token.secret;
  for (const std::string& warning : found.token.warnings) LogWarning(warning);
  beginning.registry.max_jobs = options.max_jobs;
  HLAUNCH_ASSIGN_OR_RETURN(
      beginning.shared, FindSharedPlace(options, Environment::OfThisProcess(), found.token.secret));
  if (beginning.shared) ::prctl(PR_SET_DUMPABLE, 0);  // `shared` may hold a password or a key.
  if (options.state_directory.empty()) return beginning;
  HLAUNCH_ASSIGN_OR_RETURN(beginning.journal,
                           Journal::Open({options.state_directory, before_step}));
  HLAUNCH_ASSIGN_OR_RETURN(RecordKeeper::Listed listed, beginning.journal->List());
  for (const std::string& warning : listed.warnings) LogWarning(warning);
  beginning.registry.records = std::move(listed.records);
  beginning.registry.keeper = beginning.journal.get();
  return beginning;
}

std::string ReadyLine(const ListeningSocket& listening, const ServiceOptions& options,
                      const Beginning& beginning) {
  const size_t restored = beginning.registry.records.size();
  const std::string kept =
      beginning.shared                  ? absl::StrCat("jobs are kept in ", beginning.shared->words)
      : options.state_directory.empty() ? "jobs end with this service (no --state)"
                                        : absl::StrCat(restored, restored == 1 ? " job" : " jobs",
                                                       " restored from ", options.state_directory);
  return absl::StrCat("listening on ", HostPort(listening.address, listening.port), "; ", kept,
                      "; up to ", options.max_jobs, " jobs and ", DescriptorLimit(),
                      " descriptors, of which every agent takes one");
}

std::string StoppingLine(int going_on, bool kept) {
  if (going_on == 0) return "stopping; no job is going on";
  const bool one = going_on == 1;
  const std::string jobs = absl::StrCat("stopping; ", going_on, one ? " job" : " jobs");
  if (!kept) return absl::StrCat(jobs, " will end: without --state this service forgets them");
  return absl::StrCat(jobs, one ? " goes" : " go",
                      " on: the agents wait for this service until their --loss-limit");
}

std::string Jobs(int going_on) {
  return absl::StrCat(going_on, going_on == 1 ? " job" : " jobs",
                      going_on == 1 ? " goes on" : " go on");
}

std::string MetricsText(int jobs, size_t streams, bool leads) {
  return absl::StrCat(
      "# HELP hlaunch_rendezvous_up 1 while this service lives.\n"
      "# TYPE hlaunch_rendezvous_up gauge\nhlaunch_rendezvous_up 1\n"
      "# HELP hlaunch_rendezvous_leads 1 if jobs are decided here, 0 while this service stands "
      "by.\n"
      "# TYPE hlaunch_rendezvous_leads gauge\nhlaunch_rendezvous_leads ",
      leads ? 1 : 0,
      "\n# HELP hlaunch_rendezvous_jobs Jobs that are going on.\n"
      "# TYPE hlaunch_rendezvous_jobs gauge\nhlaunch_rendezvous_jobs ",
      jobs,
      "\n# HELP hlaunch_rendezvous_agents Agents that are connected.\n"
      "# TYPE hlaunch_rendezvous_agents gauge\nhlaunch_rendezvous_agents ",
      streams, "\n");
}

// The work of the service's main thread until a signal comes: it tidies once a second, and answers
// whether the service lives.
class Caretaker {
 public:
  Caretaker(LedJobs& jobs, const RendezvousServer& server)
      : jobs_(jobs),
        server_(server),
        signals_(loop_),
        second_(loop_),
        manager_(loop_, FindNotifyPlace(Environment::OfThisProcess(), ::getpid(), ::getpid())) {}

  // If metrics cannot be served, warns and goes on.
  void ServeMetrics(const Endpoint& place) {
    const auto metrics = [this] {
      return MetricsText(jobs_.going_on(), server_.open_streams(), jobs_.CheckLeads().ok());
    };
    const auto not_ready = [this] {
      return trouble_.empty() ? std::string(jobs_.CheckLeads().message()) : trouble_;
    };
    auto started = MetricsServer::Start(loop_, place.host, place.port,
                                        {metrics, not_ready, [this] { return trouble_; }});
    if (!started.ok()) {
      return LogWarning(absl::StrCat(started.status().message(), "; the service goes on without"));
    }
    metrics_ = std::move(started).value();
    LogInfo(
        absl::StrCat("metrics are at http://", HostPort(place.host, metrics_->port()), "/metrics"));
  }

  // The same for the status pages.
  void ServePages(const Endpoint& place, const std::string& token, const std::string& name) {
    StatusPages::Source source;
    source.job = [this](const std::string& id) { return jobs_.Status(id); };
    source.jobs = [this] { return jobs_.List(); };
    source.how_to_ask = absl::StrCat("--rdzv-endpoint ", name);
    source.stands_by = [this] { return std::string(jobs_.CheckLeads().message()); };
    pages_ = hlaunch::ServePages(place, token, PageServer::Audience::kThisHost, std::move(source));
  }

  // Runs until `stop` is readable.
  void Await(const StopRequest& stop) {
    signals_.assign(::fcntl(stop.fd(), F_DUPFD_CLOEXEC, 0));
    signals_.async_wait(asio::posix::descriptor_base::wait_read, [this](const asio::error_code&) {
      manager_.Stopping("stopping", kStopLimit);
      loop_.stop();
    });
    said_ = State();
    manager_.Ready(said_);
    Tidy();
    loop_.run();
  }

 private:
  void Tidy() {
    jobs_.Tidy();
    TakePulse();
    const std::string state = State();
    if (state != std::exchange(said_, state)) manager_.Status(state);
    second_.expires_after(std::chrono::seconds(1));
    second_.async_wait([this](const asio::error_code& error) {
      if (!error) Tidy();
    });
  }

  std::string State() const {
    const absl::Status leads = jobs_.CheckLeads();
    return leads.ok() ? Jobs(jobs_.going_on()) : std::string(leads.message());
  }

  // Makes /healthz tell the truth: gRPC starts threads when it needs them, and does not report it
  // if it gets none.
  void TakePulse() {
    const std::string trouble = WhyNoThread();
    if (trouble == trouble_) return;
    if (trouble.empty()) {
      LogInfo("threads can be started again");
    } else {
      LogError(trouble);
    }
    trouble_ = trouble;
  }

  asio::io_context loop_;
  LedJobs& jobs_;
  const RendezvousServer& server_;
  asio::posix::stream_descriptor signals_;
  asio::steady_timer second_;
  ServiceManager manager_;
  std::unique_ptr<MetricsServer> metrics_;  // Null: not served.
  std::unique_ptr<PageServer> pages_;       // Null: not served.
  std::string said_;                        // The last state told to the service manager.
  std::string trouble_;                     // Empty if there is none.
};

// Leads at once: no other service may lead.
absl::Status LeadAlone(Beginning& beginning, LedJobs& jobs) {
  auto registry = std::make_shared<JobRegistry>(std::move(beginning.registry), MonotonicClock());
  HLAUNCH_RETURN_IF_ERROR(registry->StartThreads());
  jobs.Begin(std::move(registry));
  return absl::OkStatus();
}

// Leads whenever no other service does. Null if the place is not shared.
std::unique_ptr<JobLeader> LeadWhenever(const Beginning& beginning, const std::string& name,
                                        RendezvousServer& server, LedJobs& jobs) {
  if (!beginning.shared) return nullptr;
  JobLeader::Options options;
  options.name = name;
  options.lead = beginning.shared->candidate(name);
  options.ask_again = beginning.shared->ask_again;
  options.max_jobs = beginning.registry.max_jobs;
  options.on_lost = [&server](const absl::Status& why) { server.EndStreams(why); };
  return std::make_unique<JobLeader>(std::move(options), jobs);
}

}  // namespace

int ServeJobs(int argc, char** argv,
              const std::function<absl::Status(Journal::Step, const std::string&)>& before_step) {
  ::signal(SIGPIPE, SIG_IGN);
  ChooseNameServices();
  DoWithoutOpenSslModules();
  SetLogName("rendezvous");
  const absl::StatusOr<ServiceOptions> options = ParseServiceOptions(argc, argv);
  if (!options.ok()) {
    LogError(options.status().message());
    return kExitUsage;
  }
  if (options->text_to_print) {
    std::fputs(options->text_to_print->c_str(), stdout);
    return FlushStdout();
  }
  SetLogLevel(options->log_level);
  RaiseDescriptorLimit();
  ReserveDescriptors(DescriptorLimit());
  const auto stop = StopRequest::Listen(kStopLimit, GiveUpStopping);
  if (!stop.ok()) {
    LogError(stop.status().message());
    return kExitNoResources;
  }
  absl::StatusOr<Beginning> beginning = Begin(*options, before_step);
  if (!beginning.ok()) {
    LogError(beginning.status().message());
    return kExitUsage;
  }
  absl::StatusOr<ListeningSocket> listening = ListenWhereTold(options->listen);
  if (!listening.ok()) {
    LogError(listening.status().message());
    return ExitCodeOf(FailedStep::kMeet, listening.status());
  }
  const std::string ready = ReadyLine(*listening, *options, *beginning);
  const std::string name = HostPort(HostName(), listening->port);
  LedJobs jobs;
  const absl::Status begun = beginning->shared ? absl::OkStatus() : LeadAlone(*beginning, jobs);
  if (!begun.ok()) {
    LogError(begun.message());
    return kExitNoResources;
  }
  if (const absl::Status room = CheckThreadsOfAgent(); !room.ok()) {
    LogError(room.message());
    return kExitNoResources;
  }
  RendezvousServer::Options serving;
  serving.listener = std::move(listening->fd);
  serving.trust = beginning->trust;
  const auto server = RendezvousServer::Start(std::move(serving), jobs);
  if (!server.ok()) {
    LogError(server.status().message());
    return kExitInternal;
  }
  LogInfo(ready);
  {
    const std::unique_ptr<JobLeader> leader = LeadWhenever(*beginning, name, **server, jobs);
    Caretaker caretaker(jobs, **server);
    if (options->metrics) caretaker.ServeMetrics(*options->metrics);
    if (options->status_page) caretaker.ServePages(*options->status_page, beginning->token, name);
    caretaker.Await(**stop);
  }
  LogInfo(StoppingLine(jobs.going_on(), options->keeps()));
  (*server)->Shutdown(kShutdownGrace);
  return kExitOk;
}

}  // namespace hlaunch
