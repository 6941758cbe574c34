// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"
#include "rendezvous/store/keys/key_space.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// A Store in the memory of one process, for tests whose ranks are threads. Thread-safe.
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
  Mutex mu_;
  CondVar changed_;
  KeySpace keys_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
