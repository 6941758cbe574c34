// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"
#include "rendezvous/key_space.h"
#include "rendezvous/store.h"

namespace hlaunch {

// The Store of one process: for a job on one node, and for tests. Thread-safe. No wait may be in
// progress when it is destroyed.
class MemoryStore : public Store {
 public:
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
  absl::Status WaitLocked(const std::vector<std::string>& keys, Instant deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  CondVar changed_;
  KeySpace keys_ ABSL_GUARDED_BY(mu_);
};

// "timed out waiting for keys: 'a', 'b', 'c' and 7 more": the words of every Store.
absl::Status WaitTimedOut(const std::vector<std::string>& missing);

}  // namespace hlaunch
