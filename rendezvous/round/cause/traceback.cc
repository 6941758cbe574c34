// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/traceback.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "proto/base/utf8_prefix.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxCondition = 300;
constexpr size_t kMaxTracebackLine = 1024;  // Limit for each line, because the frames matter, too.
constexpr absl::string_view kTraceback = "Traceback (most recent call last):";
constexpr absl::string_view kTerminate = "terminate called ";
constexpr absl::string_view kNoException = "terminate called without an active exception";

// Removes "[rank3]: ", which torch writes from 2.3 on.
absl::string_view WithoutRank(absl::string_view line) {
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "[rank")) return line;
  while (!rest.empty() && absl::ascii_isdigit(rest[0])) rest.remove_prefix(1);
  if (!absl::ConsumePrefix(&rest, "]:")) return line;
  absl::ConsumePrefix(&rest, " ");
  return rest;
}

// Removes the margin of an exception group's traceback, so that its lines are like those of any
// other.
void TakeMarginOff(StderrLines* lines) {
  bool within = false;
  for (absl::string_view& line : *lines) {
    within = absl::ConsumePrefix(&line, "  + Exception Group ") ||
             (within && absl::ConsumePrefix(&line, "  | "));
  }
}

// Returns whether `line` begins as the last line of a traceback does: "package.SomeError: text",
// "KeyboardInterrupt".
bool LooksLikeException(absl::string_view line) {
  size_t end = 0;
  while (end < line.size() &&
         (absl::ascii_isalnum(line[end]) || line[end] == '_' || line[end] == '.')) {
    ++end;
  }
  const absl::string_view name = line.substr(0, end);
  const bool ends = end == line.size() || line[end] == ':';
  return ends && (absl::EndsWith(name, "Error") || absl::EndsWith(name, "Exception") ||
                  absl::EndsWith(name, "Interrupt") || absl::EndsWith(name, "Timeout") ||
                  absl::EndsWith(name, "Failure"));
}

bool IsIndented(absl::string_view line) { return line.empty() || line[0] == ' '; }

bool IsTraceback(absl::string_view line) {
  return line == kTraceback || line == kOriginalTraceback;
}

// Includes the indented lines of the exception's message, such as those of load_state_dict.
TracebackBlock WithMessage(const StderrLines& lines, size_t begin, size_t exception) {
  TracebackBlock block{begin, exception, exception + 1};
  while (block.end < lines.size() && block.end <= exception + kMaxMoreLines &&
         !lines[block.end].empty() && (lines[block.end][0] == ' ' || lines[block.end][0] == '\t')) {
    ++block.end;
  }
  return block;
}

// Returns whether `line` says that the exception after it ended nothing.
bool SaysIgnored(absl::string_view line) {
  return absl::StartsWith(line, "Exception ignored in") ||
         absl::StartsWith(line, "Error in atexit");
}

std::optional<TracebackBlock> BlockFrom(const StderrLines& lines, size_t traceback) {
  size_t i = traceback + 1;
  while (i < lines.size() && IsIndented(lines[i])) ++i;
  if (i == lines.size()) return std::nullopt;  // Its end was not written.
  return WithMessage(lines, traceback, i);
}

// Returns whether Python ignored the exception of `block`. Cython writes its traceback twice:
// before the line that says so, too.
bool IsIgnored(const StderrLines& lines, const TracebackBlock& block) {
  if (block.begin > 0 && SaysIgnored(lines[block.begin - 1])) return true;
  if (block.end == lines.size() || !SaysIgnored(lines[block.end])) return false;
  const auto all = absl::MakeConstSpan(lines);
  const size_t count = block.end - block.begin;
  return all.subspan(block.end + 1, count) == all.subspan(block.begin, count);
}

// Shortens "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:111" to the file's own name.
absl::string_view FileName(absl::string_view place) {
  return place.substr(place.rfind('/') + 1);  // npos + 1 is 0.
}

}  // namespace

StderrLines SplitStderr(absl::string_view text) {
  StderrLines lines = absl::StrSplit(text, '\n');
  for (absl::string_view& line : lines) line = WithoutRank(absl::StripSuffix(line, "\r"));
  TakeMarginOff(&lines);
  return lines;
}

std::optional<TracebackBlock> LastTraceback(const StderrLines& lines) {
  for (size_t i = lines.size(); i-- > 0;) {
    if (!IsTraceback(lines[i])) continue;
    const auto block = BlockFrom(lines, i);
    if (block && !IsIgnored(lines, *block)) return block;
  }
  for (size_t i = lines.size(); i-- > 0;) {
    if (!LooksLikeException(lines[i])) continue;
    size_t begin = i;
    while (begin > 0 && IsIndented(lines[begin - 1])) --begin;
    if (begin > 0 && lines[begin - 1] == kTraceback) continue;  // Python ignored this exception.
    return WithMessage(lines, begin, i);
  }
  return std::nullopt;
}

std::string TracebackIn(absl::string_view text) {
  StderrLines lines = SplitStderr(text);
  const std::optional<TracebackBlock> block = LastTraceback(lines);
  if (!block) return "";
  for (absl::string_view& line : lines) line = Utf8Prefix(line, kMaxTracebackLine);
  return LastLines(absl::StrJoin(lines.begin() + static_cast<ptrdiff_t>(block->begin),
                                 lines.begin() + static_cast<ptrdiff_t>(block->end), "\n"),
                   kMaxTracebackBytes);
}

std::string TracebackBeforeAbort(absl::string_view text) {
  const size_t abort = text.rfind(kTerminate);
  if (abort == text.npos) return "";
  std::string traceback = TracebackIn(text.substr(0, abort));
  if (absl::StartsWith(text.substr(abort), kNoException)) return traceback;
  const StderrLines lines = SplitStderr(traceback);
  const std::optional<TracebackBlock> block = LastTraceback(lines);
  if (!block) return "";
  const absl::string_view exception = lines[block->exception];
  const size_t colon = exception.find(": ");
  if (colon == exception.npos) return "";
  const std::string uncaught = UncaughtInCpp(SplitStderr(text.substr(abort)));
  return absl::EndsWith(uncaught, exception.substr(colon)) ? traceback : "";
}

// "terminate called after throwing an instance of 'X'", then "  what():  text".
std::string UncaughtInCpp(const StderrLines& lines) {
  for (size_t i = lines.size(); i-- > 0;) {
    absl::string_view type = lines[i];
    if (!absl::ConsumePrefix(&type, "terminate called after throwing an instance of ")) continue;
    absl::string_view what = i + 1 < lines.size() ? lines[i + 1] : "";
    what = absl::StripLeadingAsciiWhitespace(what);
    const bool said = absl::ConsumePrefix(&what, "what():");
    return absl::StrCat(absl::StripPrefix(absl::StripSuffix(type, "'"), "'"), said ? ": " : "",
                        said ? absl::StripAsciiWhitespace(what) : "");
  }
  return "";
}

std::string WithoutCppStacks(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  std::erase_if(lines, [](absl::string_view line) {
    return line.empty() || absl::StartsWith(line, "frame #") ||
           absl::StartsWith(line, "Exception raised from ");
  });
  return absl::StrJoin(lines, "\n");
}

// "PLACE: FUNCTION: block: [0,0,0], thread: [1,0,0] Assertion `CONDITION` failed."
std::string KernelAssertionIn(absl::string_view text) {
  const StderrLines lines = SplitStderr(text);
  for (size_t i = lines.size(); i-- > 0;) {
    absl::string_view condition = lines[i];
    const size_t place = condition.find(": "), thread = condition.find("], thread: [");
    const size_t begin = condition.find("] Assertion `", thread == condition.npos ? 0 : thread);
    if (thread == condition.npos || begin == condition.npos || place > thread) continue;
    condition.remove_prefix(condition.find('`', begin) + 1);
    if (!absl::ConsumeSuffix(&condition, "` failed.")) continue;
    return absl::StrCat(kKernelAssertion, Utf8Prefix(condition, kMaxCondition), " (",
                        Utf8Prefix(FileName(lines[i].substr(0, place)), kMaxCondition), ")");
  }
  return "";
}

std::string LastLines(absl::string_view text, size_t max_bytes) {
  text = absl::StripTrailingAsciiWhitespace(text);
  if (text.size() <= max_bytes) return std::string(text);
  const size_t newline = text.find('\n', text.size() - max_bytes - 1);
  return newline == text.npos ? "" : std::string(text.substr(newline + 1));
}

}  // namespace hlaunch
