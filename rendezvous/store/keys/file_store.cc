// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;

// The file begins with this; then records follow, each a key and what it holds from then on.
constexpr absl::string_view kMagic = "hlaunch file store 1\n";
struct RecordHead {
  uint32_t key_bytes;
  uint32_t value_bytes;  // kGone: the key was deleted.
};
constexpr uint32_t kGone = ~0u;

// Holds the file's lock against other processes.
class FileLock {
 public:
  FileLock(int fd, int how) : fd_(fd) {
    int result;
    do {
      result = ::flock(fd, how);
    } while (result != 0 && errno == EINTR);
    held_ = result == 0;
  }
  ~FileLock() {
    if (held_) ::flock(fd_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  const int fd_;
  bool held_;
};

bool WriteAt(int fd, absl::string_view bytes, int64_t at) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
    at += written;
  }
  return true;
}

// Returns the content of the file from `at` on.
absl::StatusOr<std::string> ReadFrom(int fd, int64_t at) {
  struct stat facts = {};
  if (::fstat(fd, &facts) != 0) return absl::UnavailableError(std::strerror(errno));
  std::string bytes(static_cast<size_t>(std::max<int64_t>(0, facts.st_size - at)), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::pread(fd, bytes.data() + filled, bytes.size() - filled,
                                at + static_cast<int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::UnavailableError(std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(const std::string& path,
                                                           const StoreLimits& limits) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  std::unique_ptr<FileStore> store(new FileStore(path, std::move(fd), limits));
  if (!store->fd_.valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open the store '", path, "': ", std::strerror(errno)));
  }
  // Wrong content found here is a mistake of the user; found later it is trouble with the file.
  if (absl::Status read = store->Look([](const KeySpace&) {}); !read.ok()) {
    return absl::InvalidArgumentError(read.message());
  }
  return store;
}

absl::Status FileStore::Error(absl::string_view what) const {
  return absl::UnavailableError(absl::StrCat("the store '", path_, "': ", what));
}

// Reads what other processes have recorded; stops before a record that is not whole.
absl::Status FileStore::CatchUp() {
  const auto read = ReadFrom(fd_.get(), read_);
  if (!read.ok()) return Error(read.status().message());
  absl::string_view rest = *read;
  if (read_ == 0 && !rest.empty()) {
    if (rest.substr(0, kMagic.size()) != kMagic.substr(0, rest.size())) {
      return Error("the file holds something else; give one that does not exist yet");
    }
    if (rest.size() < kMagic.size()) return absl::OkStatus();
    rest.remove_prefix(kMagic.size());
    read_ = static_cast<int64_t>(kMagic.size());
  }
  RecordHead head;
  while (rest.size() >= sizeof head) {
    std::memcpy(&head, rest.data(), sizeof head);
    const bool gone = head.value_bytes == kGone;
    const size_t size = sizeof head + head.key_bytes + (gone ? 0 : head.value_bytes);
    if (rest.size() < size) break;
    const absl::string_view key = rest.substr(sizeof head, head.key_bytes);
    if (gone) {
      keys_.Delete(key);
    } else {
      HLAUNCH_RETURN_IF_ERROR(
          keys_.Set(key, std::string(rest.substr(sizeof head + head.key_bytes, head.value_bytes))));
    }
    rest.remove_prefix(size);
    read_ += static_cast<int64_t>(size);
  }
  return absl::OkStatus();
}

// Appends what `key` holds now, and overwrites a record at the end that is not whole.
absl::Status FileStore::Record(absl::string_view key) {
  const std::string* value = keys_.Find(key);
  const RecordHead head{static_cast<uint32_t>(key.size()),
                        value == nullptr ? kGone : static_cast<uint32_t>(value->size())};
  const std::string record =
      absl::StrCat(read_ == 0 ? kMagic : "",
                   absl::string_view(reinterpret_cast<const char*>(&head), sizeof head), key,
                   value == nullptr ? absl::string_view() : *value);
  if (::ftruncate(fd_.get(), read_) != 0 || !WriteAt(fd_.get(), record, read_)) {
    const absl::Status failed = Error(std::strerror(errno));
    keys_ = KeySpace(limits_);  // It is ahead of the file, which is to be read again.
    read_ = 0;
    return failed;
  }
  read_ += static_cast<int64_t>(record.size());
  return absl::OkStatus();
}

absl::Status FileStore::Change(absl::string_view key,
                               absl::FunctionRef<absl::Status(KeySpace&)> change) {
  return ChangeIf(key, [&](KeySpace& keys) -> absl::StatusOr<bool> {
    HLAUNCH_RETURN_IF_ERROR(change(keys));
    return true;
  });
}

// Records nothing if `change` says that it has changed nothing, else the log would grow for ever.
absl::Status FileStore::ChangeIf(absl::string_view key,
                                 absl::FunctionRef<absl::StatusOr<bool>(KeySpace&)> change) {
  MutexLock lock(&mu_);
  const FileLock file(fd_.get(), LOCK_EX);
  if (!file.held()) return Error(std::strerror(errno));
  HLAUNCH_RETURN_IF_ERROR(CatchUp());
  HLAUNCH_ASSIGN_OR_RETURN(const bool changed, change(keys_));
  return changed ? Record(key) : absl::OkStatus();
}

absl::Status FileStore::Look(absl::FunctionRef<void(const KeySpace&)> look) {
  MutexLock lock(&mu_);
  const FileLock file(fd_.get(), LOCK_SH);
  if (!file.held()) return Error(std::strerror(errno));
  HLAUNCH_RETURN_IF_ERROR(CatchUp());
  look(keys_);
  return absl::OkStatus();
}

absl::Status FileStore::Set(absl::string_view key, absl::string_view value) {
  return Change(key, [&](KeySpace& keys) { return keys.Set(key, std::string(value)); });
}

absl::StatusOr<int64_t> FileStore::Add(absl::string_view key, int64_t delta) {
  absl::StatusOr<int64_t> sum;
  HLAUNCH_RETURN_IF_ERROR(
      Change(key, [&](KeySpace& keys) { return (sum = keys.Add(key, delta)).status(); }));
  return sum;
}

absl::StatusOr<std::string> FileStore::CompareAndSet(absl::string_view key,
                                                     absl::string_view expected,
                                                     absl::string_view desired) {
  absl::StatusOr<std::string> holds;
  HLAUNCH_RETURN_IF_ERROR(ChangeIf(key, [&](KeySpace& keys) -> absl::StatusOr<bool> {
    const std::string* old = keys.Find(key);
    const bool sets = old != nullptr ? *old == expected : expected.empty();
    holds = keys.CompareAndSet(key, expected, desired);
    if (!holds.ok()) return holds.status();
    return sets;
  }));
  return holds;
}

absl::Status FileStore::Append(absl::string_view key, absl::string_view data) {
  return Change(key, [&](KeySpace& keys) { return keys.Append(key, data); });
}

absl::StatusOr<bool> FileStore::Delete(absl::string_view key) {
  bool existed = false;
  HLAUNCH_RETURN_IF_ERROR(ChangeIf(
      key, [&](KeySpace& keys) -> absl::StatusOr<bool> { return existed = keys.Delete(key); }));
  return existed;
}

absl::Status FileStore::MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckList(pairs.size()));
  for (const auto& [key, value] : pairs) HLAUNCH_RETURN_IF_ERROR(Set(key, value));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FileStore::NumKeys() {
  int64_t count = 0;
  HLAUNCH_RETURN_IF_ERROR(
      Look([&](const KeySpace& keys) { count = static_cast<int64_t>(keys.size()); }));
  return count;
}

absl::StatusOr<bool> FileStore::Check(const std::vector<std::string>& keys) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckList(keys.size()));
  bool all = false;
  HLAUNCH_RETURN_IF_ERROR(Look([&](const KeySpace& there) { all = there.Check(keys); }));
  return all;
}

absl::StatusOr<std::string> FileStore::Get(absl::string_view key, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> values, MultiGet({std::string(key)}, deadline));
  return std::move(values[0]);
}

absl::Status FileStore::Wait(const std::vector<std::string>& keys, Instant deadline) {
  return MultiGet(keys, deadline).status();
}

absl::StatusOr<std::vector<std::string>> FileStore::MultiGet(const std::vector<std::string>& keys,
                                                             Instant deadline) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckList(keys.size()));
  for (Duration pause = milliseconds(1);; pause = std::min<Duration>(2 * pause, milliseconds(20))) {
    std::vector<std::string> values, missing;
    HLAUNCH_RETURN_IF_ERROR(Look([&](const KeySpace& there) {
      for (const std::string& key : keys) {
        const std::string* value = there.Find(key);
        if (value == nullptr) missing.push_back(key);
        if (value != nullptr) values.push_back(*value);
      }
    }));
    if (missing.empty()) return values;
    const Instant now = MonotonicClock().Now();
    if (now >= deadline) return WaitTimedOut(missing);
    std::this_thread::sleep_for(std::min(pause, deadline - now));  // A file wakes no process.
  }
}

}  // namespace hlaunch
