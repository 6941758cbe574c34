// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/termination_message.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/base/unique_fd.h"
#include "proto/base/utf8_prefix.h"

namespace hlaunch {

std::string TerminationMessage(const std::vector<std::string>& lines) {
  std::string message;
  for (const std::string& line : lines) {
    if (message.size() + line.size() + 1 > kMaxTerminationBytes) break;
    absl::StrAppend(&message, line, "\n");
  }
  if (!message.empty() || lines.empty()) return message;
  return std::string(Utf8Prefix(lines[0], kMaxTerminationBytes));
}

std::string KeepTerminationMessage(const std::string& path, absl::string_view message) {
  // O_NONBLOCK: the open fails for a pipe that no process reads. O_NOFOLLOW: otherwise, a user who
  // can write to that folder could choose the file that is overwritten.
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid()) {
    if (errno == ENOENT && path == kTerminationLog) return "";
    if (errno == ELOOP) {
      return absl::StrCat("cannot write the termination message to ", path,
                          ": it is a link, and none is followed; name the file itself");
    }
    return absl::StrCat("cannot write the termination message to ", path, ": ",
                        std::strerror(errno));
  }
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::StrCat("cannot write the termination message to ", path, ": it is no plain file");
  }
  if (::ftruncate(file.get(), 0) == 0 &&
      ::write(file.get(), message.data(), message.size()) == static_cast<ssize_t>(message.size())) {
    return "";
  }
  return absl::StrCat("cannot write the termination message to ", path, ": ", std::strerror(errno));
}

}  // namespace hlaunch
