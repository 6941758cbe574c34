// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/submit_job.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_failure.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/client/follow_job_of_cluster.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/cluster/commands/cluster_text.h"
#include "launcher/cluster/commands/decide_cluster.h"
#include "launcher/cluster/commands/job_request.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/remote/detached/follow_job.h"
#include "launcher/text/printable.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

ClusterFacts FactsOf(const Options& options, const Environment& environment,
                     const Surroundings& surroundings) {
  ClusterFacts facts;
  facts.in_worker = IsInWorker(environment);
  facts.is_part = !options.detached_directory.empty() || std::getenv(kEnvKeeperFd) != nullptr;
  const ClusterPlace place = FindPlace(surroundings, "auto", options.cluster_systems);
  if (place.found()) {
    facts.scheduler = place.cluster;
  } else if (options.tasks || !FirstHostOfJob(surroundings).empty()) {
    facts.scheduler = "a scheduler";
  }
  return facts;
}

// Tells why a job waits and where it starts. Says each line once.
class WaitingLine {
 public:
  void Tell(const JobView& job) {
    std::string line;
    if (job.state == ClusterJobState::kWaiting) line = WaitingText(job);
    if (job.state == ClusterJobState::kStarting) line = StartingText(job);
    if (job.state == ClusterJobState::kRunning && !told_.empty() && !ran_) line = RunningText(job);
    ran_ = ran_ || job.state == ClusterJobState::kRunning;
    if (line.empty() || line == told_) return;
    LogInfo(line);
    told_ = line;
  }

 private:
  std::string told_;
  bool ran_ = false;
};

// Carries out what the user's signals ask for. Belongs to one thread.
class Stopper {
 public:
  Stopper(std::string path, uint64_t job) : client_(std::move(path)), job_(job) {}

  // Returns true if the job shall be left alone.
  bool Take(int signal) {
    if (signal == SIGHUP) return true;
    const bool kill = asked_++ > 0;
    signal_ = signal;
    LogWarning(kill ? absl::StrCat("killing job ", job_)
                    : absl::StrCat("stopping job ", job_, "; once more kills it"));
    const absl::Status told = AskStop(client_, kill ? "kill" : "stop", StopQuestion{.job = job_});
    if (told.ok()) return false;
    LogError(absl::StrCat("job ", job_, " was not told: ", PrintableLine(told.message())));
    if (!kill) return false;
    LogError(absl::StrCat("it goes on; end it later: hlaunch stop ", job_));
    return true;
  }
  // The last signal; 0: none came.
  int signal() const { return signal_; }

 private:
  LocalClient client_;
  const uint64_t job_;
  int asked_ = 0;
  int signal_ = 0;
};

UniqueFd SignalsOfFollower() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void Put(const LogLine& line) {
  std::FILE* const file = line.fd == STDERR_FILENO ? stderr : stdout;
  if (file == stderr) std::fflush(stdout);  // Keeps the order of the lines.
  std::fwrite(line.text.data(), 1, line.text.size(), file);
  if (line.whole) std::fputc('\n', file);
}

int EndOfFollowed(const ClusterFollowed& followed, uint64_t job, int signal) {
  if (followed.end == ClusterFollowEnd::kRefused) return FailToAskCluster(followed.why);
  if (followed.end == ClusterFollowEnd::kLeft) {
    return kExitSignalBase + (signal > 0 ? signal : SIGHUP);
  }
  const std::optional<int> code = followed.job.exit_code;
  const bool ended_it = code == kExitSignalBase + SIGTERM || code == kExitSignalBase + SIGKILL;
  if (signal > 0 && ended_it) return kExitSignalBase + signal;  // The code without a cluster.
  if (code == kExitNotStarted) {                                // No node could say why.
    LogError(absl::StrCat("job ", job, " was not started: ", PrintableLine(followed.job.why),
                          "; exit code ", *code));
  }
  if (code.has_value()) return *code;
  LogError(absl::StrCat("job ", job, " ended: ", PrintableLine(followed.job.why)));
  return signal > 0 ? kExitSignalBase + signal : kExitNodeLost;
}

int Follow(const std::string& socket, uint64_t job) {
  const UniqueFd signals = SignalsOfFollower();
  Stopper stopper(socket, job);
  WaitingLine waiting;
  ClusterFollowWish wish;
  wish.socket = socket;
  wish.job = job;
  wish.signals = signals.get();
  wish.show = Put;
  wish.shown = [] { std::fflush(stdout); };
  wish.seen = [&waiting](const JobView& view) { waiting.Tell(view); };
  wish.asked = [&stopper](int signal) { return stopper.Take(signal); };
  const ClusterFollowed followed = FollowJobOfCluster(wish);
  return EndOfFollowed(followed, job, stopper.signal());
}

void TellHowToFollow(uint64_t job) {
  std::printf("%llu\n", static_cast<unsigned long long>(job));
  std::fflush(stdout);
  LogInfo(absl::StrCat("job ", job, " goes on without this terminal; follow it: hlaunch attach ",
                       job, "; what it said: hlaunch logs ", job, "; end it: hlaunch stop ", job));
}

// Follows the job until it runs or is known to wait.
int AwaitStart(const std::string& socket, uint64_t job) {
  const UniqueFd signals = SignalsOfFollower();
  Stopper stopper(socket, job);
  WaitingLine waiting;
  ClusterFollowWish wish;
  wish.socket = socket;
  wish.job = job;
  wish.shows_logs = false;
  wish.signals = signals.get();
  wish.seen = [&waiting](const JobView& view) { waiting.Tell(view); };
  wish.enough = [](const JobView& view) {
    return view.state == ClusterJobState::kRunning ||
           (view.state == ClusterJobState::kWaiting && !view.why.empty());
  };
  wish.asked = [&stopper](int signal) { return stopper.Take(signal); };
  const ClusterFollowed followed = FollowJobOfCluster(wish);
  if (followed.end != ClusterFollowEnd::kEnough) {
    if (followed.end == ClusterFollowEnd::kEnded && followed.job.exit_code.has_value()) {
      LogWarning(absl::StrCat("job ", job, " has ended already: ", PrintableLine(followed.job.why),
                              "; hlaunch logs ", job));
    }
    return EndOfFollowed(followed, job, stopper.signal());
  }
  TellHowToFollow(job);
  return kExitOk;
}

// Hands the job over. Errors: those of the request, and the cluster's reason not to take the job.
absl::StatusOr<uint64_t> HandOver(LocalClient& client, const Options& options,
                                  const Environment& environment) {
  HLAUNCH_ASSIGN_OR_RETURN(const TerminalState state, StateOfThisProcess());
  HLAUNCH_ASSIGN_OR_RETURN(const JobRequest request, RequestOf(options, environment, state));
  const absl::StatusOr<uint64_t> job = AskSubmit(client, request);
  if (!absl::IsUnavailable(job.status()) && !absl::IsDeadlineExceeded(job.status())) return job;
  return absl::Status(
      job.status().code(),
      absl::StrCat(job.status().message(), "; whether it has taken the job, hlaunch ps shows"));
}

int Submit(LocalClient& client, const Options& options, const Environment& environment,
           JobGoes goes) {
  const absl::StatusOr<uint64_t> job = HandOver(client, options, environment);
  if (!job.ok()) {
    const int code = FailToAskCluster(job.status());
    if (goes == JobGoes::kWhereItCan) LogInfo("to start the job here, add --cluster none");
    return code;
  }
  LogInfo(absl::StrCat("job ", *job, " on this cluster; --cluster none starts it here"));
  return options.detach ? AwaitStart(client.path(), *job) : Follow(client.path(), *job);
}

}  // namespace

std::optional<int> RunOnCluster(const Options& options, const Environment& environment,
                                const Surroundings& surroundings) {
  absl::StatusOr<FirstDecision> first = DecideByWords(options, ClusterFacts());
  // Looking around takes longer than a job of one node may need to start.
  if (first.ok() && first->goes != JobGoes::kHere) {
    first = DecideByWords(options, FactsOf(options, environment, surroundings));
  }
  if (!first.ok()) return FailToAskCluster(first.status());
  if (first->goes == JobGoes::kHere) return std::nullopt;
  SetLogLevel(options.output.log_level);
  if (options.output.json) SetLogJson();
  LocalClient client(SocketOfDaemon(environment));
  const absl::StatusOr<bool> goes = DecideByAnswer(*first, AskHere(client));
  if (!goes.ok()) return FailToAskCluster(goes.status());
  if (!*goes) return std::nullopt;
  for (const std::string& warning : options.cluster_warnings) LogWarning(warning);
  return Submit(client, options, environment, first->goes);
}

}  // namespace hlaunch
