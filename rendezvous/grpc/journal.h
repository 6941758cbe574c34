// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/round/job_record.h"

namespace hlaunch {

// The records of a rendezvous service's jobs in a directory: one file per job, replaced as a
// whole. What Keep returned OK for is there after the death of this process and of this host; a
// Keep that did not return has either happened or not.
//
// Thread-safe as long as calls for one job do not overlap. Holds the directory for this process.
class Journal {
 public:
  // What is done to files, in the order of one Keep; kRemove takes the place of the first four.
  enum class Step { kOpen, kWrite, kSync, kRename, kRemove, kSyncDirectory };

  struct Options {
    std::string directory;  // Made, for this user alone, if it is not there.
    // Called before each step with its file; an error is taken for the step's own. May be empty.
    std::function<absl::Status(Step step, const std::string& path)> before_step;
  };

  // Errors, which name the directory:
  //   AlreadyExists - another service holds it.
  //   InvalidArgument, PermissionDenied … - it cannot be made or used.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(Options options);

  struct Loaded {
    std::vector<JobRecord> records;
    std::vector<std::string> warnings;  // One line each: a damaged file, which was moved aside.
  };

  // All that is kept. To be called before the first Keep.
  //
  // Errors:
  //   FailedPrecondition - a file is of another version; the message says what to do.
  //   others - the directory or a file cannot be read.
  absl::StatusOr<Loaded> Load();

  // Keeps `record` in the place of what was kept of that job; forgets the job if it is over and
  // has no members left.
  //
  // Errors, which name the file: ResourceExhausted - the disk is full; others as the kernel says.
  absl::Status Keep(const JobRecord& record);

 private:
  Journal(Options options, UniqueFd directory, UniqueFd lock);
  absl::Status Before(Step step, const std::string& path) const;
  absl::Status Replace(const std::string& path, const std::string& content) const;
  absl::Status Remove(const std::string& path) const;
  absl::Status SyncDirectory() const;
  absl::Status LoadFile(const std::string& path, Loaded* loaded) const;

  const Options options_;
  const UniqueFd directory_;
  const UniqueFd lock_;
};

}  // namespace hlaunch
