// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/job/record/record_keeper.h"
#include "rendezvous/round/values/job_record.h"

namespace hlaunch {

// Keeps records in a directory, one file per job. A Keep that did not return has happened either as
// a whole or not at all.
//
// Thread-safe as RecordKeeper. Locks the directory for this process.
class Journal final : public RecordKeeper {
 public:
  // The file operations of one Keep, in their order; kRemove takes the place of the first four.
  enum class Step { kOpen, kWrite, kSync, kRename, kRemove, kSyncDirectory };

  struct Options {
    std::string directory;  // Created for this user alone if it does not exist.
    // Called before each step with its file. If it returns an error, the step fails with that
    // error. May be empty.
    std::function<absl::Status(Step step, const std::string& path)> before_step;
  };

  // Errors, which name the directory:
  //   AlreadyExists - another service has locked the directory.
  //   InvalidArgument, PermissionDenied … - the directory cannot be created or used.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(Options options);

  // Moves damaged files aside.
  absl::StatusOr<Listed> List() override;
  absl::StatusOr<RecordVersion> Keep(const JobRecord& record, RecordVersion expected) override;
  Instant LeadsUntil() const override { return Instant::max(); }
  bool shared() const override { return false; }
  std::string place() const override { return options_.directory; }

 private:
  Journal(Options options, UniqueFd directory, UniqueFd lock);
  RecordVersion NextVersionOf(const std::string& job_id);
  absl::Status Before(Step step, const std::string& path) const;
  absl::Status Replace(const std::string& path, const std::string& content) const;
  absl::Status Remove(const std::string& path) const;
  absl::Status SyncDirectory() const;
  absl::Status ListFile(const std::string& path, Listed* listed);

  const Options options_;
  const UniqueFd directory_;
  const UniqueFd lock_;
  Mutex mu_;
  RecordVersion last_version_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, RecordVersion> versions_ ABSL_GUARDED_BY(mu_);  // By job id.
};

}  // namespace hlaunch
