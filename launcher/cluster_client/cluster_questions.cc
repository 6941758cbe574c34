// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster_client/cluster_questions.h"

#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

// What a reader makes of an answer; what it refuses is not the user's error.
template <typename T>
absl::StatusOr<T> AsAnswer(absl::StatusOr<T> read) {
  if (read.ok()) return read;
  return absl::InternalError(read.status().message());
}

}  // namespace

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

absl::StatusOr<std::vector<JobView>> AskJobs(LocalClient& client, const JobsQuestion& question) {
  constexpr size_t kMostJobs = 100'000;
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json body,
                           client.Ask("jobs", ToJson(question), kAnswerPatience));
  JsonFields fields(body, "jobs");
  std::vector<JobView> jobs;
  for (const nlohmann::json* each : fields.Objects("jobs", kMostJobs)) {
    HLAUNCH_ASSIGN_OR_RETURN(JobView job, AsAnswer(ReadJobView(*each)));
    jobs.push_back(std::move(job));
  }
  if (!fields.status().ok()) return absl::InternalError(fields.status().message());
  return jobs;
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
  for (const nlohmann::json* each : fields.Objects("hosts", kMaxClusterHosts)) {
    HLAUNCH_ASSIGN_OR_RETURN(HostView host, AsAnswer(ReadHostView(*each)));
    answer.hosts.push_back(std::move(host));
  }
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
