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

// What is kept of a detached job, in a directory that its user alone can look into.

namespace hlaunch {

inline constexpr char kLogName[] = "log";

// A process, for ever. A value.
struct ProcessPlace {
  std::string host;
  std::string boot_id;
  std::string pid_namespace;
  pid_t pid = 0;
  uint64_t start_time = 0;
};

// That of this process.
ProcessPlace PlaceOfThisProcess();

// How a job ended. A value.
struct JobEnding {
  int exit_code = 0;
  int64_t wall_ms = 0;
};

enum class JobLife {
  kRuns,
  kEnded,
  kLost,       // Its holder is gone without a word: it was killed, or the host was started anew.
  kElsewhere,  // It was started on another host, and has not ended.
};

// A value.
struct DetachedJob {
  std::string id;
  std::string directory;
  ProcessPlace holder;  // Ends it when it is asked to.
  int64_t started_ms = 0;
  std::vector<std::string> words;  // The command line.
  bool names_ranks = false;        // Its lines begin with their ranks.

  std::optional<JobEnding> ending;
  JobLife life = JobLife::kLost;
};

// How a job goes, as one of its nodes sees it. A value.
struct JobNews {
  int round = 0;
  int restarts = 0;
  bool runs = false;                 // Its workers do.
  int64_t ran_ms = 0, whole_ms = 0;  // So long they ran, of so long in all,
  int64_t at_ms = 0;                 // until this, since 1970.
};

// Where a job's nodes meet, for those who ask them. A value; see AskWords.
struct MeetingPlace {
  std::string endpoint;  // HOST:PORT; empty: there is one node, and nobody to ask.
  std::string token_file;
  std::string tls, tls_cert, tls_key, tls_ca;
};

// Keeps what does not change of `job` in its directory. The others: what comes to be known. Each
// replaces what was there.
//
// Errors:
//   InvalidArgument - it cannot be written; the message names the file.
absl::Status KeepJob(const DetachedJob& job);
absl::Status KeepEnding(const std::string& directory, const JobEnding& ending);
absl::Status KeepMeeting(const std::string& directory, MeetingPlace place,
                         const std::string& token);
absl::Status KeepNews(const std::string& directory, const JobNews& news);
// All nodes are here, and the first round has begun.
absl::Status KeepStarted(const std::string& directory);

// The job of `directory`, and whether it runs.
//
// Errors:
//   NotFound - there is none.
//   InvalidArgument - what is there cannot be read.
absl::StatusOr<DetachedJob> ReadJob(const std::string& directory);
bool HasStarted(const std::string& directory);
// As ReadJob.
absl::StatusOr<MeetingPlace> ReadMeeting(const std::string& directory);

// Whether the process at `place` lives, seen from `here`. Unset: it cannot be seen from here. Reads
// /proc.
std::optional<bool> Lives(const ProcessPlace& place, const ProcessPlace& here);

}  // namespace hlaunch
