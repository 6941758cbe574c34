// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "rendezvous/job/question.h"
#include "rendezvous/round/values/round.h"

// What goes over a job's socket, in the envelopes and frames of proto/cluster. Each is a value with
// ToJson and a reader that is strict about types and limits; unknown fields are for other versions.
//
//   ask "who"      -> JobHere
//   ask "meeting"  -> JobMeeting   FailedPrecondition: the job has one node, which meets nobody
//   ask "status"   -> JobStatus    FailedPrecondition: another process decides the job
//   ask "ranks", RankQuestion -> JobAnswer             (the same)
//   ask "end", EndRequest     -> {}; the job begins to end

namespace hlaunch {

// A job's part on this host, as the process that runs it tells it.
struct JobHere {
  std::string job_id;
  int min_nodes = 1, max_nodes = 1;
  std::string host;
  int pid = 0;  // As the process itself sees it.
  int64_t started_ms = 0;
  std::vector<std::string> words;  // The command line.
  std::string log_directory;       // Holds the workers' output, as the user asked; mostly empty.
  std::string output;              // Where its stdout goes: "/dev/pts/3", "pipe:[4711]".
  std::string detached;            // The folder of a detached job; else empty.
  // It answers "status" and "ranks" itself. If false, the place of "meeting" does.
  bool decides = false;
  // It runs nothing here and started the job on these hosts (--hosts). Else empty.
  std::vector<std::string> started_on;

  bool operator==(const JobHere&) const = default;
};

// Where the nodes of a job meet, for commands that ask them.
struct JobMeeting {
  std::string endpoint;                     // HOST:PORT, several with commas between them.
  std::string token;                        // The secret; empty: none, or certificates.
  std::string tls;                          // "on" or "off".
  std::string certificate, key, authority;  // Paths; empty: none.

  bool operator==(const JobMeeting&) const = default;
};

// Asks the job to end as this signal does in its terminal.
struct EndRequest {
  int signal = 0;  // SIGTERM; SIGINT after it kills the workers at once.

  bool operator==(const EndRequest&) const = default;
};

#define HLAUNCH_JOB_MESSAGE(Type)             \
  nlohmann::json ToJson(const Type& message); \
  absl::StatusOr<Type> Read##Type(const nlohmann::json& body)
HLAUNCH_JOB_MESSAGE(JobHere);
HLAUNCH_JOB_MESSAGE(JobMeeting);
HLAUNCH_JOB_MESSAGE(EndRequest);
HLAUNCH_JOB_MESSAGE(RankQuestion);
HLAUNCH_JOB_MESSAGE(NodeWord);
HLAUNCH_JOB_MESSAGE(JobAnswer);
// Of a status all that commands show, except what nodes measured of themselves.
HLAUNCH_JOB_MESSAGE(NodeStatus);
HLAUNCH_JOB_MESSAGE(RoundStatus);
HLAUNCH_JOB_MESSAGE(WorkerFailure);
HLAUNCH_JOB_MESSAGE(JobStatus);
#undef HLAUNCH_JOB_MESSAGE

}  // namespace hlaunch
