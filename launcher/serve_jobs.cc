// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/serve_jobs.h"

#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/descriptors.h"
#include "launcher/environment.h"
#include "launcher/job_spec.h"
#include "launcher/service_options.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/job_registry.h"
#include "rendezvous/listen.h"
#include "rendezvous/rendezvous_server.h"
#include "rendezvous/route.h"

namespace hlaunch {
namespace {

constexpr Duration kShutdownGrace = std::chrono::seconds(1);

sigset_t StopSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
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

int ExitCodeWithoutListener(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) return kExitPortInUse;
  return absl::IsResourceExhausted(status) ? kExitNoResources : kExitBadEndpoint;
}

// What is between the command line and the server.
struct Beginning {
  std::unique_ptr<Journal> journal;  // Null: nothing is kept.
  JobRegistry::Options registry;
  std::string token;
};

// Errors: all are the user's to mend.
absl::StatusOr<Beginning> Begin(
    const ServiceOptions& options,
    const std::function<absl::Status(Journal::Step, const std::string&)>& before_step) {
  Beginning beginning;
  HLAUNCH_ASSIGN_OR_RETURN(
      Token token, FindToken(options.token_file, Environment::OfThisProcess(), RealHostProbes()));
  for (const std::string& warning : token.warnings) LogWarning(warning);
  beginning.token = std::move(token.secret);
  beginning.registry.max_jobs = options.max_jobs;
  if (options.state_directory.empty()) return beginning;
  HLAUNCH_ASSIGN_OR_RETURN(beginning.journal,
                           Journal::Open({options.state_directory, before_step}));
  HLAUNCH_ASSIGN_OR_RETURN(Journal::Loaded loaded, beginning.journal->Load());
  for (const std::string& warning : loaded.warnings) LogWarning(warning);
  beginning.registry.records = std::move(loaded.records);
  beginning.registry.kept_in = options.state_directory;
  beginning.registry.keep = [journal = beginning.journal.get()](const JobRecord& record) {
    return journal->Keep(record);
  };
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

// Tidies once a second until a signal comes; the next one ends this process at once.
void AwaitStop(JobRegistry& registry) {
  const sigset_t stop = StopSignals();
  const timespec second = {1, 0};
  while (::sigtimedwait(&stop, nullptr, &second) < 0) {
    if (errno == EAGAIN) registry.Tidy();
  }
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
}

}  // namespace

int ServeJobs(int argc, char** argv,
              const std::function<absl::Status(Journal::Step, const std::string&)>& before_step) {
  const sigset_t stop = StopSignals();
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
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
  absl::StatusOr<Beginning> beginning = Begin(*options, before_step);
  if (!beginning.ok()) {
    LogError(beginning.status().message());
    return kExitUsage;
  }
  absl::StatusOr<ListeningSocket> listening = ListenAt(options->listen);
  if (!listening.ok()) {
    LogError(listening.status().message());
    return ExitCodeWithoutListener(listening.status());
  }
  const std::string ready = ReadyLine(*listening, *options, beginning->registry.records.size());
  JobRegistry registry(std::move(beginning->registry), MonotonicClock());
  RendezvousServer::Options serving;
  serving.listener = std::move(listening->fd);
  serving.token = beginning->token;
  const auto server = RendezvousServer::Start(std::move(serving), registry);
  if (!server.ok()) {
    LogError(server.status().message());
    return kExitInternal;
  }
  LogInfo(ready);
  AwaitStop(registry);
  LogInfo(StoppingLine(registry.going_on(), beginning->journal != nullptr));
  (*server)->Shutdown(kShutdownGrace);
  return kExitOk;
}

}  // namespace hlaunch
