// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/read_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cluster/tasks/user_file.h"
#include "launcher/remote/detached/job_record.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

// As many as a holder keeps. Other such files are the user's own.
constexpr int kMostAside = 1;
constexpr size_t kMarkBytes = 24;  // The length of a line's time.
constexpr size_t kTailStep = 64 << 10;
// The last lines are searched in at most this many bytes of all files.
constexpr uint64_t kMostTail = 4 << 20;

// A file of the log.
struct LogPart {
  UniqueFd file;
  uint64_t inode = 0;
  uint64_t size = 0;
  std::string mark;
};

std::string ReadAt(int file, uint64_t offset, size_t most) {
  std::string bytes(most, '\0');
  const ssize_t n = ::pread(file, bytes.data(), most, static_cast<off_t>(offset));
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return bytes;
}

// Returns the file's first word, a time. A reader of any line has seen the whole word.
std::string MarkOf(int file) {
  const std::string begin = ReadAt(file, 0, kMarkBytes);
  size_t end = 0;
  while (end < begin.size() && begin[end] > ' ' && begin[end] <= '~') ++end;
  return begin.substr(0, end);
}

std::optional<LogPart> OpenPart(int folder, uid_t uid, const std::string& name) {
  absl::StatusOr<UniqueFd> file = OpenUserFile(folder, name, uid);
  struct stat found = {};
  if (!file.ok() || ::fstat(file->get(), &found) != 0) return std::nullopt;
  LogPart part;
  part.file = *std::move(file);
  part.inode = found.st_ino;
  part.size = static_cast<uint64_t>(found.st_size);
  part.mark = MarkOf(part.file.get());
  return part;
}

// The oldest file comes first.
std::vector<LogPart> OpenParts(int folder, uid_t uid) {
  std::vector<LogPart> parts;
  for (int n = 0; n <= kMostAside; ++n) {
    auto part = OpenPart(folder, uid, n == 0 ? kLogName : absl::StrCat(kLogName, ".", n));
    if (!part && n > 0) break;
    if (!part) continue;  // The file was just renamed.
    const bool again = !parts.empty() && parts.back().inode == part->inode;
    if (!again) parts.push_back(*std::move(part));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// Returns the offset in `part` behind which `lines` lines follow. If there are fewer, subtracts
// them from `lines`. Looks at no more than `budget` bytes, and subtracts them from it.
uint64_t OffsetOfTail(const LogPart& part, int& lines, uint64_t& budget) {
  uint64_t end = part.size;
  const uint64_t least = part.size > budget ? part.size - budget : 0;
  budget -= part.size - least;
  uint64_t first = least;  // Where the first whole line begins.
  bool last = true;        // The newline that ends the last line begins no other line.
  while (end > least) {
    const uint64_t begin = end - std::min<uint64_t>(kTailStep, end - least);
    const std::string bytes = ReadAt(part.file.get(), begin, static_cast<size_t>(end - begin));
    for (size_t i = bytes.size(); i-- > 0;) {
      if (bytes[i] != '\n') continue;
      if (!last) first = begin + i + 1;
      if (!last && --lines == 0) return first;
      last = false;
    }
    end = begin;
  }
  if (least > 0) return first;
  if (!last) --lines;
  return 0;
}

struct Place {
  size_t part = 0;
  uint64_t offset = 0;
  bool lost = false;
};

Place PlaceOfTail(const std::vector<LogPart>& parts, int tail) {
  if (tail < 0 || parts.empty()) return {};
  if (tail == 0) return {parts.size() - 1, parts.back().size, false};
  Place place;
  uint64_t budget = kMostTail;
  for (size_t i = parts.size(); i-- > 0 && tail > 0 && budget > 0;) {
    place = {i, OffsetOfTail(parts[i], tail, budget), false};
  }
  return place;
}

Place PlaceOf(const std::vector<LogPart>& parts, const LogPosition& position) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const LogPart& part = parts[i];
    if (part.inode != position.file || position.offset > part.size) continue;
    const bool same = position.offset == 0 || part.mark == position.mark;
    if (same) return {i, position.offset, false};
  }
  return {0, 0, true};
}

// Returns the whole lines of `part` from `offset` on, at most `most` bytes. In a file that grows no
// more, the last line needs no newline. A line that is too long for one answer comes in pieces.
std::string LinesOf(const LogPart& part, uint64_t offset, size_t most, bool grows) {
  std::string bytes = ReadAt(part.file.get(), offset, most);
  const bool to_the_end = offset + bytes.size() >= part.size;
  const size_t end = bytes.rfind('\n');
  if (end != std::string::npos) {
    const bool cut = !to_the_end || grows;
    if (cut) bytes.resize(end + 1);
    return bytes;
  }
  const bool too_long = bytes.size() == kMaxLogText;
  if (too_long || (to_the_end && !grows)) return bytes;
  return "";
}

// Adds to `text` what fits from `place` on. Returns true if that is all there is.
bool TakeText(const std::vector<LogPart>& parts, Place& place, bool over, std::string& text) {
  while (true) {
    const LogPart& part = parts[place.part];
    const bool newest = place.part + 1 == parts.size();
    const std::string lines =
        LinesOf(part, place.offset, kMaxLogText - text.size(), newest && !over);
    text += lines;
    place.offset += lines.size();
    if (newest) return place.offset >= part.size;
    if (place.offset < part.size) return false;
    place = {place.part + 1, 0, place.lost};
  }
}

}  // namespace

std::string TextOf(const LogPosition& position) {
  return absl::StrCat(position.file, ":", position.offset, ":", position.mark);
}

std::optional<LogPosition> ReadLogPosition(absl::string_view text) {
  const std::vector<std::string> fields = absl::StrSplit(text, absl::MaxSplits(':', 2));
  LogPosition position;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &position.file) ||
      !absl::SimpleAtoi(fields[1], &position.offset)) {
    return std::nullopt;
  }
  position.mark = fields[2];
  return position;
}

absl::StatusOr<LogAnswer> ReadLog(int folder, uid_t uid, const LogQuestion& question, bool over) {
  LogAnswer answer;
  answer.position = question.position;
  const std::optional<LogPosition> position = ReadLogPosition(question.position);
  if (!question.position.empty() && !position) {
    return absl::InvalidArgumentError("a log is asked from a position that is no position");
  }
  const std::vector<LogPart> parts = OpenParts(folder, uid);
  if (parts.empty()) {
    answer.ended = over;
    return answer;
  }
  Place place = position ? PlaceOf(parts, *position) : PlaceOfTail(parts, question.tail);
  answer.lost = place.lost;
  const bool all = TakeText(parts, place, over, answer.text);
  const LogPart& part = parts[place.part];
  // Read again: the file may have got its first line after it was opened.
  const std::string mark = place.offset > 0 ? MarkOf(part.file.get()) : "";
  answer.position = TextOf(LogPosition{part.inode, place.offset, mark});
  answer.ended = over && all;
  return answer;
}

}  // namespace hlaunch
