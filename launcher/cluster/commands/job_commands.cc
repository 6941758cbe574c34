// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/job_commands.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_failure.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/client/follow_job_of_cluster.h"
#include "launcher/cluster/client/kept_logs.h"
#include "launcher/cluster/commands/cluster_text.h"
#include "launcher/cluster/commands/named_job.h"
#include "launcher/remote/detached/detached_words.h"
#include "launcher/remote/detached/follow_job.h"
#include "launcher/remote/detached/line_printer.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr int kExitStillRuns = 1;
constexpr int kExitIncomplete = 3;  // Lines of some hosts are missing.
constexpr Duration kKillTime = std::chrono::seconds(30);

int EndOf(const ClusterFollowed& followed) {
  if (followed.end == ClusterFollowEnd::kRefused) return FailToAskCluster(followed.why);
  if (followed.job.exit_code.has_value()) return *followed.job.exit_code;
  LogError(absl::StrCat("job ", followed.job.number, " ended: ", PrintableLine(followed.job.why)));
  return kExitNodeLost;
}

ClusterFollowed Follow(uint64_t job, const DetachedOptions& options, const std::string& since,
                       bool both_streams) {
  const UniqueFd signals = SignalsOfPerson();
  LinePrinter printer(options, since, both_streams);
  ClusterFollowWish wish;
  wish.socket = ClientOfDaemon().path();
  wish.job = job;
  wish.node = options.node;
  wish.tail =
      options.tail.has_value() ? static_cast<int>(std::min<size_t>(*options.tail, 1 << 20)) : -1;
  wish.signals = signals.get();
  wish.show = [&printer](const LogLine& line) { printer.Show(line); };
  wish.shown = [] { std::fflush(stdout); };
  wish.asked = [](int) { return true; };
  return FollowJobOfCluster(wish);
}

int Attach(uint64_t job, const DetachedOptions& options) {
  const ClusterFollowed followed = Follow(job, options, "", /*both_streams=*/true);
  if (followed.end != ClusterFollowEnd::kLeft) return EndOf(followed);
  LogInfo(absl::StrCat("detached; job ", job, " goes on (hlaunch stop ", job, " ends it)"));
  return kExitSignalBase + followed.signal;
}

int Logs(uint64_t number, const DetachedOptions& options) {
  const absl::StatusOr<std::string> since = ReadSince(options.since, WallMillis());
  if (!since.ok()) return FailToAskCluster(since.status());
  LocalClient client = ClientOfDaemon();
  const absl::StatusOr<JobView> job = AskJob(client, number);
  if (!job.ok()) return FailToAskCluster(job.status());
  if (job->state == ClusterJobState::kWaiting && job->parts.empty()) {
    LogInfo(absl::StrCat("job ", number, " has not started: ",
                         job->why.empty() ? "it waits" : PrintableLine(job->why)));
  }
  const bool named = std::any_of(job->parts.begin(), job->parts.end(),
                                 [&](const PartView& part) { return IsNode(part, options.node); });
  if (!options.node.empty() && !named) {
    return FailToAskCluster(
        absl::NotFoundError(absl::StrCat("job ", number, " has no node ", options.node,
                                         "; hlaunch ps ", number, " shows its nodes")));
  }
  if (!options.follow) {
    const absl::StatusOr<size_t> missing = ShowKeptLogs(client, *job, options, *since);
    if (!missing.ok()) return FailToAskCluster(missing.status());
    return *missing == 0 ? kExitOk : kExitIncomplete;
  }
  const ClusterFollowed followed = Follow(number, options, *since, /*both_streams=*/false);
  if (followed.end == ClusterFollowEnd::kRefused) return FailToAskCluster(followed.why);
  if (followed.incomplete.empty()) return kExitOk;
  LogWarning(absl::StrCat("job ", number, ": lines are missing here of node",
                          followed.incomplete.size() == 1 ? " " : "s ",
                          RankList(followed.incomplete)));
  return kExitIncomplete;
}

// Waits until the job has ended, `deadline` has passed or the user interrupts.
ClusterFollowed AwaitEnd(uint64_t job, Instant deadline) {
  const UniqueFd signals = SignalsOfPerson();
  ClusterFollowWish wish;
  wish.socket = ClientOfDaemon().path();
  wish.job = job;
  wish.shows_logs = false;
  wish.signals = signals.get();
  wish.deadline = deadline;
  wish.asked = [](int) { return true; };
  return FollowJobOfCluster(wish);
}

int TellEnd(const ClusterFollowed& followed, const char* word) {
  switch (followed.end) {
    case ClusterFollowEnd::kEnded:
      return PrintOfCluster(absl::StrCat(word, "\n", ClusterJobText(followed.job, WallMillis())));
    case ClusterFollowEnd::kRefused:
      return FailToAskCluster(followed.why);
    case ClusterFollowEnd::kLeft:
      LogInfo(absl::StrCat("job ", followed.job.number, " was told to end; hlaunch ps ",
                           followed.job.number, " shows whether it has"));
      return kExitSignalBase + followed.signal;
    case ClusterFollowEnd::kEnough:
      break;
  }
  const std::string& why = followed.job.why;
  LogError(absl::StrCat("job ", followed.job.number, " does not end", why.empty() ? "" : ": ",
                        PrintableLine(why)));
  return kExitStillRuns;
}

// Unset `grace`: the job's own grace time. Zero: the job is killed.
int Stop(uint64_t number, std::optional<Duration> grace) {
  LocalClient client = ClientOfDaemon();
  const absl::StatusOr<JobView> job = AskJob(client, number);
  if (!job.ok()) return FailToAskCluster(job.status());
  if (job->state == ClusterJobState::kEnded) {
    return PrintOfCluster(absl::StrCat("nothing to stop\n", ClusterJobText(*job, WallMillis())));
  }
  const auto in = [](Duration time) { return MonotonicClock().Now() + time; };
  const bool kill = grace.has_value() && *grace == Duration::zero();
  StopQuestion question{.job = number};
  if (grace.has_value()) {
    question.grace_s =
        static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(*grace).count());
  }
  const absl::Status told = AskStop(client, kill ? "kill" : "stop", question);
  if (!told.ok()) return FailToAskCluster(told);
  if (kill) return TellEnd(AwaitEnd(number, in(kKillTime)), "killed");
  const Instant deadline = grace.has_value() ? in(*grace + kKillTime) : Instant::max();
  const ClusterFollowed followed = AwaitEnd(number, deadline);
  if (followed.end != ClusterFollowEnd::kEnough) return TellEnd(followed, "stopped");
  LogWarning(absl::StrCat("job ", number, " has not ended in time: killing it"));
  if (const absl::Status killed = AskStop(client, "kill", {.job = number}); !killed.ok()) {
    return FailToAskCluster(killed);
  }
  return TellEnd(AwaitEnd(number, in(kKillTime)), "killed");
}

absl::StatusOr<DetachedOptions> Parse(absl::string_view word, int argc, char** argv) {
  if (word == "attach") return ParseAttachOptions(argc, argv);
  if (word == "logs") return ParseLogsOptions(argc, argv);
  return word == "stop" ? ParseStopOptions(argc, argv) : ParseKillOptions(argc, argv);
}

}  // namespace

std::optional<int> RunForJobOfCluster(absl::string_view word, int argc, char** argv) {
  const absl::StatusOr<DetachedOptions> options = Parse(word, argc, argv);
  if (!options.ok() || options->text_to_print) return std::nullopt;
  const std::optional<uint64_t> job = JobOfCluster(options->job_id);
  if (!job.has_value()) return std::nullopt;
  if (word == "attach") return Attach(*job, *options);
  if (word == "logs") return Logs(*job, *options);
  return Stop(*job, options->grace);
}

}  // namespace hlaunch
