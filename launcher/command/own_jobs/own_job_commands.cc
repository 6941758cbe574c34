// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/own_jobs/own_job_commands.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/command/own_jobs/ask_own_job.h"
#include "launcher/command/own_jobs/end_own_job.h"
#include "launcher/command/own_jobs/own_jobs.h"
#include "launcher/remote/detached/detached_words.h"
#include "launcher/report/job/status_text.h"
#include "launcher/report/query/ask_options.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/report/status/live_screen.h"
#include "launcher/report/status/status_screen.h"
#include "proto/cluster/job_id.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using Words = std::vector<std::string>;

// Asks the nodes of a job that runs elsewhere or has ended, whose record is kept.
int AskKept(const OwnJob& job, Words words, bool named, const BecomeAgentFn& become_agent) {
  if (!named) words.insert(words.begin() + 2, job.id);
  return become_agent(words);
}

int RunStatus(const Words& words, const StatusOptions& options, const BecomeAgentFn& become_agent) {
  const OwnJobList known = FindOwnJobs(options.job_id);
  const bool named = !options.job_id.empty();
  const bool only_one = Running(known).jobs.size() == 1 && known.silent.empty();
  if (!named && !options.watch && (options.json || !only_one)) {
    return PrintAnswer(options.json ? OwnJobsJson(known) : OwnJobsText(known));
  }
  const absl::StatusOr<OwnJob> job = ChooseOwnJob(known, options.job_id, "status");
  if (!job.ok()) return FailToFind(job.status());
  if (AnswersItself(*job)) return TellStatusOf(*job, options);
  if (job->parts.empty()) return AskKept(*job, words, named, become_agent);
  return AskAtMeetingOf(*job, words, named, become_agent);
}

int RunRanks(const Words& words, const AskOptions& options, const BecomeAgentFn& become_agent) {
  const bool named = !options.words.job_id.empty();
  const absl::StatusOr<OwnJob> job =
      ChooseOwnJob(FindOwnJobs(options.words.job_id), options.words.job_id, words[1]);
  if (!job.ok()) return FailToFind(job.status());
  if (AnswersItself(*job)) return TellRanksOf(*job, options);
  if (job->parts.empty()) return AskKept(*job, words, named, become_agent);
  return AskAtMeetingOf(*job, words, named, become_agent);
}

// The job that a command for detached jobs is about, if it is none of those. Unset: it is, or there
// is no such job. An error: it is unclear which job is meant, or a job does not answer.
absl::StatusOr<std::optional<OwnJob>> FindUndetached(const DetachedOptions& options,
                                                     absl::string_view word) {
  OwnJobList known = FindOwnJobs(options.job_id);
  const bool named = !options.job_id.empty();
  const bool ends = word == "stop" || word == "kill";
  absl::StatusOr<OwnJob> job = ChooseOwnJob(known, options.job_id, word);
  const bool is_detached =
      std::any_of(known.jobs.begin(), known.jobs.end(), [&](const OwnJob& one) {
        return one.detached() && (named ? one.id == options.job_id : one.runs());
      });
  // No job is ended that may not be the one that is meant.
  if (is_detached) {
    const bool unclear = absl::IsInvalidArgument(job.status()) && (named || ends);
    return unclear ? job.status() : absl::StatusOr<std::optional<OwnJob>>(std::nullopt);
  }
  // A part of a cluster's job is detached, too, and kept by hlaunchd.
  std::erase_if(known.jobs, [](const OwnJob& one) {
    return one.parts.empty() || !one.parts[0].here.detached.empty();
  });
  if (known.jobs.empty() && known.silent.empty()) return std::nullopt;
  job = ChooseOwnJob(known, options.job_id, word);
  // The one that is meant may be one that does not answer; a number may be a job of the cluster.
  const bool is_number =
      named && options.job_id.find_first_not_of("0123456789") == std::string::npos;
  if (absl::IsNotFound(job.status()) && (known.silent.empty() || is_number)) return std::nullopt;
  if (!job.ok()) return job.status();
  return std::optional<OwnJob>(*std::move(job));
}

std::optional<int> RunLogsOrEnd(absl::string_view word, const DetachedOptions& options) {
  const absl::StatusOr<std::optional<OwnJob>> job = FindUndetached(options, word);
  if (!job.ok()) return FailToFind(job.status());
  if (!job->has_value()) return std::nullopt;
  if (word == "logs") return TellLogsOf(**job);
  if (word == "attach") return RefuseToAttach(**job);
  return EndOwnJob(**job, word, !options.job_id.empty(), options.grace);
}

absl::StatusOr<DetachedOptions> ParseDetached(absl::string_view word, int argc,
                                              const char* const* argv) {
  if (word == "attach") return ParseAttachOptions(argc, argv);
  if (word == "logs") return ParseLogsOptions(argc, argv);
  return word == "stop" ? ParseStopOptions(argc, argv) : ParseKillOptions(argc, argv);
}

LiveFrame FrameOfAll() {
  const std::string text = OwnJobsText(Running(FindOwnJobs()));
  return {[text](const ScreenSize& size) { return TextScreen(text, size); }, text};
}

}  // namespace

std::optional<int> RunForOwnJob(const Words& words, const BecomeAgentFn& become_agent) {
  const std::string& word = words[1];
  std::vector<const char*> argv;
  for (const std::string& one : words) argv.push_back(one.c_str());
  const auto argc = static_cast<int>(argv.size());
  if (word == "status") {
    const absl::StatusOr<StatusOptions> options = ParseStatusOptions(argc, argv.data());
    // hlaunch-agent reports an error as well.
    if (!options.ok() || options->text_to_print || !options->detached) return std::nullopt;
    return RunStatus(words, *options, become_agent);
  }
  if (word == "why" || word == "stacks") {
    const absl::StatusOr<AskOptions> options =
        word == "why" ? ParseWhyOptions(argc, argv.data()) : ParseStacksOptions(argc, argv.data());
    if (!options.ok() || options->text_to_print || !options->here) return std::nullopt;
    return RunRanks(words, *options, become_agent);
  }
  if (word != "logs" && word != "attach" && word != "stop" && word != "kill") return std::nullopt;
  const absl::StatusOr<DetachedOptions> options = ParseDetached(word, argc, argv.data());
  if (!options.ok() || options->text_to_print) return std::nullopt;
  return RunLogsOrEnd(word, *options);
}

bool RunsHere(const std::string& id) {
  const std::vector<FoundJob> found = FindJobs(::geteuid()).jobs;
  return std::any_of(found.begin(), found.end(),
                     [&id](const FoundJob& job) { return job.here.job_id == id; });
}

int ListOwnJobs(bool json) {
  const OwnJobList known = FindOwnJobs();
  return PrintAnswer(json ? OwnJobsJson(known) : OwnJobsText(known));
}

int TellOwnJob(const std::string& program, const std::string& id, bool json,
               const BecomeAgentFn& become_agent) {
  StatusOptions options;
  options.job_id = id;
  options.json = json;
  Words words = {program, "status", id};
  if (json) words.push_back("--json");
  return RunStatus(words, options, become_agent);
}

std::string OwnJobsBesideCluster() {
  OwnJobList known = FindOwnJobs();
  std::erase_if(known.jobs, [](const OwnJob& job) { return ClusterJobNumber(job.id).has_value(); });
  return known.jobs.empty() ? "" : OwnJobsText(known);
}

int WatchOwnJobs(const std::string& program, const std::string& id,
                 const BecomeAgentFn& become_agent) {
  const OwnJobList running = Running(FindOwnJobs(id));
  if (id.empty() && running.jobs.size() > 1) {
    WatchLive(FrameOfAll);
    return kExitOk;
  }
  StatusOptions options;
  options.watch = true;
  const absl::StatusOr<OwnJob> job = ChooseOwnJob(running, id, "top");
  if (!job.ok()) return FailToFind(job.status());
  if (AnswersItself(*job)) return TellStatusOf(*job, options);
  const Words words = {program, "status", job->id, "--watch"};
  if (job->parts.empty()) return AskKept(*job, words, /*named=*/true, become_agent);
  return AskAtMeetingOf(*job, words, /*named=*/true, become_agent);
}

}  // namespace hlaunch
