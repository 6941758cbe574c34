// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/agent_directory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

// No log directory that is kept has such a name: those have `_` before the random letters.
constexpr absl::string_view kPrefix = "hlaunch-agent.";
constexpr size_t kRandomLetters = 6;
constexpr char kLockFile[] = "lock";
constexpr char kNewLockFile[] = "lock.new";
constexpr mode_t kOwnerOnly = S_IRWXU;
constexpr unsigned kZfs = 0x2fc12fc1;  // Not defined in the kernel's headers.

// Makes the lock file. It gets its name only once it is locked: an agent that finds it unlocked may
// remove the directory.
UniqueFd MakeLock(const std::string& directory) {
  const std::string fresh = absl::StrCat(directory, "/", kNewLockFile);
  UniqueFd lock(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      ::rename(fresh.c_str(), absl::StrCat(directory, "/", kLockFile).c_str()) != 0) {
    return UniqueFd();
  }
  return lock;
}

// True if every process that can see `directory` sees the same locks there.
bool IsOfThisHostAlone(const std::string& directory) {
  struct statfs fs = {};
  if (::statfs(directory.c_str(), &fs) != 0) return false;
  const unsigned kinds[] = {EXT4_SUPER_MAGIC,
                            XFS_SUPER_MAGIC,
                            BTRFS_SUPER_MAGIC,
                            F2FS_SUPER_MAGIC,
                            TMPFS_MAGIC,
                            OVERLAYFS_SUPER_MAGIC,
                            kZfs};
  const auto kind = static_cast<unsigned>(fs.f_type);
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

bool HasItsName(const std::string& name) {
  return absl::StartsWith(name, kPrefix) && name.size() == kPrefix.size() + kRandomLetters;
}

bool IsOwn(int fd, mode_t type, mode_t mode) {
  struct stat st = {};
  return ::fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && (st.st_mode & ~S_IFMT) == mode &&
         st.st_uid == ::geteuid();
}

// Removes the content of the open `directory`, whatever its path is by now. The lock file goes
// last: if this process is killed meanwhile, the next agent can still remove the rest.
void RemoveContent(int directory) {
  std::error_code ignored;
  const std::filesystem::path held = absl::StrCat("/proc/self/fd/", directory);
  std::filesystem::directory_iterator entry(held, ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    std::error_code left;
    if (entry->path().filename() != kLockFile) std::filesystem::remove_all(entry->path(), left);
  }
  if (!ignored) ::unlinkat(directory, kLockFile, 0);
}

// Removes `path` if it is the directory of an agent that is gone. Returns true if it was removed.
bool RemoveIfAbandoned(const std::string& path) {
  const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid() || !IsOwn(directory.get(), S_IFDIR, kOwnerOnly)) return false;
  const UniqueFd lock(
      ::openat(directory.get(), kLockFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!lock.valid() || !IsOwn(lock.get(), S_IFREG, S_IRUSR | S_IWUSR)) return false;
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  RemoveContent(directory.get());
  return ::rmdir(path.c_str()) == 0;
}

}  // namespace

void RemoveAbandonedDirectories(const std::string& parent) {
  if (!IsOfThisHostAlone(parent)) return;
  int removed = 0;
  std::error_code ignored;
  std::filesystem::directory_iterator entry(parent, ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    if (!HasItsName(entry->path().filename().string())) continue;
    if (RemoveIfAbandoned(entry->path().string())) ++removed;
  }
  if (removed == 0) return;
  Log(LogLevel::kDebug, absl::StrCat("removed ", removed, " below ", parent,
                                     " that an agent which is gone left behind"));
}

std::string TemporaryDirectory() {
  std::error_code error;
  const std::filesystem::path named = std::filesystem::temp_directory_path(error);
  if (error) return "/tmp";
  const std::string path = std::filesystem::absolute(named, error).string();
  return error ? "/tmp" : path;
}

absl::StatusOr<std::unique_ptr<AgentDirectory>> AgentDirectory::Make(const std::string& parent) {
  std::string path = absl::StrCat(parent, "/", kPrefix, std::string(kRandomLetters, 'X'));
  if (::mkdtemp(path.data()) == nullptr) {
    return absl::FailedPreconditionError(std::strerror(errno));
  }
  UniqueFd lock = MakeLock(path);
  return std::unique_ptr<AgentDirectory>(new AgentDirectory(std::move(path), std::move(lock)));
}

AgentDirectory::~AgentDirectory() {
  ::unlink(absl::StrCat(path_, "/", kLockFile).c_str());
  if (::rmdir(path_.c_str()) == 0 || errno != ENOTEMPTY) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hlaunch
