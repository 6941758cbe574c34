// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/job_meeting.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/cluster_failure.h"
#include "launcher/cluster/client/cluster_questions.h"
#include "launcher/cluster/commands/cluster_text.h"
#include "launcher/cluster/commands/cluster_words.h"
#include "launcher/cluster/commands/named_job.h"
#include "launcher/cluster/commands/watch_cluster.h"
#include "launcher/command/own_jobs/own_job_commands.h"
#include "proto/base/clock.h"
#include "proto/cluster/job_id.h"

namespace hlaunch {
namespace {

bool NamesMeeting(const std::string& word) {
  return absl::StartsWith(word, "--rdzv-endpoint") || absl::StartsWith(word, "--rdzv_endpoint") ||
         word == "--help" || word == "-h";
}

bool Has(const std::vector<std::string>& words, absl::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Tells what the head knows of a job whose nodes cannot be asked, if that answers the command.
int TellWithoutMeeting(const std::vector<std::string>& words, const JobView& job,
                       const absl::Status& why) {
  if (words[1] == "status") {
    return PrintOfCluster(Has(words, "--json") ? ClusterJobJson(job)
                                               : ClusterJobText(job, WallMillis()));
  }
  return FailToAskCluster(why);
}

}  // namespace

std::vector<std::string> WithMeetingOfCluster(std::vector<std::string> words, size_t at,
                                              uint64_t job, const MeetingAnswer& meeting,
                                              int secret) {
  words[at] = ClusterJobId(job);
  words.insert(words.end(), {"--rdzv-endpoint", meeting.endpoint, "--token-file",
                             absl::StrCat("/proc/self/fd/", secret)});
  return words;
}

int AskNodesOf(std::vector<std::string> words, size_t at, uint64_t number,
               const BecomeAgentFn& become_agent) {
  LocalClient client = ClientOfDaemon();
  const absl::StatusOr<JobView> job = AskJob(client, number);
  if (!job.ok()) return FailToAskCluster(job.status());
  const bool watch = Has(words, "--watch") || Has(words, "-w");
  const absl::StatusOr<MeetingAnswer> meeting = AskMeeting(client, number);
  if (!meeting.ok() || meeting->endpoint.empty()) {
    // A job of one node answers itself, on its own host.
    if (RunsHere(ClusterJobId(number))) {
      words[at] = ClusterJobId(number);
      if (const std::optional<int> done = RunForOwnJob(words, become_agent)) return *done;
    }
    if (watch) return WatchClusterJob(client.path(), number);
    const absl::Status alone = absl::FailedPreconditionError(absl::StrCat(
        "job ", number, " has no nodes to ask: it is ", ClusterJobStateName(job->state),
        job->max_nodes == 1 ? ", and has one node, which can be asked on its own host alone" : ""));
    return TellWithoutMeeting(words, *job, meeting.ok() ? alone : meeting.status());
  }
  const absl::StatusOr<UniqueFd> secret = SecretFile(meeting->token);
  if (!secret.ok()) return FailToAskCluster(secret.status());
  return become_agent(WithMeetingOfCluster(std::move(words), at, number, *meeting, secret->get()));
}

std::optional<int> RunAtMeeting(const std::vector<std::string>& words,
                                const BecomeAgentFn& become_agent) {
  if (std::any_of(words.begin(), words.end(), NamesMeeting)) return std::nullopt;
  for (size_t i = 2; i < words.size(); ++i) {
    if (absl::StartsWith(words[i - 1], "--") && !absl::StrContains(words[i - 1], "=") &&
        words[i - 1] != "--json" && words[i - 1] != "--watch" && words[i - 1] != "--native") {
      continue;  // words[i] is an option's value.
    }
    const std::optional<uint64_t> job = JobOfCluster(words[i]);
    if (job.has_value()) return AskNodesOf(words, i, *job, become_agent);
  }
  return std::nullopt;
}

}  // namespace hlaunch
