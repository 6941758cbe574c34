// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/show_status.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/detached/job_record.h"
#include "launcher/detached/known_jobs.h"
#include "launcher/grpc/ask.h"
#include "launcher/report/status_text.h"
#include "launcher/words/endpoint.h"
#include "launcher/words/environment.h"
#include "launcher/words/exit_codes.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/ask/status_client.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

// Where the nodes of `job` meet, in the words that ask there.
absl::StatusOr<AskWords> WordsToAsk(const DetachedJob& job, bool json) {
  HLAUNCH_ASSIGN_OR_RETURN(const MeetingPlace place, ReadMeeting(job.directory));
  HLAUNCH_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(place.endpoint, 0));
  return AskWords{
      job.id,    endpoint, {}, place.token_file, {place.tls_cert, place.tls_key, place.tls_ca},
      place.tls, json};
}

// Of the user's detached jobs: the answer for `options`, or whom to ask.
absl::StatusOr<AskWords> FindDetached(const StatusOptions& options, std::string& answer) {
  const std::string directory = JobsDirectory(Environment::OfThisProcess());
  const std::vector<DetachedJob> known = KnownJobs(directory);
  if (options.job_id.empty()) {
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

int AskForStatus(const AskWords& words) {
  const absl::StatusOr<RendezvousEndpoint> endpoint = EndpointToAsk(words);
  if (!endpoint.ok()) return FailToAsk(endpoint.status(), kExitUsage);
  const absl::StatusOr<JobList> list =
      FetchStatus(*endpoint, words.job_id, MonotonicClock().Now() + kPatience);
  if (!list.ok()) return FailToAsk(list.status(), ExitCodeOf(FailedStep::kAsk, list.status()));
  if (words.job_id.empty()) {
    return PrintAnswer(words.json ? JobListJson(list->jobs, list->total, list->leader)
                                  : JobListText(list->jobs, list->total, list->leader));
  }
  if (list->jobs.size() != 1) {
    return FailToAsk(absl::InternalError("an answer without the job"), kExitInternal);
  }
  return PrintAnswer(words.json ? JobJson(list->jobs[0]) : JobText(list->jobs[0]));
}

}  // namespace

int ShowStatus(int argc, char** argv) {
  const absl::StatusOr<StatusOptions> options = ParseStatusOptions(argc, argv);
  if (!options.ok()) return FailToAsk(options.status(), kExitUsage);
  if (options->text_to_print) return PrintAnswer(*options->text_to_print);
  if (!options->detached) return AskForStatus(*options);
  std::string answer;
  const absl::StatusOr<AskWords> words = FindDetached(*options, answer);
  if (!words.ok()) {
    return FailToAsk(words.status(), absl::IsNotFound(words.status()) ? kExitRefused : kExitUsage);
  }
  return answer.empty() ? AskForStatus(*words) : PrintAnswer(answer);
}

}  // namespace hlaunch
