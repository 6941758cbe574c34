// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status_macros.h"
#include "rendezvous/rpc/journal_format.h"

namespace hlaunch {
namespace {

constexpr char kTemporary[] = ".tmp";
constexpr char kCorrupt[] = ".corrupt";
constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;

// Makes a status of errno. `what` is what failed, such as "write DIR/a.job".
absl::Status LastError(absl::string_view what) {
  const int error = errno;
  const std::string message = absl::StrCat("cannot ", what, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  if (error == ENOTDIR) return absl::InvalidArgumentError(message);
  const absl::StatusCode code = absl::ErrnoToStatusCode(error);
  // Aborted would mean that another service has taken over. But ESTALE, which Abseil maps to it,
  // only means that a file server has lost a handle.
  return {code == absl::StatusCode::kAborted ? absl::StatusCode::kUnavailable : code, message};
}

UniqueFd OpenRetrying(const char* path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC, kFileMode);
  } while (fd < 0 && errno == EINTR);
  return UniqueFd(fd);
}

absl::Status WriteAll(int fd, absl::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return LastError(absl::StrCat("write ", path));
    content.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  const UniqueFd file = OpenRetrying(path.c_str(), O_RDONLY);
  if (!file.valid()) return LastError(absl::StrCat("read ", path));
  std::string content;
  while (true) {
    char block[65536];
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return LastError(absl::StrCat("read ", path));
    if (got == 0) return content;
    content.append(block, static_cast<size_t>(got));
  }
}

// Syncs the parent, too: a power cut would lose a new directory that is only in the parent's cache.
absl::Status MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) != 0) {
    return errno == EEXIST ? absl::OkStatus()
                           : LastError(absl::StrCat("make the directory ", path));
  }
  const UniqueFd parent = OpenRetrying(absl::StrCat(path, "/..").c_str(), O_RDONLY | O_DIRECTORY);
  if (parent.valid() && ::fsync(parent.get()) != 0) {
    return LastError(absl::StrCat("make the directory ", path));
  }
  return absl::OkStatus();
}

// The lock ends with the process, however that ends.
absl::StatusOr<UniqueFd> LockDirectory(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/lock");
  UniqueFd lock = OpenRetrying(path.c_str(), O_RDWR | O_CREAT);
  if (!lock.valid()) return LastError(absl::StrCat("open ", path));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return LastError(absl::StrCat("lock ", path));
    char pid[16] = {};
    if (::pread(lock.get(), pid, sizeof pid - 1, 0) <= 0) std::strcpy(pid, "?");
    return absl::AlreadyExistsError(
        absl::StrCat("another hlaunch-rendezvous (pid ", pid, ") keeps its jobs in ", directory,
                     ": stop it, or give this one another directory with --state"));
  }
  const std::string pid = absl::StrCat(::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) {
    return LastError(absl::StrCat("write ", path));
  }
  return lock;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(Options options) {
  const std::string& path = options.directory;
  HLAUNCH_RETURN_IF_ERROR(MakeDirectory(path));
  UniqueFd directory = OpenRetrying(path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) return LastError(absl::StrCat("use the directory ", path));
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd lock, LockDirectory(path));
  return std::unique_ptr<Journal>(
      new Journal(std::move(options), std::move(directory), std::move(lock)));
}

Journal::Journal(Options options, UniqueFd directory, UniqueFd lock)
    : options_(std::move(options)), directory_(std::move(directory)), lock_(std::move(lock)) {}

absl::StatusOr<RecordKeeper::Listed> Journal::List() {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(options_.directory, error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return absl::InternalError(
        absl::StrCat("cannot read the directory ", options_.directory, ": ", error.message()));
  }
  std::sort(names.begin(), names.end());
  Listed listed;
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(options_.directory, "/", name);
    // An earlier service ended while it was writing this file.
    if (absl::EndsWith(name, kTemporary)) ::unlink(path.c_str());
    if (!absl::EndsWith(name, kRecordSuffix)) continue;
    HLAUNCH_RETURN_IF_ERROR(ListFile(path, &listed));
  }
  return listed;
}

absl::Status Journal::ListFile(const std::string& path, Listed* listed) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string content, ReadAll(path));
  absl::StatusOr<JobRecord> record = DecodeRecord(content);
  if (record.ok() && !absl::EndsWith(path, "/" + RecordFileName(record->job_id))) {
    record = absl::DataLossError(absl::StrCat("it is a copy of the record of ", record->job_id));
  }
  if (record.ok()) {
    const RecordVersion version = NextVersionOf(record->job_id);
    listed->records.push_back({std::move(record).value(), version});
    return absl::OkStatus();
  }
  if (absl::IsFailedPrecondition(record.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot go on with ", path, ": ", record.status().message(),
        "; start the version that wrote it, or move the file away, which gives up its job"));
  }
  const std::string aside = absl::StrCat(path, kCorrupt);
  if (::rename(path.c_str(), aside.c_str()) != 0) return LastError(absl::StrCat("move ", path));
  listed->warnings.push_back(absl::StrCat("a job is lost: ", path, " is damaged (",
                                          record.status().message(), "); it is now ", aside));
  return absl::OkStatus();
}

RecordVersion Journal::NextVersionOf(const std::string& job_id) {
  MutexLock lock(&mu_);
  return versions_[job_id] = ++last_version_;
}

absl::StatusOr<RecordVersion> Journal::Keep(const JobRecord& record, RecordVersion expected) {
  const std::string path = absl::StrCat(options_.directory, "/", RecordFileName(record.job_id));
  {
    MutexLock lock(&mu_);
    const auto version = versions_.find(record.job_id);
    if ((version == versions_.end() ? 0 : version->second) != expected) {
      return absl::AbortedError(absl::StrCat("another changed ", path));
    }
  }
  const bool forget = record.state == JobState::kOver && record.members.empty();
  HLAUNCH_RETURN_IF_ERROR(forget ? Remove(path) : Replace(path, EncodeRecord(record)));
  HLAUNCH_RETURN_IF_ERROR(SyncDirectory());
  if (!forget) return NextVersionOf(record.job_id);
  MutexLock lock(&mu_);
  versions_.erase(record.job_id);
  return 0;
}

absl::Status Journal::Replace(const std::string& path, const std::string& content) const {
  const std::string temporary = absl::StrCat(path, kTemporary);
  HLAUNCH_RETURN_IF_ERROR(Before(Step::kOpen, temporary));
  const UniqueFd file = OpenRetrying(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file.valid()) return LastError(absl::StrCat("write ", temporary));
  HLAUNCH_RETURN_IF_ERROR(Before(Step::kWrite, temporary));
  HLAUNCH_RETURN_IF_ERROR(WriteAll(file.get(), content, temporary));
  HLAUNCH_RETURN_IF_ERROR(Before(Step::kSync, temporary));
  if (::fsync(file.get()) != 0) return LastError(absl::StrCat("write ", temporary));
  HLAUNCH_RETURN_IF_ERROR(Before(Step::kRename, temporary));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return LastError(absl::StrCat("rename ", temporary));
  }
  return absl::OkStatus();
}

absl::Status Journal::Remove(const std::string& path) const {
  HLAUNCH_RETURN_IF_ERROR(Before(Step::kRemove, path));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return LastError(absl::StrCat("remove ", path));
  return absl::OkStatus();
}

absl::Status Journal::SyncDirectory() const {
  HLAUNCH_RETURN_IF_ERROR(Before(Step::kSyncDirectory, options_.directory));
  if (::fsync(directory_.get()) == 0) return absl::OkStatus();
  return LastError(absl::StrCat("write ", options_.directory));
}

absl::Status Journal::Before(Step step, const std::string& path) const {
  return options_.before_step ? options_.before_step(step, path) : absl::OkStatus();
}

}  // namespace hlaunch
