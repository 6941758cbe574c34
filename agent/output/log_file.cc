// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"

namespace hlaunch {

void LogLosses::Add(absl::string_view path, int error, size_t bytes) {
  {
    MutexLock lock(&mu_);
    bytes_ += bytes;
    if (first_error_ != 0) return;
    first_error_ = error;
    first_path_ = std::string(path);
  }
  LogWarning(absl::StrCat("output of workers is lost: cannot write ", path, ": ",
                          std::strerror(error), "; the job goes on, and so do tries to write"));
}

std::string LogLosses::Summary() const {
  MutexLock lock(&mu_);
  if (bytes_ == 0) return "";
  return absl::StrCat("log files lack ", bytes_, " bytes of the workers' output, first ",
                      first_path_, ": ", std::strerror(first_error_));
}

LogFile::LogFile(std::string path, Rotation rotation, std::shared_ptr<LogLosses> losses)
    : path_(std::move(path)), rotation_(rotation), losses_(std::move(losses)) {
  Open();
}

void LogFile::Open() {
  if (full_) {
    const int error = MoveAside();
    if (error != 0) return void(error_ = error);
    full_ = false;
  }
  constexpr int kNew = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  constexpr mode_t kMode = 0666;  // The umask decides.
  fd_ = UniqueFd(::open(path_.c_str(), kNew, kMode));
  if (!fd_.valid() && errno == ENOENT) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    fd_ = UniqueFd(::open(path_.c_str(), kNew, kMode));
  }
  if (!fd_.valid()) error_ = errno;
  size_ = 0;
  mid_line_ = false;
}

int LogFile::MoveAside() {
  const auto aside = [this](int n) { return absl::StrCat(path_, ".", n); };
  for (int n = rotation_.keep; n > 1; --n) ::rename(aside(n - 1).c_str(), aside(n).c_str());
  const int moved =
      rotation_.keep == 0 ? ::unlink(path_.c_str()) : ::rename(path_.c_str(), aside(1).c_str());
  return moved == 0 || errno == ENOENT ? 0 : errno;
}

void LogFile::Write(absl::string_view bytes) {
  size_t written = 0;
  if (!fd_.valid()) Open();
  if (fd_.valid() && (missing_ == 0 || SayWhatIsMissing())) {
    written = rotation_.bytes == 0 ? WriteAll(bytes) : WriteRotating(bytes);
  }
  if (written == bytes.size()) return;
  missing_ += bytes.size() - written;
  losses_->Add(path_, error_, bytes.size() - written);
}

bool LogFile::SayWhatIsMissing() {
  const size_t before = size_;
  const bool in_line = mid_line_;
  const std::string words = absl::StrCat(in_line ? "\n" : "", "[hlaunch: ", missing_,
                                         " bytes are missing here: ", std::strerror(error_), "]\n");
  if (WriteAll(words) == words.size()) {
    missing_ = 0;
    return true;
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(before)) == 0) {
    size_ = before;
    mid_line_ = in_line;
  }
  return false;
}

size_t LogFile::WriteAll(absl::string_view bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = ::write(fd_.get(), bytes.data() + written, bytes.size() - written);
    if (n > 0) {
      written += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      error_ = n == 0 ? ENOSPC : errno;
      break;
    }
  }
  size_ += written;
  if (written > 0) mid_line_ = bytes[written - 1] != '\n';
  return written;
}

// Rotates between two lines: before a line that would not fit, unless that line is the first in the
// file.
size_t LogFile::WriteRotating(absl::string_view bytes) {
  size_t written = 0;
  while (written < bytes.size() && fd_.valid()) {
    const absl::string_view rest = bytes.substr(written);
    const size_t room = rotation_.bytes - std::min(size_, rotation_.bytes);
    size_t part = rest.size();
    if (part > room) {
      const size_t last = room == 0 ? absl::string_view::npos : rest.rfind('\n', room - 1);
      if (last != absl::string_view::npos) {
        part = last + 1;
      } else if (size_ > 0 && !mid_line_) {
        part = 0;
      } else {
        part = std::min(rest.find('\n'), rest.size() - 1) + 1;
      }
    }
    const size_t n = WriteAll(rest.substr(0, part));
    written += n;
    if (n < part) break;
    if (written < bytes.size()) Rotate();
  }
  return written;
}

void LogFile::Rotate() {
  fd_.Close();
  full_ = true;
  Open();
}

}  // namespace hlaunch
