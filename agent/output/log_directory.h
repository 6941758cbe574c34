// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/output/agent_directory.h"
#include "agent/output/log_file.h"
#include "agent/output/log_spec.h"
#include "agent/output/output_relay.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// The job's log directory on this node, and what goes there. A value; copies share `losses`.
struct JobLogs {
  LogSpec spec;
  std::string job_id;
  std::string directory;  // `<log dir>/<job id>_<random>`; empty: no files.
  bool kept = false;      // The user shall find it; else it serves for error files alone.
  std::shared_ptr<LogLosses> losses = std::make_shared<LogLosses>();
};

// Makes the log directory of a job; if nobody asked for one, an AgentDirectory serves. As
// torchrun's, only its owner may enter it.
class LogDirectory {
 public:
  // Errors:
  //   FailedPrecondition - the directory that the user named, or one for the files that were
  //     asked for, cannot be made; the message names it.
  static absl::StatusOr<std::unique_ptr<LogDirectory>> Make(const LogSpec& spec,
                                                            absl::string_view job_id);

  const JobLogs& logs() const { return logs_; }

  // What is removed at the end; empty: nothing.
  std::string to_remove() const { return own_ == nullptr ? "" : own_->path(); }

 private:
  LogDirectory(JobLogs logs, std::unique_ptr<AgentDirectory> own)
      : logs_(std::move(logs)), own_(std::move(own)) {}

  const JobLogs logs_;
  const std::unique_ptr<AgentDirectory> own_;  // Null: the user's is used, or none.
};

// Where the output of one round's workers goes on this node. Belongs to one thread.
class RoundLogs {
 public:
  // Makes the directories `attempt_<restart count>/<local rank>`, or only the first of them where
  // no files are kept; what cannot be made costs log files, not the round. A round that begins
  // again without a restart leaves those of the one before alone: `attempt_<restart
  // count>_round_<round>`.
  RoundLogs(const JobLogs& logs, const Assignment& assignment, std::string role, int nproc);

  // Where the worker may put files of its own. Empty: none is kept.
  std::string WorkerDirectory(int local_rank) const;
  // Where torch's @record of this worker writes. Empty: nowhere.
  std::string ErrorFile(int local_rank) const;
  // Where a worker's stacks are kept if it stalls. Empty: nowhere.
  std::string StacksFile(int local_rank) const;
  // Call once for each worker: it makes the files.
  WorkerRoutes Routes(int local_rank);

 private:
  std::string Path(int local_rank) const;
  StreamRoute Route(int local_rank, Streams stream, const std::string& prefix);

  const JobLogs logs_;
  const Rank first_rank_;
  const Round round_;
  const bool only_worker_;
  const std::string role_;
  std::string directory_;  // Of the attempt; empty: none.
  // Of the lines that the filters pick, of all workers.
  std::shared_ptr<LogFile> filtered_out_;
  std::shared_ptr<LogFile> filtered_err_;
};

}  // namespace hlaunch
