// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kMostFiles = 1000;

bool SameFile(int one, int other) {
  struct stat a = {}, b = {};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_ino == b.st_ino &&
         a.st_dev == b.st_dev;
}

}  // namespace

LogReader::LogReader(std::string path) : path_(std::move(path)) { OpenNewer(); }

void LogReader::OpenNewer() {
  std::vector<UniqueFd> newer;  // The newest first.
  for (int n = 0; n <= kMostFiles; ++n) {
    const std::string name = n == 0 ? path_ : absl::StrCat(path_, ".", n);
    UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file.valid()) {
      if (n == 0) continue;  // It was just rotated.
      break;
    }
    if (!files_.empty() && SameFile(file.get(), files_.back().get())) break;
    // The file was rotated meanwhile.
    if (!newer.empty() && SameFile(file.get(), newer.back().get())) continue;
    newer.push_back(std::move(file));
  }
  for (; !newer.empty(); newer.pop_back()) files_.push_back(std::move(newer.back()));
}

// Returns false if everything was read.
bool LogReader::ReadMore() {
  while (!files_.empty()) {
    bytes_.erase(0, std::exchange(taken_, 0));
    const size_t before = bytes_.size();
    bytes_.resize(before + kReadBytes);
    const ssize_t n = ::read(files_.front().get(), bytes_.data() + before, kReadBytes);
    bytes_.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n > 0) return true;
    if (files_.size() == 1) {
      OpenNewer();
      if (files_.size() == 1) return false;
      continue;  // Something may have been written before the rotation.
    }
    files_.pop_front();
  }
  OpenNewer();
  return !files_.empty();
}

std::optional<LogLine> LogReader::Next() {
  while (true) {
    const size_t end = bytes_.find('\n', taken_);
    if (end != std::string::npos) {
      const absl::string_view line = absl::string_view(bytes_).substr(taken_, end - taken_);
      taken_ = end + 1;
      return ReadLogLine(line);
    }
    if (!ReadMore()) return std::nullopt;
  }
}

}  // namespace hlaunch
