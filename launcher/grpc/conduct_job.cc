// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/conduct_job.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/thread_room.h"
#include "agent/workers/worker/taken_signals.h"
#include "launcher/cli/hosts/end_of_job.h"
#include "launcher/cli/hosts/exported.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/hosts/start_message.h"
#include "launcher/grpc/link/own_rendezvous.h"
#include "launcher/grpc/program_to_push.h"
#include "launcher/job/socket/serve_commands.h"
#include "launcher/job/spec/credentials.h"
#include "launcher/job/spec/make_job_spec.h"
#include "launcher/node/descriptors.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/remote/ssh/conductor.h"
#include "launcher/remote/ssh/job_words.h"
#include "launcher/remote/ssh/jump_hosts.h"
#include "launcher/remote/ssh/make_plan.h"
#include "launcher/report/status/page_server.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/ids.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/net/trust/token_text.h"

namespace hlaunch {
namespace {

constexpr Duration kCleanUpTime = std::chrono::seconds(5);

// The job of --hosts, prepared but not started.
struct Prepared {
  Options options;
  JobSpec spec;
  Trust trust;
  ListeningSocket listening;
  ConductPlan plan;
};

// The path of `hlaunch` on the hosts: the same as here, unless the user names another one.
std::string ProgramForHosts(const HostWish& wish) {
  if (!wish.agent_path.empty()) return wish.agent_path;
  const auto places = PlacesOfProgram(PathOfThisProgram(), "hlaunch");
  for (const std::string& place : places) {
    if (::access(place.c_str(), X_OK) == 0) return std::filesystem::path(place).lexically_normal();
  }
  return "hlaunch";
}

// The nodes meet on this host at `port`, with a new secret unless the user has one.
absl::StatusOr<JobSpec> SpecOfJob(Options options, const Environment& environment, uint16_t port) {
  options.meeting.endpoint = Endpoint{"127.0.0.1", port};
  HLAUNCH_ASSIGN_OR_RETURN(JobSpec spec, MakeMeeting(options, environment, RealHostProbes()));
  if (!NeedsGrpc(spec)) {  // A single host meets no other, but connects all the same.
    spec.endpoint = *options.meeting.endpoint;
    spec.mode = JobMode::kEndpoint;
  }
  if (spec.token.empty() && spec.certificates.none()) spec.token = NewTokenText();
  return spec;
}

absl::StatusOr<std::vector<std::string>> Candidates(const Options& options, uint16_t port) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<LocalAddress> local, ListLocalAddresses());
  std::string named = options.meeting.local_addr;
  if (!named.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> found, ResolveHost(named));
    named = found.front();
  }
  return CandidatesOf(named, DefaultRouteAddress().value_or(""), local, port);
}

// The part of the message that is the same for all hosts.
absl::StatusOr<StartMessage> CommonMessage(const Options& options, const Environment& environment,
                                           const JobSpec& spec, uint16_t port) {
  StartMessage message;
  message.version = WireVersion();
  message.nonce = NewTokenText();
  message.token = spec.token;
  message.limits = LimitsOfThisProcess();
  message.umask = UmaskOfThisProcess();
  message.grace_s =
      static_cast<int>(std::chrono::ceil<std::chrono::seconds>(options.worker.stop_grace).count());
  message.script = options.script.command;
  std::error_code error;
  message.directory = std::filesystem::current_path(error);
  HLAUNCH_ASSIGN_OR_RETURN(message.candidates, Candidates(options, port));
  HLAUNCH_ASSIGN_OR_RETURN(message.environment, ExportedVariables(options.hosts, environment));
  for (std::string& entry : EnvironmentOf(spec.certificates, spec.tls)) {
    message.environment.push_back(std::move(entry));
  }
  message.environment.push_back(absl::StrCat(kEnvQuietEnd, "=1"));
  return message;
}

// A terminal is read only if the user says so: a job in the background must not eat what is typed.
bool ForwardsStdin(const Options& options) {
  if (options.worker.stdin_to) return *options.worker.stdin_to == StdinTo::kRank0;
  return ::isatty(STDIN_FILENO) == 0;
}

absl::StatusOr<Prepared> Prepare(const Options& given, const Environment& environment) {
  Prepared prepared;
  prepared.options = given;
  Options& options = prepared.options;
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<TargetHost> hosts, FindHosts(options.hosts, ReadTextFile));
  HLAUNCH_RETURN_IF_ERROR(FitNodesToHosts(options, hosts));
  HLAUNCH_ASSIGN_OR_RETURN(prepared.plan.starter, FindStarter(options.hosts, environment));
  if (options.hosts.push) {
    HLAUNCH_ASSIGN_OR_RETURN(prepared.plan.starter.pushed, ProgramToPush());
  }
  HLAUNCH_ASSIGN_OR_RETURN(prepared.listening, Listen("", 0));
  const uint16_t port = prepared.listening.port;
  if (options.meeting.job_id.empty()) options.meeting.job_id = NewJobId();
  HLAUNCH_ASSIGN_OR_RETURN(prepared.spec, SpecOfJob(options, environment, port));
  HLAUNCH_ASSIGN_OR_RETURN(
      prepared.trust,
      Trust::Of(prepared.spec.token, prepared.spec.certificates, prepared.spec.tls));
  HLAUNCH_ASSIGN_OR_RETURN(const StartMessage common,
                           CommonMessage(options, environment, prepared.spec, port));
  const std::vector<bool> own = FindOwnHosts(hosts);
  if (const std::string twice = OneHostTwice(hosts, own); !twice.empty()) {
    // Another starter may give these names another meaning.
    if (prepared.plan.starter.agent.empty()) return absl::InvalidArgumentError(twice);
    LogWarning(twice);
  }
  const std::string program = ProgramForHosts(options.hosts);
  const std::vector<std::string> jumps = FindJumpHosts(prepared.plan.starter, hosts, own);
  for (size_t i = 0; i < hosts.size(); ++i) {
    HostPlan host{hosts[i], own[i], program, common, jumps[i]};
    host.message.options =
        WordsForHost(options, hosts[i], static_cast<int>(i), prepared.spec.job_id);
    if (own[i]) {
      const std::vector<std::string> words = ExportWords(options.hosts);
      host.message.options.insert(host.message.options.end(), words.begin(), words.end());
    }
    host.message.takes_stdin = i == 0 && ForwardsStdin(options);
    // Without a network, only this host can be meant.
    if (own[i] || common.candidates.empty()) {
      host.message.candidates.push_back(HostPort("127.0.0.1", port));
    }
    prepared.plan.hosts.push_back(std::move(host));
  }
  prepared.plan.min_hosts = options.policy.min_nodes;
  prepared.plan.grace = options.worker.stop_grace;
  prepared.plan.patience = options.policy.join_timeout;
  prepared.plan.quiet = options.output.log_level > LogLevel::kInfo;
  return prepared;
}

void Tell(const JobEnd& end, int exit_code) {
  if (end.start_failed) {
    LogError(absl::StrCat("the job was not started; exit code ", exit_code));
  } else if (end.stop_signal != 0 && exit_code != kExitOk) {
    LogWarning(absl::StrCat("job stopped; exit code ", exit_code));
  } else if (exit_code == kExitNodeLost) {
    LogError(absl::StrCat("no host said how the job ended; exit code ", exit_code));
  }
}

// A lone node runs by itself, whatever its endpoint is.
bool MeetsOthers(const JobSpec& spec) { return spec.policy.max_nodes > 1; }

// Records where commands on this host may ask for the job's status.
absl::Status KeepMeetingOf(const std::string& directory, const JobSpec& spec, uint16_t port) {
  if (!MeetsOthers(spec)) return absl::OkStatus();
  MeetingPlace place;
  place.endpoint = HostPort("127.0.0.1", port);
  place.tls = spec.tls ? "on" : "off";
  const auto whole = [](const std::string& path) {
    std::error_code ignored;
    return path.empty() ? "" : std::filesystem::absolute(path, ignored).string();
  };
  place.tls_cert = whole(spec.certificates.certificate);
  place.tls_key = whole(spec.certificates.key);
  place.tls_ca = whole(spec.certificates.authority);
  return KeepMeeting(directory, place, spec.token);
}

DetachedHooks HooksOf(const std::string& directory, const JobSpec& spec, OwnRendezvous& own) {
  DetachedHooks hooks;
  hooks.meets = MeetsOthers(spec);
  hooks.formed = [&own, meets = hooks.meets] { return own.formed() || !meets; };
  hooks.started = [directory] { KeepStarted(directory).IgnoreError(); };
  hooks.over = [&own] { return own.job().state() == JobState::kOver; };
  hooks.end_job = [&own](int signal) {
    Outcome outcome;
    outcome.exit_code = kExitSignalBase + signal;
    outcome.reason = absl::StrCat("stopped by ", SignalName(signal));
    own.job().End(outcome);
  };
  return hooks;
}

// Null if the user wants no page or it cannot be served. If the token was made for this job, no
// person has it to ask with; then the page is only for this host.
std::unique_ptr<PageServer> ServePageOf(const Options& options, const Environment& environment,
                                        const JobSpec& spec, OwnRendezvous& own, uint16_t port) {
  if (!options.output.status_page) return nullptr;
  const bool users_token = !spec.token_file.empty() || !environment.Get(kEnvToken).empty();
  StatusPages::Source source;
  source.job = [&own](const std::string&) { return std::optional(own.job().Status()); };
  if (users_token) source.how_to_ask = absl::StrCat("--rdzv-endpoint ", HostPort(HostName(), port));
  return ServePages(
      *options.output.status_page, users_token ? spec.token : "",
      spec.worker.any_user ? PageServer::Audience::kThisHost : PageServer::Audience::kOwnUser,
      std::move(source));
}

// Opens the socket at which this user's commands on this host find the job; null if it cannot be.
std::unique_ptr<JobServer> ServeCommandsOf(const Options& options, const JobSpec& spec,
                                           const std::vector<std::string>& hosts, uint16_t port,
                                           const KeeperLink& keeper, asio::io_context& loop) {
  JobServer::Answers answers;
  answers.here = [&options, &spec, hosts, began = WallMillis()] {
    JobHere here = HereOfThisProcess(spec, options);
    here.started_ms = began;
    here.started_on = hosts;
    return here;
  };
  answers.meeting = [&spec, port]() -> absl::StatusOr<JobMeeting> {
    if (MeetsOthers(spec)) return MeetingOf(spec, HostPort("127.0.0.1", port));
    return absl::FailedPreconditionError("the job has one node, which meets nobody");
  };
  answers.status = [] { return std::optional<JobStatus>(); };
  answers.ranks = [](const RankQuestion&, const JobServer::Answers::RanksDone&) {
    return absl::FailedPreconditionError("the job's rendezvous answers such questions");
  };
  answers.end = [&keeper](int signal) { return EndThroughKeeper(keeper, signal); };
  return OpenJobServer(loop, std::move(answers));
}

// Waits until the nodes without a connection have heard of the end too.
void EndDetached(const std::string& directory, OwnRendezvous& own, Duration limit, JobEnd& end) {
  // The job may have ended before the conductor looked.
  if (own.formed() && end.stop_signal == 0) KeepStarted(directory).IgnoreError();
  if (own.job().state() != JobState::kOver) return;
  end.decided = own.job().Status().exit_code;
  const auto awaited = own.job().AwaitAllFinished(MonotonicClock().Now() + limit);
  if (awaited.empty()) return;
  LogWarning(absl::StrCat("leaving though ", absl::StrJoin(awaited, ", "),
                          " did not confirm the end of the job"));
}

}  // namespace

int ConductJob(const Options& given, const Environment& environment, KeeperLink keeper) {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_DUMPABLE, 0);  // This process holds the job's secret.
  ::unsetenv(kEnvDetached);     // Starters must not see it.
  absl::StatusOr<Prepared> prepared = Prepare(given, environment);
  if (!prepared.ok()) {
    LogError(prepared.status().message());
    return ExitCodeOf(FailedStep::kPrepare, prepared.status());
  }
  SetLogJob(prepared->spec.job_id);
  for (const std::string& warning : prepared->spec.warnings) LogWarning(warning);
  absl::StatusOr<UniqueFd> signals = AgentSignals(given.worker.signals_to_handle);
  if (!signals.ok()) {
    LogError(signals.status().message());
    return kExitNoResources;
  }
  RaiseDescriptorLimit();
  std::vector<std::string> hosts;
  for (const HostPlan& host : prepared->plan.hosts) hosts.push_back(host.host.name);
  // A host's starter takes as many as a worker.
  absl::Status room = CheckDescriptors(LeastDescriptors(static_cast<int>(hosts.size()), true));
  if (room.ok()) room = CheckThreadsOfAgent();
  if (!room.ok()) {
    LogError(room.message());
    return kExitNoResources;
  }
  const uint16_t port = prepared->listening.port;
  const auto own =
      OwnRendezvous::Start(prepared->spec, prepared->trust, std::move(prepared->listening));
  if (!own.ok()) {
    LogError(own.status().message());
    return ExitCodeOf(FailedStep::kMeet, own.status());
  }
  // Each of these hosts is started once.
  const int started = static_cast<int>(hosts.size());
  (*own)->job().Expect(started, 0);
  prepared->plan.ended = [&own, started](int ended) { (*own)->job().Expect(started, ended); };
  const std::string& directory = given.detached_directory;
  if (!directory.empty()) {
    const absl::Status kept = KeepMeetingOf(directory, prepared->spec, port);
    if (!kept.ok()) LogWarning(kept.message());
    prepared->plan.detached = HooksOf(directory, prepared->spec, **own);
  }
  const std::unique_ptr<PageServer> page =
      ServePageOf(given, environment, prepared->spec, **own, port);
  keeper.SayBegun();
  Conductor conductor(std::move(prepared->plan), *std::move(signals), keeper.fd());
  std::unique_ptr<JobServer> socket =
      ServeCommandsOf(given, prepared->spec, hosts, port, keeper, conductor.loop());
  absl::StatusOr<JobEnd> end = conductor.Run();
  socket.reset();  // From now on nobody would answer.
  if (!end.ok()) {
    LogError(end.status().message());
    return kExitNoResources;
  }
  if (!directory.empty())
    EndDetached(directory, **own, given.worker.stop_grace + kCleanUpTime, *end);
  KillAndReapDescendants(MonotonicClock(), MonotonicClock().Now() + kCleanUpTime);
  const int exit_code = ExitCodeOfJob(*end);
  Tell(*end, exit_code);
  return exit_code;
}

}  // namespace hlaunch
