// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/user_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr int kReaderPatienceMillis = 10'000;
constexpr int kSilentMillis = 2'000;  // Then a line says for what is waited.
constexpr size_t kPiece = 4096;       // A pipe takes that much at once if poll calls it writable.

absl::Status Failed(int error) { return absl::UnavailableError(std::strerror(error)); }

absl::Status WriteTo(int fd, absl::string_view text) {
  while (!text.empty()) {
    pollfd room = {fd, POLLOUT, 0};
    const int ready = ::poll(&room, 1, kReaderPatienceMillis);
    if (ready == 0) return absl::UnavailableError("nothing has read it for 10 s");
    const ssize_t n = ready < 0 ? -1 : ::write(fd, text.data(), std::min(text.size(), kPiece));
    if (n == 0) return Failed(ENOSPC);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return Failed(errno);
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

bool IsPipe(int fd) {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

// Waits until a pipe has something to read, or its last writer has gone.
absl::Status AwaitWriter(int fd, const std::string& path, Duration patience) {
  const int most = static_cast<int>(InSeconds(patience) * 1000);
  const int in_silence = std::min(most, kSilentMillis);
  pollfd data = {fd, POLLIN, 0};
  int ready = ::poll(&data, 1, in_silence);
  if (ready == 0 && most > in_silence) {
    LogInfo(absl::StrCat("waiting for somebody who writes to ", path, ", until ", most / 1000,
                         " s have passed"));
    ready = ::poll(&data, 1, most - in_silence);
  }
  if (ready < 0 && errno != EINTR) return Failed(errno);
  if (ready != 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("nothing was written to this pipe for ", most / 1000, " s"));
}

// The descriptor of our own output if that goes to the file `there`, else -1. A file opened anew
// would be written from its beginning, and a socket cannot be opened.
int OwnOutput(const struct stat& there) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own = {};
    if (::fstat(fd, &own) == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino) {
      return fd;
    }
  }
  return -1;
}

// Writes to a device or a pipe.
absl::Status WriteToSpecial(const std::string& path, mode_t type, absl::string_view text) {
  if (type == S_IFSOCK) return absl::UnavailableError("it is a socket");
  // O_NONBLOCK: the open fails for a pipe that no process reads. O_CREAT: with it, the kernel
  // refuses a stranger's pipe in a folder in which everybody may make one.
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  if (file.valid()) return WriteTo(file.get(), text);
  if (errno == ENXIO && type == S_IFIFO) {
    return absl::UnavailableError("no process reads this pipe");
  }
  return Failed(errno);
}

// Returns the file that the link `path` leads to. One that is not there is made empty. The kernel
// follows the link, since it refuses a stranger's in a folder in which everybody may make one.
absl::StatusOr<std::string> FileBehind(const std::string& path, mode_t mode) {
  UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) {
    file = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode));
  }
  if (!file.valid()) return Failed(errno);
  std::error_code error;
  const auto held = absl::StrCat("/proc/self/fd/", file.get());
  const std::string target = std::filesystem::read_symlink(held, error).string();
  if (error) return Failed(error.value());
  return target;
}

// Makes a file beside `path` and renames it over it. Nobody else knows the new file's name: several
// hosts may write the same path at once.
absl::Status Replace(const std::string& path, absl::string_view text, const NewFile& how) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return Failed(errno);
  const std::string draft =
      std::filesystem::path(path).parent_path() / absl::StrCat(".hlaunch-", absl::Hex(random));
  UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, how.mode));
  if (!file.valid()) return Failed(errno);
  absl::Status status = WriteTo(file.get(), text);
  if (status.ok() && how.sync && ::fsync(file.get()) != 0) status = Failed(errno);
  // Some file systems say only now that they have no room.
  if (::close(file.Release()) != 0 && status.ok()) status = Failed(errno);
  // link() fails if the file exists; rename() replaces it.
  const auto place = how.may_replace ? ::rename : ::link;
  if (status.ok() && place(draft.c_str(), path.c_str()) != 0) {
    status = errno == EEXIST ? absl::AlreadyExistsError(std::strerror(errno)) : Failed(errno);
  }
  ::unlink(draft.c_str());
  return status;
}

}  // namespace

UniqueFd OpenToRead(const std::string& path) {
  // O_NONBLOCK: the open of a pipe that no process writes would wait, and that of some devices.
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

absl::StatusOr<std::string> ReadOpened(const UniqueFd& file, const std::string& path, size_t most,
                                       Duration patience) {
  std::string text;
  bool had_writer = false;  // What ends now has been written, or is no pipe.
  for (size_t length = 0;;) {
    text.resize(length + std::min(most + 1 - length, kPiece + length));
    const ssize_t n = ::read(file.get(), &text[length], text.size() - length);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return Failed(errno);
    length += static_cast<size_t>(std::max<ssize_t>(n, 0));
    if (length > most)
      return absl::ResourceExhaustedError(absl::StrCat("more than ", most, " bytes"));
    had_writer = had_writer || length > 0;
    if ((n < 0 && errno == EAGAIN) || (n == 0 && !had_writer && IsPipe(file.get()))) {
      HLAUNCH_RETURN_IF_ERROR(AwaitWriter(file.get(), path, patience));
      had_writer = true;
      continue;
    }
    if (n != 0) continue;
    text.resize(length);
    return text;
  }
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most, Duration patience) {
  const UniqueFd file = OpenToRead(path);
  if (file.valid()) return ReadOpened(file, path, most, patience);
  return errno == ENOENT ? absl::NotFoundError(std::strerror(ENOENT)) : Failed(errno);
}

absl::Status MakeFolders(const std::filesystem::path& folder) {
  if (folder.empty() || ::access(folder.c_str(), F_OK) == 0) return absl::OkStatus();
  HLAUNCH_RETURN_IF_ERROR(MakeFolders(folder.parent_path()));
  if (::mkdir(folder.c_str(), S_IRWXU) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot make the folder ", folder.string(), ": ", std::strerror(errno)));
}

absl::Status WriteWholeFile(const std::string& path, absl::string_view text, const NewFile& how) {
  struct stat there = {}, link = {};
  const bool is_link = ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
  if (is_link && !how.follow) {
    return absl::UnavailableError("it is a link, and none is followed; name the file itself");
  }
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (!exists && errno != ENOENT) return Failed(errno);
  const mode_t type = there.st_mode & S_IFMT;
  if (type == S_IFDIR) return Failed(EISDIR);
  const int own = exists ? OwnOutput(there) : -1;
  if (own >= 0) return WriteTo(own, text);
  if (exists && type != S_IFREG) return WriteToSpecial(path, type, text);
  if (exists && !how.may_replace) return absl::AlreadyExistsError(std::strerror(EEXIST));
  if (!is_link) return Replace(path, text, how);
  HLAUNCH_ASSIGN_OR_RETURN(const std::string target, FileBehind(path, how.mode));
  return Replace(target, text, {how.mode, true, how.sync, true});
}

}  // namespace hlaunch
