// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/detach_job.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "launcher/remote/detached/follow_job.h"
#include "launcher/remote/detached/hold_job.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/remote/detached/known_jobs.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/thread.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;

// Whether each line of a worker begins with its rank.
bool NamesRanks(const Options& options) {
  const bool alone = !options.hosts.any() && options.nproc == 1 && options.others.empty();
  return !alone && options.program != "torchrun" && options.logs.prefix_template.empty() &&
         !options.logs.no_prefix;
}

// The words of this command line, with the job's id.
std::vector<std::string> WordsOfJob(int argc, char** argv, const Options& options,
                                    const std::string& id) {
  std::vector<std::string> words(argv, argv + argc);
  if (options.meeting.job_id.empty()) words.insert(words.begin() + 1, {"--rdzv-id", id});
  return words;
}

absl::StatusOr<HoldPlan> PlanOf(int argc, char** argv, const Options& options,
                                const Environment& environment) {
  const std::string jobs = JobsDirectory(environment);
  if (jobs.empty()) {
    return InvalidArgumentError(
        "--detach keeps the job's log below ~/.local/state, and HOME is not set here");
  }
  HoldPlan plan;
  DetachedJob& job = plan.job;
  job.id = options.meeting.job_id.empty() ? NewJobId() : options.meeting.job_id;
  HLAUNCH_ASSIGN_OR_RETURN(job.directory, MakeJobDirectory(jobs, job.id));
  job.started_ms = WallMillis();
  job.words.assign(argv, argv + argc);
  job.names_ranks = NamesRanks(options);
  job.life = JobLife::kRuns;
  plan.argv = WordsOfJob(argc, argv, options, job.id);
  plan.env = environment.Without(kEnvDetached);
  plan.env.push_back(absl::StrCat(kEnvDetached, "=", job.directory));
  plan.rotation =
      options.logs.rotation.bytes > 0 ? options.logs.rotation : Rotation{kHeldLogBytes, 1};
  return plan;
}

// What is printed until the job has started: of its workers' output, only stderr.
FollowWish WishOfStart(const DetachedJob& job) {
  FollowWish wish;
  wish.enough = [&job] { return HasStarted(job.directory); };
  wish.show = [](const LogLine& line) {
    if (line.fd != STDERR_FILENO) return;
    std::fputs(absl::StrCat(line.text, line.whole ? "\n" : "").c_str(), stderr);
  };
  return wish;
}

// Other processes find the holder in /proc, by its number there.
absl::Status CheckProc(const ProcessPlace& own) {
  if (own.start_time != 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "/proc is missing or shows another pid namespace, and without it nobody can tell whether the "
      "detached job runs; mount it (mount -t proc proc /proc; unshare --mount-proc)");
}

int Tell(const DetachedJob& job) {
  std::printf("%s\n", job.id.c_str());
  std::fflush(stdout);
  LogInfo(absl::StrCat("job ", job.id, " goes on without this terminal; follow it: hlaunch attach ",
                       job.id, "; what it said: hlaunch logs ", job.id, "; end it: hlaunch stop ",
                       job.id));
  return kExitOk;
}

int ExitCodeOf(const DetachedJob& job) {
  const absl::StatusOr<DetachedJob> now = ReadJob(job.directory);
  if (now.ok() && now->ending.has_value()) return now->ending->exit_code;
  siginfo_t info = {};
  const auto holder = static_cast<id_t>(job.holder.pid);
  if (::waitid(P_PID, holder, &info, WEXITED | WNOHANG) == 0 && info.si_code == CLD_EXITED) {
    LogError(absl::StrCat("job ", job.id, " ended with code ", info.si_status,
                          ", and nothing more can be kept in ", job.directory,
                          "; is the disk full?"));
    return info.si_status;
  }
  LogError(absl::StrCat("what holds job ", job.id, " was killed before all of it had started"));
  return kExitAgentLost;
}

int Await(const DetachedJob& job, pid_t holder) {
  const UniqueFd signals = SignalsOfPerson();
  FollowWish wish = WishOfStart(job);
  wish.signals = signals.get();
  if (FollowJob(job, wish) != FollowEnd::kAsked) {
    return HasStarted(job.directory) ? Tell(job) : ExitCodeOf(job);
  }
  LogWarning("asked to end before the job has started: stopping it");
  ::kill(holder, SIGINT);  // A child that was not waited for: no other process has its pid.
  wish.tail = 0;           // These lines were shown.
  wish.enough = nullptr;
  wish.signals = -1;
  FollowJob(job, wish);
  return ExitCodeOf(job);
}

}  // namespace

absl::Status CheckDetach(const Options& options, const ClusterPlace& place) {
  const InsteadOfJob& instead = options.instead;
  if (instead.dry_run || instead.print_env || instead.doctor) {
    return InvalidArgumentError(
        "--detach is for a job, and this starts none: leave one of them out");
  }
  if (options.worker.stdin_to.value_or(StdinTo::kNobody) != StdinTo::kNobody) {
    return InvalidArgumentError(
        "--detach and --stdin: a job without a terminal reads none; leave one of them out");
  }
  if (options.hosts.any()) return absl::OkStatus();
  if (options.tasks || place.found()) {
    return InvalidArgumentError(absl::StrCat("--detach: this is a part of a job of ", place.cluster,
                                             ", which ends what outlives it; leave --detach out"));
  }
  if (options.policy.max_nodes > 1) {
    return InvalidArgumentError(
        "--detach is for a job that is started whole from here: name its hosts with --hosts, or "
        "run this node's command under nohup or systemd-run");
  }
  return absl::OkStatus();
}

int DetachJob(int argc, char** argv, const Options& options, const Environment& environment) {
  absl::StatusOr<HoldPlan> plan = PlanOf(argc, argv, options, environment);
  if (!plan.ok()) {
    LogError(plan.status().message());
    return absl::IsAlreadyExists(plan.status()) ? kExitRefused : kExitUsage;
  }
  DetachedJob job = plan->job;
  job.holder = PlaceOfThisProcess();
  absl::Status can_begin = CheckProc(job.holder);
  // The holder, which has no terminal, will replace this.
  if (can_begin.ok()) can_begin = KeepJob(job);
  if (!can_begin.ok()) {
    LogError(absl::StrCat("cannot start: ", can_begin.message()));
    std::error_code ignored;
    std::filesystem::remove_all(job.directory, ignored);
    return kExitNoResources;
  }
  const pid_t holder = ::fork();
  if (holder == 0) ::_exit(HoldJob(*std::move(plan)));
  if (holder < 0) {
    LogError(absl::StrCat("cannot start: no new process: ", NoThreadWords(errno)));
    return kExitNoResources;
  }
  job.holder.pid = holder;
  if (const auto found = ReadProcess(holder)) job.holder.start_time = found->start_time;
  return Await(job, holder);
}

}  // namespace hlaunch
