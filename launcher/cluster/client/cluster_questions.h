// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/cluster/client/local_client.h"
#include "proto/cluster/cluster_messages.h"

// The questions that users ask, one function each, with the answers as values. Errors are those of
// LocalClient::Ask. An answer that does not fit the question is Internal.

namespace hlaunch {

inline constexpr Duration kAnswerPatience = std::chrono::seconds(10);
inline constexpr int kMaxWaitSeconds = 20;  // For long polls.
inline constexpr int kRetryMs = 1000;       // After a question that was not answered.

// Returns true if a question that failed like this may be answered later. An answer that cannot be
// read may be another version's, during an update. Pure.
bool MayBeAnsweredLater(const absl::Status& status);

// NotFound if this host has no hlaunchd.
absl::StatusOr<HereAnswer> AskHere(LocalClient& client);

// Returns the new job's number.
absl::StatusOr<uint64_t> AskSubmit(LocalClient& client, const JobRequest& request);

// The entries that a list lacks.
struct NotInList {
  uint64_t left_out = 0;  // Entries that did not fit into one answer.
  size_t unreadable = 0;  // Entries that this version cannot read.
};

struct JobsAnswer {
  std::vector<JobView> jobs;
  NotInList missing;  // The oldest jobs are left out first.
};
absl::StatusOr<JobsAnswer> AskJobs(LocalClient& client, const JobsQuestion& question);

// Returns the job once its version differs from `seen`, or after `wait_s` seconds at the latest.
// NotFound if there is no such job.
absl::StatusOr<JobView> AskJob(LocalClient& client, uint64_t job, uint64_t seen = 0,
                               int wait_s = 0);

// The hosts of the cluster, and where its head is.
struct HostsAnswer {
  std::string head;
  std::vector<HostView> hosts;
  NotInList missing;
};
absl::StatusOr<HostsAnswer> AskNodes(LocalClient& client);

// `verb`: "stop" or "kill".
absl::Status AskStop(LocalClient& client, const char* verb, const StopQuestion& question);

absl::StatusOr<LogAnswer> AskLog(LocalClient& client, const LogQuestion& question);

absl::StatusOr<MeetingAnswer> AskMeeting(LocalClient& client, uint64_t job);

// `verb`: "drain" or "undrain".
absl::Status AskDrain(LocalClient& client, const char* verb, const DrainQuestion& question);

}  // namespace hlaunch
