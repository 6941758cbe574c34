// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/detached_commands.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/worker/standstill.h"
#include "launcher/job/socket/find_sockets.h"
#include "launcher/remote/detached/detached_words.h"
#include "launcher/remote/detached/follow_job.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/remote/detached/known_jobs.h"
#include "launcher/remote/detached/line_printer.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr int kExitStillRuns = 1;
// The time for killed processes to be gone from all hosts and for the news of it to arrive.
constexpr Duration kKillTime = std::chrono::seconds(30);
constexpr Duration kAskAgain = std::chrono::seconds(1);
constexpr Duration kBetweenSignals = std::chrono::milliseconds(200);
constexpr Duration kStandstillLook = std::chrono::seconds(3);

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return FlushStdout();
}

int Fail(const absl::Status& status) {
  LogError(status.message());
  return absl::IsNotFound(status) ? kExitRefused : kExitUsage;
}

// The jobs of this user that run on this host and whose records are not in `directory`: another
// HOME or XDG_STATE_HOME was set where they were started.
std::vector<DetachedJob> JobsKeptElsewhere(const std::string& directory) {
  std::vector<DetachedJob> jobs;
  std::set<std::string> seen;
  for (const FoundJob& found : FindJobs(::geteuid()).jobs) {
    const std::string& kept = found.here.detached;
    const bool here = !directory.empty() && absl::StartsWith(kept, directory + "/");
    if (kept.empty() || here || !seen.insert(kept).second) continue;
    absl::StatusOr<DetachedJob> job = ReadJob(kept);
    if (job.ok() && job->id == found.here.job_id) jobs.push_back(*std::move(job));
  }
  return jobs;
}

// A record of another user could name any process, so root does not go by it.
absl::Status OfAnotherUser(const std::string& id) {
  for (const FoundJob& found : FindJobs(std::nullopt).jobs) {
    if (found.here.job_id != id || found.here.detached.empty()) continue;
    return absl::NotFoundError(
        absl::StrCat("job ", PrintableLine(id), " is a detached job of user ", found.socket.uid,
                     ", who alone may end it or read its log: sudo -u '#", found.socket.uid,
                     "' hlaunch stop ", PrintableLine(id)));
  }
  return absl::OkStatus();
}

absl::StatusOr<DetachedJob> FindJob(const DetachedOptions& options, bool ended_will_do) {
  const std::string directory = JobsDirectory(Environment::OfThisProcess());
  std::vector<DetachedJob> known;
  if (!directory.empty()) known = KnownJobs(directory);
  const std::string& id = options.job_id;
  absl::StatusOr<DetachedJob> job = ChooseJob(known, id, ended_will_do);
  if (!absl::IsNotFound(job.status())) return job;
  absl::StatusOr<DetachedJob> elsewhere =
      ChooseJob(JobsKeptElsewhere(directory), id, ended_will_do);
  if (!absl::IsNotFound(elsewhere.status())) return elsewhere;
  if (!id.empty() && ::geteuid() == 0) HLAUNCH_RETURN_IF_ERROR(OfAnotherUser(id));
  return job;
}

FollowEnd Show(const DetachedJob& job, const DetachedOptions& options, const std::string& since,
               bool both_streams, int signals) {
  LinePrinter printer(options, since, both_streams);
  FollowWish wish;
  wish.tail = options.tail;
  wish.follow = options.follow;
  wish.signals = signals;
  wish.show = [&printer](const LogLine& line) { printer.Show(line); };
  wish.shown = [] { std::fflush(stdout); };
  return FollowJob(job, wish);
}

int EndOf(const DetachedJob& job) {
  const absl::StatusOr<DetachedJob> now = ReadJob(job.directory);
  if (now.ok() && now->ending.has_value()) return now->ending->exit_code;
  LogError(absl::StrCat("what holds job ", PrintableLine(job.id),
                        " was killed: nobody knows how the job ended; its agents end by themselves "
                        "within --loss-limit"));
  return kExitAgentLost;
}

// Waits until `job` has ended or `deadline` has passed. Returns whether it has ended.
bool AwaitEnd(const DetachedJob& job, Instant deadline) {
  constexpr Duration kLook = std::chrono::milliseconds(200);
  constexpr Duration kLongLook = std::chrono::minutes(1);
  const UniqueFd holder = WatchHolder(job);
  while (Lives(job.holder, PlaceOfThisProcess()).value_or(false)) {
    const Duration left = deadline - MonotonicClock().Now();
    if (left <= Duration::zero()) return false;
    pollfd poll = {holder.get(), POLLIN, 0};
    ::poll(&poll, 1,
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(
                                std::min<Duration>(left, holder.valid() ? kLongLook : kLook))
                                .count()));
    if (poll.revents != 0) return true;
  }
  return true;
}

void Ask(const DetachedJob& job, int signal) {
  const std::optional<ProcessEntry> holder = ReadProcess(job.holder.pid);
  if (holder.has_value() && holder->start_time == job.holder.start_time) {
    SignalProcess(*holder, signal);
  }
}

// Tells once that what holds the job cannot end it, because it stands still. Returns whether it
// does.
bool TellIfStopped(const DetachedJob& job, bool* told) {
  const std::optional<ProcessEntry> holder = ReadProcess(job.holder.pid);
  const bool stopped = holder.has_value() && holder->start_time == job.holder.start_time &&
                       (holder->state == 'T' || holder->state == 't');
  if (stopped && !std::exchange(*told, true)) {
    LogWarning(absl::StrCat("what holds job ", PrintableLine(job.id), " (pid ", job.holder.pid,
                            ") does not answer: it ", DescribeStandstill(job.holder.pid),
                            "; kill -CONT ", job.holder.pid, " lets it end the job"));
  }
  return stopped;
}

// As AwaitEnd, and looks now and then whether the holder stands still; waits for one that does no
// longer than kKillTime.
bool AwaitEndOrTell(const DetachedJob& job, Instant deadline) {
  bool told = false;
  Instant moved = MonotonicClock().Now();
  while (MonotonicClock().Now() < deadline) {
    const Instant look = MonotonicClock().Now() + kStandstillLook;
    if (AwaitEnd(job, std::min(deadline, look))) return true;
    const Instant now = MonotonicClock().Now();
    if (!TellIfStopped(job, &told)) {
      moved = now;
    } else if (now - moved >= kKillTime) {
      return false;
    }
  }
  return false;
}

int TellStopped(const DetachedJob& job) {
  const absl::StatusOr<DetachedJob> now = ReadJob(job.directory);
  return Print(absl::StrCat("stopped\n", OneJobText(now.ok() ? *now : job)));
}

int Stop(const DetachedJob& job, std::optional<Duration> grace) {
  const auto in = [](Duration time) { return MonotonicClock().Now() + time; };
  Ask(job, SIGTERM);
  // Two signals that come together are handled in the order of their numbers; the first says how
  // the job ended.
  const Instant until_kill =
      grace.has_value() ? in(std::max(*grace, kBetweenSignals)) : Instant::max();
  if (AwaitEndOrTell(job, until_kill)) return TellStopped(job);
  if (!grace.has_value()) {
    LogError(absl::StrCat("job ", PrintableLine(job.id),
                          " does not end while its hlaunch-holder process stands still"));
    return kExitStillRuns;
  }
  if (*grace > Duration::zero()) {
    LogWarning(absl::StrCat("job ", PrintableLine(job.id), " has not ended in time: killing it"));
  }
  // The second signal that asks for an end means that, as with Ctrl-C. If both wait for a process
  // that stands still, SIGINT comes first, and only one more means it.
  for (const Instant until = in(kKillTime); MonotonicClock().Now() < until;) {
    Ask(job, SIGINT);
    if (AwaitEnd(job, std::min(until, in(kAskAgain)))) return TellStopped(job);
  }
  LogError(absl::StrCat("job ", PrintableLine(job.id), " has been killed and does not end; see ",
                        "hlaunch logs ", PrintableLine(job.id)));
  return kExitStillRuns;
}

}  // namespace

int AttachJob(int argc, char** argv) {
  const absl::StatusOr<DetachedOptions> options = ParseAttachOptions(argc, argv);
  if (!options.ok()) return Fail(options.status());
  if (options->text_to_print) return Print(*options->text_to_print);
  const absl::StatusOr<DetachedJob> job = FindJob(*options, /*ended_will_do=*/true);
  if (!job.ok()) return Fail(job.status());
  const UniqueFd signals = SignalsOfPerson();
  if (Show(*job, *options, "", /*both_streams=*/true, signals.get()) == FollowEnd::kAsked) {
    LogInfo(absl::StrCat("detached; job ", PrintableLine(job->id), " goes on (hlaunch stop ",
                         PrintableLine(job->id), " ends it)"));
    return kExitSignalBase + SIGINT;
  }
  return EndOf(*job);
}

int ShowLogs(int argc, char** argv) {
  const absl::StatusOr<DetachedOptions> options = ParseLogsOptions(argc, argv);
  if (!options.ok()) return Fail(options.status());
  if (options->text_to_print) return Print(*options->text_to_print);
  const absl::StatusOr<DetachedJob> job = FindJob(*options, /*ended_will_do=*/true);
  if (!job.ok()) return Fail(job.status());
  if (!options->ranks.empty() && !job->names_ranks) {
    return Fail(absl::InvalidArgumentError(
        "--rank: the lines of this job name no ranks: it has one worker, or lines begin otherwise "
        "(--log-prefix)"));
  }
  if (!options->node.empty()) {
    return Fail(absl::InvalidArgumentError(
        "--node is for a job of the cluster of hlaunchd; the log of this one is of all its nodes"));
  }
  const absl::StatusOr<std::string> since = ReadSince(options->since, WallMillis());
  if (!since.ok()) return Fail(since.status());
  Show(*job, *options, *since, /*both_streams=*/false, -1);
  return kExitOk;
}

namespace {

int StopAsSaid(const absl::StatusOr<DetachedOptions>& options) {
  if (!options.ok()) return Fail(options.status());
  if (options->text_to_print) return Print(*options->text_to_print);
  const absl::StatusOr<DetachedJob> job = FindJob(*options, /*ended_will_do=*/false);
  if (!job.ok()) return Fail(job.status());
  if (job->life == JobLife::kElsewhere) {
    LogError(absl::StrCat("job ", PrintableLine(job->id), " was started on ",
                          PrintableLine(job->holder.host), ": stop it there"));
    return kExitRefused;
  }
  if (job->life == JobLife::kRuns) return Stop(*job, options->grace);
  return Print(absl::StrCat("nothing to stop\n", OneJobText(*job)));
}

}  // namespace

int StopJob(int argc, char** argv) { return StopAsSaid(ParseStopOptions(argc, argv)); }

int KillJob(int argc, char** argv) { return StopAsSaid(ParseKillOptions(argc, argv)); }

}  // namespace hlaunch
