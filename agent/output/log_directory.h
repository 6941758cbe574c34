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
#include "proto/base/unique_fd.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The job's log directory on this node, and the options for its files. A value; copies share
// `losses` and `held`.
struct JobLogs {
  LogSpec spec;
  std::string job_id;
  std::string directory;  // `<log dir>/<job id>_<random>`; empty: no files.
  // That directory, open. Who may rename in the folder around it can lead the path elsewhere.
  std::shared_ptr<UniqueFd> held = std::make_shared<UniqueFd>();
  bool kept = false;  // The user is to find the directory; else it holds error files only.
  std::shared_ptr<LogLosses> losses = std::make_shared<LogLosses>();
};

// Opens the directory of `logs`, which this process has just made, as `held`.
void HoldDirectory(const JobLogs& logs);

// Makes the directory of `logs` again if it is missing. Returns false if it cannot be made, or if
// its path leads to something else than `held`.
bool RestoreDirectory(const JobLogs& logs);

// Makes the log directory of a job, or an AgentDirectory if the user asked for no files. As with
// torchrun, only the owner may enter it.
class LogDirectory {
 public:
  // Errors:
  //   FailedPrecondition - the directory that the user named, or one for the requested files,
  //     cannot be made; the message names it.
  static absl::StatusOr<std::unique_ptr<LogDirectory>> Make(const LogSpec& spec,
                                                            absl::string_view job_id);

  const JobLogs& logs() const { return logs_; }

  // The directory to remove at the end; empty if there is none.
  std::string to_remove() const { return own_ == nullptr ? "" : own_->path(); }

 private:
  LogDirectory(JobLogs logs, std::unique_ptr<AgentDirectory> own)
      : logs_(std::move(logs)), own_(std::move(own)) {}

  const JobLogs logs_;
  const std::unique_ptr<AgentDirectory> own_;  // Null if the user's directory is used, or none.
};

// The log files of one round's workers on this node. Belongs to one thread.
class RoundLogs {
 public:
  // Makes the directories `attempt_<restart count>/<local rank>`, or none if no files are kept. If
  // a directory cannot be made, or somebody has replaced that of the job, log files are lost but
  // the round goes on. A round that begins again without a restart uses `attempt_<restart
  // count>_round_<round>`, so that the earlier files stay.
  RoundLogs(const JobLogs& logs, const Assignment& assignment, std::string role, int nproc);

  // Where the worker may put files of its own. Empty if no files are kept.
  std::string WorkerDirectory(int local_rank) const;
  // Where torch's @record of this worker writes. Empty if there is no directory.
  std::string ErrorFile(int local_rank) const;
  // Where a worker's stacks are kept if it stalls. Empty if no files are kept.
  std::string StacksFile(int local_rank) const;
  // Call this once for each worker: it creates the log files.
  WorkerRoutes Routes(int local_rank);

 private:
  std::string Path(int local_rank) const;
  StreamRoute Route(int local_rank, Streams stream, const std::string& prefix);

  const JobLogs logs_;
  const Rank first_rank_;
  const Round round_;
  const bool only_worker_;
  const std::string role_;
  std::string directory_;  // The attempt's directory; empty if there is none.
  // Hold the lines that the filters pick, from all workers.
  std::shared_ptr<LogFile> filtered_out_;
  std::shared_ptr<LogFile> filtered_err_;
};

}  // namespace hlaunch
