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
#include "launcher/cluster/tasks/user_file.h"
#include "launcher/remote/detached/job_record.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/cluster_messages.h"

// The files of the parts on this host. Each part has a folder PARTS/NUMBER, which belongs to root.
// It contains `part.json`, which the node daemon writes, and `job/`, the detached job's own folder,
// which belongs to the job's user. So a restarted daemon finds all parts. Any thread.

namespace hlaunch {

// The record of one part in part.json. A value.
struct PartRecord {
  PartOrder order;   // In the file without its token, environment and limits.
  std::string mark;  // MarkOfToken; jobs of another head may have the same numbers.
  std::string boot_id;
  pid_t holder = 0;         // 0: the part has not been started.
  uint64_t start_time = 0;  // The holder's start time; see ProcessEntry.
  bool killed = false;      // The head has ordered to kill it.
  bool forgotten = false;   // The head knows how the part ended.
  std::string trouble;      // Why the part could not be started, or was lost.
  int64_t made_ms = 0;
};

// Returns a mark that differs between tokens, and from which the token cannot be found. Pure.
std::string MarkOfToken(const std::string& token);

// What the job has said in its folder. A value.
struct JobFolderFacts {
  bool held = false;     // The holder process has taken over.
  bool started = false;  // A worker runs or has run.
  std::string meeting;   // The HOST:PORT that its agent has written.
  std::optional<int> exit_code;
  std::optional<JobNews> news;
};

// The folders of all parts on this host.
class PartFolders {
 public:
  // `path` is absolute.
  explicit PartFolders(std::string path) : path_(std::move(path)) {}

  // Makes the folder that contains the parts' folders.
  //
  // Errors:
  //   FailedPrecondition - the folder cannot be made; the message names it and says why.
  absl::Status Open() const;

  // Makes the folder of a new part with its job folder, which still belongs to root.
  //
  // Errors:
  //   AlreadyExists - the job has a folder already.
  //   ResourceExhausted - a folder cannot be made; the message names it. Nothing is left then.
  absl::Status Make(uint64_t job) const;
  // Replaces a part's record. Errors:
  //   ResourceExhausted - the file cannot be written; the message names it.
  absl::Status Keep(const PartRecord& record) const;
  // Tells the part's agent, through its notice file (--drain-file), that another node shall take
  // its place. Errors: those of Keep.
  absl::Status TellToLeave(uint64_t job, const std::string& reason) const;
  // Removes that notice file if it exists. Errors:
  //   ResourceExhausted - the file cannot be removed; the message names it.
  absl::Status TakeBackLeave(uint64_t job) const;
  // Reads a part's record. Errors:
  //   NotFound - there is no such folder or record.
  //   InvalidArgument - the record is not valid; the message says why.
  absl::StatusOr<PartRecord> Read(uint64_t job) const;
  // Returns false if the part's folder has no record: nothing has been started there.
  bool HasRecord(uint64_t job) const;
  // The numbers of all parts, in ascending order.
  std::vector<uint64_t> All() const;
  // Renames the folder of a part, to be removed later. Returns false if the folder stays.
  bool SetAside(uint64_t job) const;
  // The same for the private folder of a part that has ended. Returns false if there is none.
  bool SetAsidePrivate(uint64_t job) const;
  // The names of folders that were set aside and still exist.
  std::vector<std::string> AllSetAside() const;
  // Removes some entries of one of those. See hlaunch::RemoveSome.
  Removed RemoveSome(const std::string& name, int most) const;

  // Opens the job's own folder. Errors: those of OpenFolder and OpenFolderIn.
  absl::StatusOr<UniqueFd> OpenJob(uint64_t job) const;
  // Reads what the job of user `uid` has written.
  JobFolderFacts Look(uint64_t job, uid_t uid) const;

  std::string PartPath(uint64_t job) const;
  std::string JobPath(uint64_t job) const;
  // Where a part has its own /tmp, if it has one.
  std::string PrivatePath(uint64_t job) const;
  const std::string& path() const { return path_; }

 private:
  bool Take(const std::string& path, absl::string_view name) const;
  std::vector<std::string> Names() const;

  std::string path_;
};

}  // namespace hlaunch
