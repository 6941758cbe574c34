// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/store/keys/key_space.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// A Store in a file that all its processes can open, also on different hosts. The file is a log of
// changes under flock. There is no server, so the store outlives each process; a wait polls the
// file, with pauses of 1 to 20 ms. Thread-safe.
//
// The format is not that of torch's FileStore. A half-written change of a killed process is
// ignored.
class FileStore : public Store {
 public:
  // Creates the file if it does not exist.
  //
  // Errors:
  //   InvalidArgument - the path cannot be opened, or holds something else; the message names it.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(const std::string& path,
                                                         const StoreLimits& limits = {});

  absl::Status Set(absl::string_view key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(absl::string_view key, Instant deadline) override;
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override;
  absl::StatusOr<std::string> CompareAndSet(absl::string_view key, absl::string_view expected,
                                            absl::string_view desired) override;
  absl::Status Append(absl::string_view key, absl::string_view data) override;
  absl::StatusOr<bool> Delete(absl::string_view key) override;
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys) override;
  absl::Status Wait(const std::vector<std::string>& keys, Instant deadline) override;
  absl::StatusOr<std::vector<std::string>> MultiGet(const std::vector<std::string>& keys,
                                                    Instant deadline) override;
  absl::Status MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) override;
  absl::StatusOr<int64_t> NumKeys() override;

 private:
  FileStore(std::string path, UniqueFd fd, const StoreLimits& limits)
      : path_(std::move(path)), fd_(std::move(fd)), limits_(limits), keys_(limits) {}

  absl::Status Error(absl::string_view what) const;
  absl::Status CatchUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Record(absl::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Change(absl::string_view key, absl::FunctionRef<absl::Status(KeySpace&)> change);
  absl::Status ChangeIf(absl::string_view key,
                        absl::FunctionRef<absl::StatusOr<bool>(KeySpace&)> change);
  absl::Status Look(absl::FunctionRef<void(const KeySpace&)> look);

  const std::string path_;
  const UniqueFd fd_;
  const StoreLimits limits_;
  Mutex mu_;
  KeySpace keys_ ABSL_GUARDED_BY(mu_);  // The keys after the first `read_` bytes of the log.
  int64_t read_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace hlaunch
