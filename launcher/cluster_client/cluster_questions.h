// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/cluster_client/local_client.h"
#include "proto/cluster/cluster_messages.h"

// What users ask, with the answers as values. Errors are those of LocalClient::Ask; what is no
// answer to the question is Internal.

namespace hlaunch {

inline constexpr Duration kAnswerPatience = std::chrono::seconds(10);
inline constexpr int kMaxWaitSeconds = 20;  // Of long polls.

// NotFound: no hlaunchd is here.
absl::StatusOr<HereAnswer> AskHere(LocalClient& client);

// The new job's number.
absl::StatusOr<uint64_t> AskSubmit(LocalClient& client, const JobRequest& request);

// What a list does not have.
struct NotInList {
  uint64_t left_out = 0;  // There were too many for one answer.
  size_t unreadable = 0;  // What this version cannot read.
};

struct JobsAnswer {
  std::vector<JobView> jobs;
  NotInList missing;  // The oldest are left out first.
};
absl::StatusOr<JobsAnswer> AskJobs(LocalClient& client, const JobsQuestion& question);

// Once its version is not `seen` any more, after `wait_s` at the latest. NotFound: there is none.
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
