// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/memory_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status WaitTimedOut(const std::vector<std::string>& missing) {
  constexpr size_t kNamed = 3;
  const size_t named = std::min(missing.size(), kNamed);
  return absl::DeadlineExceededError(absl::StrCat(
      "timed out waiting for keys that nobody has set: '",
      absl::StrJoin(missing.begin(), missing.begin() + static_cast<ptrdiff_t>(named), "', '"), "'",
      missing.size() > named ? absl::StrCat(" and ", missing.size() - named, " more") : ""));
}

absl::Status MemoryStore::Set(absl::string_view key, absl::string_view value) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(keys_.Set(key, std::string(value)));
  changed_.SignalAll();
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryStore::Get(absl::string_view key, Instant deadline) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(WaitLocked({std::string(key)}, deadline));
  return *keys_.Find(key);
}

absl::StatusOr<int64_t> MemoryStore::Add(absl::string_view key, int64_t delta) {
  MutexLock lock(&mu_);
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t sum, keys_.Add(key, delta));
  changed_.SignalAll();
  return sum;
}

absl::StatusOr<std::string> MemoryStore::CompareAndSet(absl::string_view key,
                                                       absl::string_view expected,
                                                       absl::string_view desired) {
  MutexLock lock(&mu_);
  HLAUNCH_ASSIGN_OR_RETURN(std::string value, keys_.CompareAndSet(key, expected, desired));
  changed_.SignalAll();
  return value;
}

absl::Status MemoryStore::Append(absl::string_view key, absl::string_view data) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(keys_.Append(key, data));
  changed_.SignalAll();
  return absl::OkStatus();
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
  MutexLock lock(&mu_);
  return WaitLocked(keys, deadline);
}

absl::Status MemoryStore::WaitLocked(const std::vector<std::string>& keys, Instant deadline) {
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(keys.size()));
  for (const std::string& key : keys) {
    HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckKey(key.size()));
  }
  bool in_time = true;
  while (!keys_.Check(keys)) {
    if (!in_time) {
      std::vector<std::string> missing;
      for (const std::string& key : keys) {
        if (keys_.Find(key) == nullptr) missing.push_back(key);
      }
      return WaitTimedOut(missing);
    }
    in_time = changed_.WaitUntil(&mu_, deadline);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryStore::MultiGet(const std::vector<std::string>& keys,
                                                               Instant deadline) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(WaitLocked(keys, deadline));
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(*keys_.Find(key));
  return values;
}

absl::Status MemoryStore::MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(pairs.size()));
  changed_.SignalAll();  // They look once the lock is free, also if not all pairs could be set.
  for (const auto& [key, value] : pairs) HLAUNCH_RETURN_IF_ERROR(keys_.Set(key, value));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MemoryStore::NumKeys() {
  MutexLock lock(&mu_);
  return static_cast<int64_t>(keys_.size());
}

}  // namespace hlaunch
