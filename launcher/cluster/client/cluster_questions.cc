// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/cluster_questions.h"

#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

// Returns what a reader has made of an answer. An answer that the reader refuses is not the user's
// error.
template <typename T>
absl::StatusOr<T> AsAnswer(absl::StatusOr<T> read) {
  if (read.ok()) return read;
  return absl::InternalError(read.status().message());
}

// Reads each entry for itself, so that one entry in another version's format does not hide the
// others.
template <typename T>
void TakeList(const std::vector<const nlohmann::json*>& list,
              absl::StatusOr<T> (*read)(const nlohmann::json&), std::vector<T>& taken,
              NotInList& missing) {
  for (const nlohmann::json* each : list) {
    absl::StatusOr<T> entry = read(*each);
    if (entry.ok()) {
      taken.push_back(*std::move(entry));
    } else {
      ++missing.unreadable;
    }
  }
}

}  // namespace

bool MayBeAnsweredLater(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsInternal(status);
}

absl::StatusOr<HereAnswer> AskHere(LocalClient& client) {
  HLAUNCH_RETURN_IF_ERROR(client.Connect(MonotonicClock().Now() + kAnswerPatience));
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json body,
                           client.Ask("here", nlohmann::json::object(), kAnswerPatience));
  return AsAnswer(ReadHereAnswer(body));
}

absl::StatusOr<uint64_t> AskSubmit(LocalClient& client, const JobRequest& request) {
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json body,
                           client.Ask("submit", ToJson(request), kAnswerPatience));
  uint64_t job = 0;
  JsonFields fields(body, "submit");
  fields.Number("job", &job);
  if (!fields.status().ok()) return absl::InternalError(fields.status().message());
  if (job == 0) return absl::InternalError("an answer without the job's number");
  return job;
}

absl::StatusOr<JobsAnswer> AskJobs(LocalClient& client, const JobsQuestion& question) {
  constexpr size_t kMostJobs = 100'000;
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json body,
                           client.Ask("jobs", ToJson(question), kAnswerPatience));
  JobsAnswer answer;
  JsonFields fields(body, "jobs");
  TakeList(fields.Objects("jobs", kMostJobs), ReadJobView, answer.jobs, answer.missing);
  fields.Number("left_out", &answer.missing.left_out);
  if (!fields.status().ok()) return absl::InternalError(fields.status().message());
  return answer;
}

absl::StatusOr<JobView> AskJob(LocalClient& client, uint64_t job, uint64_t seen, int wait_s) {
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json body,
                           client.Ask("job", ToJson(JobQuestion{job, seen, wait_s}),
                                      kAnswerPatience + std::chrono::seconds(wait_s)));
  return AsAnswer(ReadJobView(body));
}

absl::StatusOr<HostsAnswer> AskNodes(LocalClient& client) {
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json body,
                           client.Ask("nodes", nlohmann::json::object(), kAnswerPatience));
  HostsAnswer answer;
  JsonFields fields(body, "nodes");
  fields.Text("head", &answer.head);
  TakeList(fields.Objects("hosts", kMaxClusterHosts), ReadHostView, answer.hosts, answer.missing);
  fields.Number("left_out", &answer.missing.left_out);
  if (!fields.status().ok()) return absl::InternalError(fields.status().message());
  return answer;
}

absl::Status AskStop(LocalClient& client, const char* verb, const StopQuestion& question) {
  return client.Ask(verb, ToJson(question), kAnswerPatience).status();
}

absl::StatusOr<LogAnswer> AskLog(LocalClient& client, const LogQuestion& question) {
  HLAUNCH_ASSIGN_OR_RETURN(
      const nlohmann::json body,
      client.Ask("log", ToJson(question), kAnswerPatience + std::chrono::seconds(question.wait_s)));
  return AsAnswer(ReadLogAnswer(body));
}

absl::StatusOr<MeetingAnswer> AskMeeting(LocalClient& client, uint64_t job) {
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json body,
                           client.Ask("meeting", {{"job", job}}, kAnswerPatience));
  return AsAnswer(ReadMeetingAnswer(body));
}

absl::Status AskDrain(LocalClient& client, const char* verb, const DrainQuestion& question) {
  return client.Ask(verb, ToJson(question), kAnswerPatience).status();
}

}  // namespace hlaunch
