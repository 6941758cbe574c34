// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/own_jobs/own_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "launcher/remote/detached/known_jobs.h"
#include "launcher/report/query/ask_options.h"
#include "launcher/text/environment.h"
#include "launcher/text/printable.h"

namespace hlaunch {
namespace {

constexpr char kNone[] =
    "no job of yours runs on this host, and none is kept of those with --detach; a job of other "
    "hosts\nis listed there, or from here by hlaunch status --rdzv-endpoint HOST[:PORT]\n";

// What can answer for the job comes first, then what started all of it.
int Order(const FoundJob& part) {
  if (part.here.decides) return 0;
  return part.here.started_on.empty() ? 2 : 1;
}

int64_t StartOf(const OwnJob& job) {
  if (job.kept) return job.kept->started_ms;
  return job.parts.empty() ? 0 : job.parts[0].here.started_ms;
}

// The job as one of the list of detached jobs; without a folder, if it is none.
DetachedJob Listed(const OwnJob& job) {
  if (job.kept) return *job.kept;
  const FoundJob& part = job.parts[0];
  DetachedJob listed;
  listed.id = job.id;
  listed.holder.host = part.here.host;
  listed.holder.pid = part.pid;
  listed.started_ms = part.here.started_ms;
  listed.words = part.here.words;
  listed.life = JobLife::kRuns;
  return listed;
}

std::vector<DetachedJob> Listed(const OwnJobList& known) {
  std::vector<DetachedJob> listed;
  for (const OwnJob& job : known.jobs) listed.push_back(Listed(job));
  return listed;
}

const OwnJob* Find(const std::vector<OwnJob>& jobs, const std::string& id) {
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&id](const OwnJob& job) { return job.id == id; });
  return found == jobs.end() ? nullptr : &*found;
}

// One line about processes that do not answer; empty if all do.
std::string SilentText(const OwnJobList& known) {
  if (known.silent.empty()) return "";
  return absl::StrCat(known.silent.size() == 1 ? "a job that does not answer: pid "
                                               : "jobs that do not answer: pids ",
                      absl::StrJoin(known.silent, ", "),
                      " (stopped, or very busy; see ps -o pid,stat,args -p PID)");
}

bool Decides(const FoundJob& part) { return part.here.decides; }

// Adds a job of which a record is kept to the `jobs` that were found, or to that of them that it
// is.
void TakeKept(const DetachedJob& one, std::vector<OwnJob>& jobs) {
  for (OwnJob& job : jobs) {
    const bool is_that =
        std::any_of(job.parts.begin(), job.parts.end(),
                    [&one](const FoundJob& part) { return part.here.detached == one.directory; });
    if (!is_that) continue;
    job.kept = one;
    return;
  }
  // Of an older job with the name of one that runs nothing is shown.
  if (one.life == JobLife::kRuns || Find(jobs, one.id) == nullptr)
    jobs.push_back({one.id, {}, one});
}

// Why the name `id` does not say which of these jobs is meant.
absl::Status SeveralOfThatName(const std::string& id, const std::vector<const OwnJob*>& jobs) {
  std::vector<std::string> pids;
  for (const OwnJob* const job : jobs) {
    if (!job->parts.empty()) pids.push_back(absl::StrCat(job->parts[0].pid));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(jobs.size(), " jobs with the name ", PrintableLine(id), " run here (pids ",
                   absl::StrJoin(pids, ", "),
                   "); Ctrl-C in its terminal or kill PID ends one of them, and "
                   "--rdzv-id gives each its own name"));
}

// Text that follows a line of an error, indented, or it would not be shown as lines.
std::string Indented(const std::string& text) {
  return absl::StrCat("\n  ", absl::StrReplaceAll(absl::StripSuffix(text, "\n"), {{"\n", "\n  "}}));
}

}  // namespace

OwnJobList FindOwnJobs(const std::string& wanted) {
  const std::string directory = JobsDirectory(Environment::OfThisProcess());
  const std::vector<DetachedJob> kept =
      directory.empty() ? std::vector<DetachedJob>() : KnownJobs(directory);
  FoundJobs found = FindJobs(::geteuid());
  OwnJobList known{GroupJobs(std::move(found.jobs), kept), std::move(found.silent)};
  if (wanted.empty() || ::geteuid() != 0 || Find(known.jobs, wanted) != nullptr) return known;
  found = FindJobs(std::nullopt);
  return {GroupJobs(std::move(found.jobs), kept), std::move(found.silent)};
}

std::vector<OwnJob> GroupJobs(std::vector<FoundJob> found, const std::vector<DetachedJob>& kept) {
  std::map<std::pair<uid_t, std::string>, OwnJob> by_id;
  std::vector<OwnJob> jobs;
  for (FoundJob& part : found) {
    OwnJob& job = by_id[{part.socket.uid, part.here.job_id}];
    job.id = part.here.job_id;
    // Two that decide are two jobs of one name.
    const bool second =
        part.here.decides && std::any_of(job.parts.begin(), job.parts.end(), Decides);
    if (second) jobs.push_back({job.id, {}, std::nullopt});
    (second ? jobs.back() : job).parts.push_back(std::move(part));
  }
  for (auto& [id, job] : by_id) jobs.push_back(std::move(job));
  for (const DetachedJob& one : kept) TakeKept(one, jobs);
  for (OwnJob& job : jobs) {
    std::stable_sort(job.parts.begin(), job.parts.end(),
                     [](const FoundJob& a, const FoundJob& b) { return Order(a) < Order(b); });
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const OwnJob& a, const OwnJob& b) { return StartOf(a) > StartOf(b); });
  return jobs;
}

OwnJobList Running(OwnJobList known) {
  std::erase_if(known.jobs, [](const OwnJob& job) { return !job.runs(); });
  return known;
}

absl::StatusOr<OwnJob> ChooseOwnJob(const OwnJobList& known, const std::string& id,
                                    absl::string_view command) {
  std::vector<const OwnJob*> named;
  for (const OwnJob& job : known.jobs) {
    if (job.id == id && job.runs()) named.push_back(&job);
  }
  if (named.size() > 1) return SeveralOfThatName(id, named);
  if (named.size() == 1) return *named[0];
  if (const OwnJob* const ended = id.empty() ? nullptr : Find(known.jobs, id)) return *ended;
  const OwnJobList running = Running(known);
  if (id.empty() && running.jobs.size() == 1) return running.jobs[0];
  if (id.empty() && running.jobs.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("which job is meant? Name one, as in hlaunch ",
                                                   command, " ", PrintableLine(running.jobs[0].id),
                                                   ":", Indented(OwnJobsText(running))));
  }
  std::string why(NoJobToAsk(id).message());
  if (!known.silent.empty()) absl::StrAppend(&why, "; ", SilentText(known));
  if (!running.jobs.empty()) {
    absl::StrAppend(&why, "; here run", Indented(OwnJobsText(running)));
  }
  return absl::NotFoundError(why);
}

std::string OwnJobsText(const OwnJobList& known) {
  const std::string silent = SilentText(known);
  return absl::StrCat(known.jobs.empty() ? kNone : JobsText(Listed(known)), silent,
                      silent.empty() ? "" : "\n");
}

std::string OwnJobsJson(const OwnJobList& known) { return JobsJson(Listed(known)); }

}  // namespace hlaunch
