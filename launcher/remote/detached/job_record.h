// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The record of a detached job, in a directory that only its user can look into.

namespace hlaunch {

inline constexpr char kLogName[] = "log";

// Identifies a process for ever. A value.
struct ProcessPlace {
  std::string host;
  std::string boot_id;
  std::string pid_namespace;
  pid_t pid = 0;
  uint64_t start_time = 0;
};

// Identifies this process.
ProcessPlace PlaceOfThisProcess();

// How a job ended. A value.
struct JobEnding {
  int exit_code = 0;
  int64_t wall_ms = 0;
};

enum class JobLife {
  kRuns,
  kEnded,
  kLost,       // The holder is gone and left no ending: it was killed, or the host rebooted.
  kElsewhere,  // The job was started on another host and has not ended.
};

// A detached job as recorded. A value.
struct DetachedJob {
  std::string id;
  std::string directory;
  ProcessPlace holder;  // Ends the job when asked to.
  int64_t started_ms = 0;
  std::vector<std::string> words;  // The command line.
  bool names_ranks = false;        // The lines of its log begin with their ranks.

  std::optional<JobEnding> ending;
  JobLife life = JobLife::kLost;
};

// The progress of a job, as one of its nodes sees it. A value.
struct JobNews {
  int round = 0;
  int restarts = 0;
  bool runs = false;                 // Its workers run.
  int64_t ran_ms = 0, whole_ms = 0;  // How long they ran, and how long the job took,
  int64_t at_ms = 0;                 // until this time, since 1970.
};

// Where a job's nodes meet, for commands that ask them. A value; see AskWords.
struct MeetingPlace {
  std::string endpoint;  // HOST:PORT; empty: there is one node and no rendezvous.
  std::string token_file;
  std::string tls, tls_cert, tls_key, tls_ca;
};

// Write to the job's directory: KeepJob what does not change, the others what becomes known later.
// Each replaces what was there.
//
// Errors:
//   InvalidArgument - a file cannot be written; the message names it.
absl::Status KeepJob(const DetachedJob& job);
absl::Status KeepEnding(const std::string& directory, const JobEnding& ending);
absl::Status KeepMeeting(const std::string& directory, MeetingPlace place,
                         const std::string& token);
absl::Status KeepNews(const std::string& directory, const JobNews& news);
// Records that all nodes are here and the first round has begun.
absl::Status KeepStarted(const std::string& directory);

// Reads the job in `directory` and finds out whether it runs.
//
// Errors:
//   NotFound - there is no job.
//   InvalidArgument - the files cannot be read.
absl::StatusOr<DetachedJob> ReadJob(const std::string& directory);
bool HasStarted(const std::string& directory);
// Errors: as ReadJob.
absl::StatusOr<MeetingPlace> ReadMeeting(const std::string& directory);

// Whether the process at `place` lives, as seen from the process at `here`. Unset if that cannot be
// seen from here. Reads /proc.
std::optional<bool> Lives(const ProcessPlace& place, const ProcessPlace& here);

}  // namespace hlaunch
