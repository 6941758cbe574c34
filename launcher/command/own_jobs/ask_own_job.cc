// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/own_jobs/ask_own_job.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/command/own_jobs/watch_status.h"
#include "launcher/job/socket/ask_socket.h"
#include "launcher/report/job/json_report.h"
#include "launcher/report/query/rank_answer_text.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/report/status/status_model.h"
#include "launcher/report/status/status_page.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr Duration kSocketPatience = std::chrono::seconds(10);

absl::StatusOr<JobStatus> FetchFrom(const FoundJob& part, Duration patience) {
  absl::StatusOr<nlohmann::json> answer =
      AskSocket(part.socket, "status", nlohmann::json::object(), patience);
  if (absl::IsDeadlineExceeded(answer.status())) {
    return absl::UnavailableError(answer.status().message());
  }
  HLAUNCH_RETURN_IF_ERROR(answer.status());
  return ReadJobStatus(*answer);
}

int WatchJob(const FoundJob& part) {
  StatusToWatch watched;
  watched.ends_unseen = true;
  watched.fetch = [&part](Duration patience) -> absl::StatusOr<JobList> {
    HLAUNCH_ASSIGN_OR_RETURN(JobStatus status, FetchFrom(part, patience));
    return JobList{{std::move(status)}, 1, ""};
  };
  return WatchStatus(watched);
}

absl::StatusOr<JobMeeting> MeetingOfJob(const OwnJob& job) {
  absl::Status why = absl::NotFoundError("the job is gone");
  for (const FoundJob& part : job.parts) {
    const absl::StatusOr<nlohmann::json> answer =
        AskSocket(part.socket, "meeting", nlohmann::json::object(), kSocketPatience);
    if (answer.ok()) return ReadJobMeeting(*answer);
    why = answer.status();
  }
  return why;
}

// The error of a job with one node, on another host.
absl::Status RunsElsewhere(const OwnJob& job, absl::string_view command) {
  const std::vector<std::string>& hosts = job.parts[0].here.started_on;
  return absl::FailedPreconditionError(
      absl::StrCat("job ", PrintableLine(job.id), " has one node, which can be asked on its own ",
                   "host alone: there, run hlaunch ", command, " ", PrintableLine(job.id),
                   hosts.empty() ? "" : absl::StrCat(" (", PrintableLine(hosts[0]), ")")));
}

void Append(std::vector<std::string>& words, const char* name, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {name, value});
}

}  // namespace

bool AnswersItself(const OwnJob& job) { return !job.parts.empty() && job.parts[0].here.decides; }

int TellStatusOf(const OwnJob& job, const StatusOptions& options) {
  const FoundJob& part = job.parts[0];
  if (options.watch) return WatchJob(part);
  const absl::StatusOr<JobStatus> status = FetchFrom(part, kSocketPatience);
  if (!status.ok()) {
    return FailToAsk(status.status(), ExitCodeOf(FailedStep::kAsk, status.status()));
  }
  if (options.html_file.empty()) {
    return PrintAnswer(options.json ? JobJson(*status) : JobText(*status));
  }
  const absl::Status written =
      WriteReport(options.html_file, StatusPage(ModelOf(*status), PageKind::kSnapshot));
  return written.ok() ? kExitOk : FailToAsk(written, kExitUsage);
}

int TellRanksOf(const OwnJob& job, AskOptions options) {
  options.words.job_id = job.id;
  const absl::StatusOr<nlohmann::json> answer =
      AskSocket(job.parts[0].socket, "ranks", ToJson(options.question),
                options.question.patience + kSocketPatience);
  if (!answer.ok()) return TellRanks(options, answer.status());
  return TellRanks(options, ReadJobAnswer(*answer));
}

int AskAtMeetingOf(const OwnJob& job, std::vector<std::string> words, bool named,
                   const BecomeAgentFn& become_agent) {
  const absl::StatusOr<JobMeeting> meeting = MeetingOfJob(job);
  if (!meeting.ok()) {
    const absl::Status why = absl::IsFailedPrecondition(meeting.status())
                                 ? RunsElsewhere(job, words[1])
                                 : meeting.status();
    return FailToAsk(why, ExitCodeOf(FailedStep::kAsk, why));
  }
  if (!named) words.insert(words.begin() + 2, job.id);
  Append(words, "--rdzv-endpoint", meeting->endpoint);
  const bool proves = !meeting->token.empty() || !meeting->certificate.empty();
  if (proves) Append(words, "--tls", meeting->tls);
  Append(words, "--tls-cert", meeting->certificate);
  Append(words, "--tls-key", meeting->key);
  Append(words, "--tls-ca", meeting->authority);
  if (meeting->token.empty()) return become_agent(words);
  const absl::StatusOr<UniqueFd> secret = SecretFile(meeting->token);
  if (!secret.ok()) return FailToAsk(secret.status(), kExitNoResources);
  Append(words, "--token-file", PathOfSecret(*secret));
  return become_agent(words);
}

int FailToFind(const absl::Status& status) {
  return FailToAsk(status, absl::IsNotFound(status) ? kExitRefused : kExitUsage);
}

}  // namespace hlaunch
