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
#include "launcher/detached/job_record.h"
#include "launcher/parts/user_file.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/cluster_messages.h"

// What is kept of the parts of this host: for each a folder of root's, PARTS/NUMBER, with
// `part.json`, which the node daemon writes, and `job/`, the detached job's own folder, which
// belongs to its user. So a daemon that was started anew finds all of them. Any thread.

namespace hlaunch {

// One part, as it is kept. A value.
struct PartRecord {
  PartOrder order;   // Without its token, its environment and its limits.
  std::string mark;  // Of the order's token: jobs of another head may have the same numbers.
  std::string boot_id;
  pid_t holder = 0;         // 0: it has not been started.
  uint64_t start_time = 0;  // Of the holder; see ProcessEntry.
  bool killed = false;      // By an order of the head.
  bool forgotten = false;   // The head knows how it ended.
  std::string trouble;      // Why it could not be started, or was lost.
  int64_t made_ms = 0;
};

// What tells the job of `token` from all others, and does not tell the token. Pure.
std::string MarkOfToken(const std::string& token);

// What the job has said in its folder. A value.
struct JobFolderFacts {
  bool held = false;     // The holder has taken over.
  bool started = false;  // A worker runs, or ran.
  std::string meeting;   // HOST:PORT that its agent said.
  std::optional<int> exit_code;
  std::optional<JobNews> news;
};

// Where the parts of this host are kept.
class PartFolders {
 public:
  // `path` is absolute.
  explicit PartFolders(std::string path) : path_(std::move(path)) {}

  // Makes the folder of folders.
  //
  // Errors:
  //   FailedPrecondition - it cannot be made; the message names it and says why.
  absl::Status Open() const;

  // The folder of a new part, with its job folder, which belongs to root still.
  //
  // Errors:
  //   AlreadyExists - there is one.
  //   ResourceExhausted - it cannot be made; the message names it.
  absl::Status Make(uint64_t job) const;
  // Replaces what is kept of a part. Errors:
  //   ResourceExhausted - it cannot be written; the message names it.
  absl::Status Keep(const PartRecord& record) const;
  // Tells the part's agent, by its notice (--drain-file), that another node is to take its place.
  // Errors: as of Keep.
  absl::Status TellToLeave(uint64_t job, const std::string& reason) const;
  // Removes that notice, if there is one. Errors:
  //   ResourceExhausted - it cannot be removed; the message names it.
  absl::Status TakeBackLeave(uint64_t job) const;
  // Errors:
  //   NotFound - there is none.
  //   InvalidArgument - it cannot be read; the message says why.
  absl::StatusOr<PartRecord> Read(uint64_t job) const;
  // The numbers of all parts, in ascending order.
  std::vector<uint64_t> All() const;
  // Takes the folder of a part away, to be removed by and by. False: it is still there.
  bool SetAside(uint64_t job) const;
  // The same of what is private to a part that has ended. False: there is none.
  bool SetAsidePrivate(uint64_t job) const;
  // What was set aside, and is not removed yet.
  std::vector<std::string> AllSetAside() const;
  // Of one of those. See RemoveSome.
  Removed RemoveSome(const std::string& name, int most) const;

  // The job's own folder. Errors: as OpenFolderIn.
  absl::StatusOr<UniqueFd> OpenJob(uint64_t job) const;
  // What the job of user `uid` has said.
  JobFolderFacts Look(uint64_t job, uid_t uid) const;

  std::string PartPath(uint64_t job) const;
  std::string JobPath(uint64_t job) const;
  // Where a part has its own /tmp, if it has.
  std::string PrivatePath(uint64_t job) const;
  const std::string& path() const { return path_; }

 private:
  bool Take(const std::string& path, absl::string_view name) const;
  std::vector<std::string> Names() const;

  std::string path_;
};

}  // namespace hlaunch
