// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/show_status.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/command/own_jobs/watch_status.h"
#include "launcher/grpc/ask.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/remote/detached/known_jobs.h"
#include "launcher/report/job/json_report.h"
#include "launcher/report/job/status_text.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/report/status/status_model.h"
#include "launcher/report/status/status_page.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/rpc/query/status_client.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

// Returns the words that ask where the nodes of `job` meet.
absl::StatusOr<AskWords> WordsToAsk(const DetachedJob& job, bool json) {
  HLAUNCH_ASSIGN_OR_RETURN(const MeetingPlace place, ReadMeeting(job.directory));
  HLAUNCH_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(place.endpoint, 0));
  return AskWords{
      job.id,    endpoint, {}, place.token_file, {place.tls_cert, place.tls_key, place.tls_ca},
      place.tls, json};
}

// Looks at the user's detached jobs: sets `answer` for `options`, or returns whom to ask.
absl::StatusOr<AskWords> FindDetached(const StatusOptions& options, std::string& answer) {
  const std::string directory = JobsDirectory(Environment::OfThisProcess());
  const std::vector<DetachedJob> known = KnownJobs(directory);
  if (options.job_id.empty() && !options.watch) {
    answer = options.json ? JobsJson(known) : JobsText(known);
    return AskWords();
  }
  HLAUNCH_ASSIGN_OR_RETURN(const DetachedJob job,
                           ChooseJob(known, options.job_id, /*ended_will_do=*/true));
  absl::StatusOr<AskWords> words = WordsToAsk(job, options.json);
  if (job.life == JobLife::kRuns && words.ok()) return words;
  answer = options.json ? OneJobJson(job) : OneJobText(job);
  return AskWords();
}

// What to ask, and how to show it.
struct Asked {
  RendezvousEndpoint endpoint;
  const StatusOptions& options;
  AskWords words;
};

absl::StatusOr<JobList> Fetch(const Asked& asked, Duration patience) {
  HLAUNCH_ASSIGN_OR_RETURN(JobList list, FetchStatus(asked.endpoint, asked.words.job_id,
                                                     MonotonicClock().Now() + patience));
  if (!asked.words.job_id.empty() && list.jobs.size() != 1) {
    return absl::InternalError("an answer without the job");
  }
  return list;
}

int Print(const AskWords& words, const JobList& list) {
  if (words.job_id.empty()) {
    return PrintAnswer(words.json ? JobListJson(list.jobs, list.total, list.leader)
                                  : JobListText(list.jobs, list.total, list.leader));
  }
  return PrintAnswer(words.json ? JobJson(list.jobs[0]) : JobText(list.jobs[0]));
}

std::string HowToAsk(const AskWords& words) {
  return absl::StrCat("--rdzv-endpoint ", HostPort(words.endpoint));
}

int WriteSnapshot(const Asked& asked, const JobStatus& status) {
  const StatusModel model = ModelOf(status, HowToAsk(asked.words));
  const absl::Status written =
      WriteReport(asked.options.html_file, StatusPage(model, PageKind::kSnapshot));
  return written.ok() ? kExitOk : FailToAsk(written, kExitUsage);
}

int AskForStatus(const StatusOptions& options, const AskWords& words) {
  absl::StatusOr<RendezvousEndpoint> endpoint = EndpointToAsk(words);
  if (!endpoint.ok()) return FailToAsk(endpoint.status(), kExitUsage);
  const Asked asked = {*std::move(endpoint), options, words};
  if (options.watch) {
    return WatchStatus({[&asked](Duration patience) { return Fetch(asked, patience); },
                        words.job_id.empty(), HowToAsk(words)});
  }
  const absl::StatusOr<JobList> list = Fetch(asked, kPatience);
  if (!list.ok()) return FailToAsk(list.status(), ExitCodeOf(FailedStep::kAsk, list.status()));
  if (!options.html_file.empty()) return WriteSnapshot(asked, list->jobs[0]);
  return Print(words, *list);
}

}  // namespace

int ShowStatus(int argc, char** argv) {
  const absl::StatusOr<StatusOptions> options = ParseStatusOptions(argc, argv);
  if (!options.ok()) return FailToAsk(options.status(), kExitUsage);
  if (options->text_to_print) return PrintAnswer(*options->text_to_print);
  if (!options->detached) return AskForStatus(*options, *options);
  std::string answer;
  const absl::StatusOr<AskWords> words = FindDetached(*options, answer);
  if (!words.ok()) {
    return FailToAsk(words.status(), absl::IsNotFound(words.status()) ? kExitRefused : kExitUsage);
  }
  if (answer.empty()) return AskForStatus(*options, *words);
  if (options->html_file.empty()) return PrintAnswer(answer);
  return FailToAsk(absl::NotFoundError("the job has ended, and nobody can say any more where it "
                                       "stood; hlaunch logs shows what it said"),
                   kExitRefused);
}

}  // namespace hlaunch
