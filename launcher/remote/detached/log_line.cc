// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/log_line.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr size_t kLongestLine = 16 << 10;

// A time as in "2026-11-25T02:00:00.123Z". No worker's line begins with such a word.
bool IsTime(string_view word) {
  return word.size() > 20 && word[4] == '-' && word[10] == 'T' && word.back() == 'Z';
}

}  // namespace

std::string MakeLogLine(string_view time, int fd, bool whole, string_view text) {
  return absl::StrCat(time, fd == STDERR_FILENO ? " stderr " : " stdout ", whole ? "F " : "P ",
                      text, "\n");
}

LogLine ReadLogLine(string_view line) {
  const std::vector<string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 3));
  const bool fits = parts.size() == 4 && IsTime(parts[0]) &&
                    (parts[1] == "stdout" || parts[1] == "stderr") &&
                    (parts[2] == "F" || parts[2] == "P");
  if (!fits) return {"", STDERR_FILENO, true, std::string(line)};
  return {std::string(parts[0]), parts[1] == "stderr" ? STDERR_FILENO : STDOUT_FILENO,
          parts[2] == "F", std::string(parts[3])};
}

std::vector<Rank> RanksOfText(string_view text) {
  if (IsTime(text.substr(0, text.find(' ')))) text.remove_prefix(text.find(' ') + 1);
  const size_t end = text.find("] ");
  if (!absl::StartsWith(text, "[") || end == string_view::npos) return {};
  const string_view list = text.substr(1, end - 1);
  if (list.empty() || list.find_first_not_of("0123456789,-") != string_view::npos) return {};
  return ParseRankList(list);
}

std::string LogLineCutter::Take(string_view time, string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    absl::StrAppend(&line_, bytes.substr(0, end));
    bytes.remove_prefix(end == string_view::npos ? bytes.size() : end + 1);
    for (; line_.size() > kLongestLine; line_.erase(0, kLongestLine)) {
      absl::StrAppend(&lines, MakeLogLine(time, fd_, false, line_.substr(0, kLongestLine)));
    }
    if (end == string_view::npos) break;
    absl::StrAppend(&lines, MakeLogLine(time, fd_, true, std::exchange(line_, "")));
  }
  return lines;
}

std::string LogLineCutter::Flush(string_view time) {
  if (line_.empty()) return "";
  return MakeLogLine(time, fd_, false, std::exchange(line_, ""));
}

}  // namespace hlaunch
