// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/serve_jobs.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/observe/metrics_server.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/command/service_options.h"
#include "launcher/job/credentials.h"
#include "launcher/node/descriptors.h"
#include "launcher/node/service_manager.h"
#include "launcher/node/stop_request.h"
#include "launcher/words/environment.h"
#include "launcher/words/exit_codes.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/grpc/rendezvous_server.h"
#include "rendezvous/job/job_registry.h"
#include "rendezvous/listening/find_host.h"
#include "rendezvous/listening/listen.h"
#include "rendezvous/listening/route.h"
#include "rendezvous/trust/openssl_modules.h"
#include "rendezvous/trust/trust.h"

namespace hlaunch {
namespace {

constexpr Duration kShutdownGrace = std::chrono::seconds(1);
constexpr Duration kStopLimit =
    std::chrono::seconds(15);  // What a stop may take, a slow disk included.

// Why this process can start no thread; empty: it can.
std::string WhyNoThread() {
  pthread_t thread;
  const int error = ::pthread_create(
      &thread, nullptr, [](void* nothing) { return nothing; }, nullptr);
  if (error == 0) ::pthread_join(thread, nullptr);
  if (error == 0) return "";
  return absl::StrCat("cannot start a thread: ", std::strerror(error),
                      "; raise the limit of processes (TasksMax= of the unit, the pod's limit of "
                      "pids, ulimit -u)");
}

// The stop hangs: a file system that does not answer, or a bug. The journal can bear that. Or there
// are no threads: gRPC 1.51 counts one that it could not start, gives it work, and waits for that.
// All that must survive was kept before anybody was told of it, so that is a stop like any other.
void GiveUpStopping() {
  const std::string no_thread = WhyNoThread();
  LogError(absl::StrCat("the stop took longer than ",
                        std::chrono::duration_cast<std::chrono::seconds>(kStopLimit).count(),
                        " s; ending without it", no_thread.empty() ? "" : "; ", no_thread));
  ::_exit(no_thread.empty() ? kExitInternal : kExitOk);
}

absl::StatusOr<ListeningSocket> ListenAt(const Endpoint& endpoint) {
  if (endpoint.host.empty() || IsAddressLiteral(endpoint.host)) {
    return Listen(endpoint.host, endpoint.port);
  }
  HLAUNCH_ASSIGN_OR_RETURN(const auto addresses, ResolveHost(endpoint.host));
  absl::StatusOr<ListeningSocket> listening = absl::UnavailableError("no address");
  for (const std::string& address : addresses) {
    listening = Listen(address, endpoint.port);
    if (listening.ok()) break;
  }
  if (listening.ok() && IsLoopbackLiteral(listening->address) && endpoint.host != "localhost") {
    LogWarning(absl::StrCat("--listen ", endpoint.host, " is ", listening->address,
                            " here, which no other host reaches; give an address in digits"));
  }
  return listening;
}

// What is between the command line and the server.
struct Beginning {
  std::unique_ptr<Journal> journal;  // Null: nothing is kept.
  JobRegistry::Options registry;
  Trust trust;
};

// Errors: all are the user's to mend.
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
  for (const std::string& warning : found.token.warnings) LogWarning(warning);
  beginning.registry.max_jobs = options.max_jobs;
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
                      size_t restored) {
  const std::string kept = options.state_directory.empty()
                               ? "jobs end with this service (no --state)"
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

std::string MetricsText(int jobs, size_t streams) {
  return absl::StrCat(
      "# HELP hlaunch_rendezvous_up 1 while this service lives.\n"
      "# TYPE hlaunch_rendezvous_up gauge\nhlaunch_rendezvous_up 1\n"
      "# HELP hlaunch_rendezvous_jobs Jobs that are going on.\n"
      "# TYPE hlaunch_rendezvous_jobs gauge\nhlaunch_rendezvous_jobs ",
      jobs,
      "\n# HELP hlaunch_rendezvous_agents Agents that are connected.\n"
      "# TYPE hlaunch_rendezvous_agents gauge\nhlaunch_rendezvous_agents ",
      streams, "\n");
}

// The service's main thread until a signal comes: tidies once a second, and answers those who ask
// whether it lives.
class Caretaker {
 public:
  Caretaker(JobRegistry& registry, const RendezvousServer& server)
      : registry_(registry),
        server_(server),
        signals_(loop_),
        second_(loop_),
        manager_(loop_, FindNotifyPlace(Environment::OfThisProcess(), ::getpid(), ::getpid())) {}

  // What cannot be had costs a warning, not the service.
  void ServeMetrics(const Endpoint& place) {
    const auto metrics = [this] {
      return MetricsText(registry_.going_on(), server_.open_streams());
    };
    auto started =
        MetricsServer::Start(loop_, place.host, place.port,
                             {metrics, [this] { return trouble_; }, [this] { return trouble_; }});
    if (!started.ok()) {
      return LogWarning(absl::StrCat(started.status().message(), "; the service goes on without"));
    }
    metrics_ = std::move(started).value();
    LogInfo(
        absl::StrCat("metrics are at http://", HostPort(place.host, metrics_->port()), "/metrics"));
  }

  // Until `stop` can be read.
  void Await(const StopRequest& stop) {
    signals_.assign(::fcntl(stop.fd(), F_DUPFD_CLOEXEC, 0));
    signals_.async_wait(asio::posix::descriptor_base::wait_read, [this](const asio::error_code&) {
      manager_.Stopping("stopping", kStopLimit);
      loop_.stop();
    });
    manager_.Ready(Jobs(registry_.going_on()));
    Tidy();
    loop_.run();
  }

 private:
  void Tidy() {
    registry_.Tidy();
    TakePulse();
    if (const int jobs = registry_.going_on(); jobs != std::exchange(jobs_said_, jobs)) {
      manager_.Status(Jobs(jobs));
    }
    second_.expires_after(std::chrono::seconds(1));
    second_.async_wait([this](const asio::error_code& error) {
      if (!error) Tidy();
    });
  }

  // What /healthz says must be true: gRPC starts threads when it needs them, and is silent if it
  // gets none.
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
  JobRegistry& registry_;
  const RendezvousServer& server_;
  asio::posix::stream_descriptor signals_;
  asio::steady_timer second_;
  ServiceManager manager_;
  std::unique_ptr<MetricsServer> metrics_;  // Null: nobody asks.
  int jobs_said_ = 0;
  std::string trouble_;  // Empty: none.
};

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
    return std::fflush(stdout) == 0 ? kExitOk : kExitInternal;
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
  absl::StatusOr<ListeningSocket> listening = ListenAt(options->listen);
  if (!listening.ok()) {
    LogError(listening.status().message());
    return ExitCodeOf(FailedStep::kMeet, listening.status());
  }
  const std::string ready = ReadyLine(*listening, *options, beginning->registry.records.size());
  JobRegistry registry(std::move(beginning->registry), MonotonicClock());
  if (const absl::Status started = registry.StartThreads(); !started.ok()) {
    LogError(started.message());
    return kExitNoResources;
  }
  RendezvousServer::Options serving;
  serving.listener = std::move(listening->fd);
  serving.trust = beginning->trust;
  const auto server = RendezvousServer::Start(std::move(serving), registry);
  if (!server.ok()) {
    LogError(server.status().message());
    return kExitInternal;
  }
  LogInfo(ready);
  {
    Caretaker caretaker(registry, **server);
    if (options->metrics) caretaker.ServeMetrics(*options->metrics);
    caretaker.Await(**stop);
  }
  LogInfo(StoppingLine(registry.going_on(), beginning->journal != nullptr));
  (*server)->Shutdown(kShutdownGrace);
  return kExitOk;
}

}  // namespace hlaunch
