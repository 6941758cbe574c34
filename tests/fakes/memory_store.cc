// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/fakes/memory_store.h"

#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status MemoryStore::Set(absl::string_view key, absl::string_view value) {
  return MultiSet({{std::string(key), std::string(value)}});
}

absl::StatusOr<std::string> MemoryStore::Get(absl::string_view key, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> values, MultiGet({std::string(key)}, deadline));
  return std::move(values[0]);
}

absl::StatusOr<int64_t> MemoryStore::Add(absl::string_view key, int64_t delta) {
  MutexLock lock(&mu_);
  changed_.SignalAll();
  return keys_.Add(key, delta);
}

absl::StatusOr<std::string> MemoryStore::CompareAndSet(absl::string_view key,
                                                       absl::string_view expected,
                                                       absl::string_view desired) {
  MutexLock lock(&mu_);
  changed_.SignalAll();
  return keys_.CompareAndSet(key, expected, desired);
}

absl::Status MemoryStore::Append(absl::string_view key, absl::string_view data) {
  MutexLock lock(&mu_);
  changed_.SignalAll();
  return keys_.Append(key, data);
}

absl::StatusOr<bool> MemoryStore::Delete(absl::string_view key) {
  MutexLock lock(&mu_);
  return keys_.Delete(key);
}

absl::StatusOr<bool> MemoryStore::Check(const std::vector<std::string>& keys) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(keys.size()));
  return keys_.Check(keys);
}

absl::Status MemoryStore::Wait(const std::vector<std::string>& keys, Instant deadline) {
  return MultiGet(keys, deadline).status();
}

absl::StatusOr<std::vector<std::string>> MemoryStore::MultiGet(const std::vector<std::string>& keys,
                                                               Instant deadline) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(keys.size()));
  for (bool late = false;; late = !changed_.WaitUntil(&mu_, deadline)) {
    std::vector<std::string> values, missing;
    for (const std::string& key : keys) {
      const std::string* value = keys_.Find(key);
      value == nullptr ? missing.push_back(key) : values.push_back(*value);
    }
    if (missing.empty()) return values;
    if (late) return WaitTimedOut(missing);
  }
}

absl::Status MemoryStore::MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) {
  MutexLock lock(&mu_);
  changed_.SignalAll();
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(pairs.size()));
  for (const auto& [key, value] : pairs) HLAUNCH_RETURN_IF_ERROR(keys_.Set(key, value));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MemoryStore::NumKeys() {
  MutexLock lock(&mu_);
  return static_cast<int64_t>(keys_.size());
}

}  // namespace hlaunch
