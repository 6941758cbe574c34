// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/first_cause.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"

namespace hlaunch {
namespace {

using Lines = std::vector<absl::string_view>;

constexpr size_t kMaxExceptionBytes = 300;
constexpr size_t kMaxTracebackLine = 1024;  // Limit for each line, because the frames matter, too.
constexpr size_t kLastLines = 5;            // Searched if no exception was found.
constexpr absl::string_view kTraceback = "Traceback (most recent call last):";
// Torch's line before what a data loader or another process of the worker raised.
constexpr absl::string_view kOriginalTraceback = "Original Traceback (most recent call last):";
constexpr size_t kMaxMoreLines = 8;  // Of an exception's message.

// Words of gloo, c10d, NCCL, hlaunch's collectives and others.
constexpr absl::string_view kTimedOut[] = {
    "Timed out waiting",                         // gloo
    "Application timeout caused pair closure",   // gloo
    "collective operation timeout",              // NCCL's watchdog
    "NCCL operations have failed or timed out",  // NCCL's watchdog
    "monitoredBarrier",                          // c10d
    "wait timeout after",                        // c10d's store
    "Socket Timeout",                            // c10d's store, 1.x
    "waiting for clients",                       // c10d's store
    "Heartbeat monitor timed out",               // NCCL's watchdog
    "waited in vain for",                        // hlaunch's collectives
    "has not come to group",                     // hlaunch's collectives
    "did not come within",                       // hlaunch's collectives
    "is not over yet",                           // hlaunch's collectives
};
constexpr absl::string_view kNoConnect[] = {
    "onnection refused",       // the C library
    "connectFullMesh failed",  // c10d with gloo
    "No route to host",        // the C library: that host does not answer
    "looked for the store at"  // hlaunch's collectives
};
constexpr absl::string_view kPeerGone[] = {
    "Connection closed by peer",     // gloo
    "onnection reset by peer",       // the C library
    "roken pipe",                    // the C library
    "Connection was likely closed",  // c10d's store
    "onnection timed out",           // the C library: the other end does not acknowledge
    "went away",                     // hlaunch's collectives
    "left the group before",         // hlaunch's collectives
    "Cancelled: rank ",              // hlaunch's collectives: another rank did so
    "ncclRemoteError",
    "remote process exited or there was a network error",
    "NCCL communicator was aborted",
    "JAX distributed service detected fatal errors",
};

bool HasAny(absl::string_view text, absl::Span<const absl::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](absl::string_view word) { return absl::StrContains(text, word); });
}

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
void TakeMarginOff(Lines* lines) {
  bool within = false;
  for (absl::string_view& line : *lines) {
    within = absl::ConsumePrefix(&line, "  + Exception Group ") ||
             (within && absl::ConsumePrefix(&line, "  | "));
  }
}

Lines SplitLines(absl::string_view text) {
  Lines lines = absl::StrSplit(text, '\n');
  for (absl::string_view& line : lines) line = WithoutRank(absl::StripSuffix(line, "\r"));
  TakeMarginOff(&lines);
  return lines;
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

// The lines [begin, end) of one traceback. The line of the exception is `exception`.
struct Block {
  size_t begin = 0;
  size_t exception = 0;
  size_t end = 0;
};

// Includes the indented lines of the exception's message, such as those of load_state_dict.
Block WithMessage(const Lines& lines, size_t begin, size_t exception) {
  Block block{begin, exception, exception + 1};
  while (block.end < lines.size() && block.end <= exception + kMaxMoreLines &&
         !lines[block.end].empty() && (lines[block.end][0] == ' ' || lines[block.end][0] == '\t')) {
    ++block.end;
  }
  return block;
}

// Returns whether Python says that this exception ended nothing.
bool IsIgnored(const Lines& lines, size_t traceback) {
  if (traceback == 0) return false;
  const absl::string_view before = lines[traceback - 1];
  return absl::StartsWith(before, "Exception ignored in") ||
         absl::StartsWith(before, "Error in atexit");
}

std::optional<Block> BlockFrom(const Lines& lines, size_t traceback) {
  size_t i = traceback + 1;
  while (i < lines.size() && IsIndented(lines[i])) ++i;
  if (i == lines.size()) return std::nullopt;  // Its end was not written.
  return WithMessage(lines, traceback, i);
}

// Returns the last traceback. If its head was cut off, or it is a syntax error without a head,
// returns what looks like the end of a traceback and the indented lines before it.
std::optional<Block> LastBlock(const Lines& lines) {
  for (size_t i = lines.size(); i-- > 0;) {
    if (!IsTraceback(lines[i]) || IsIgnored(lines, i)) continue;
    if (const auto block = BlockFrom(lines, i)) return block;
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

// "terminate called after throwing an instance of 'X'", then "  what():  text".
std::string UncaughtInCpp(const Lines& lines) {
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

// Removes from `line` each `begin`, the next `end`, and what lies between.
void EraseBetween(const std::string& begin, const std::string& end, std::string* line) {
  for (size_t at = line->find(begin); at != line->npos; at = line->find(begin, at)) {
    const size_t last = line->find(end, at + begin.size());
    if (last == line->npos) return;
    line->erase(at, last + end.size() - at);
  }
}

// Shortens "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537]" to the file's own name.
std::string WithShortPlace(absl::string_view line) {
  const size_t open = line.find("[/");
  const size_t close = open == line.npos ? open : line.find("] ", open);
  if (close == line.npos) return std::string(line);
  const size_t name = line.rfind('/', close) + 1;
  if (!absl::StrContains(line.substr(name, close - name), ".cc:")) return std::string(line);
  return absl::StrCat(line.substr(0, open + 1), line.substr(name));
}

// Removes the general remarks of gloo and c10d, so that the rest has room.
std::string WithoutNoise(absl::string_view text) {
  std::string line = WithShortPlace(text);
  EraseBetween(" This is typically caused by a remote worker", "GLHF!", &line);
  EraseBetween(", TensorDeviceTypes=TensorOptions(", "(nullopt))", &line);
  return absl::StrReplaceAll(line, {{"is running collective: CollectiveFingerPrint(", "runs ("}});
}

// Returns at most the first `most` bytes of `text`, in whole UTF-8 characters.
absl::string_view Head(absl::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (text[most] & '\xc0') == '\x80') --most;
  return text.substr(0, most);
}

std::string OneCleanLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  std::string line = WithoutNoise(Head(text.substr(0, text.find('\n')), kMaxTextBytes));
  if (line.size() > kMaxExceptionBytes) {
    line = absl::StrCat(Head(line, kMaxExceptionBytes - 3), "...");
  }
  std::replace_if(line.begin(), line.end(), absl::ascii_iscntrl, '?');
  return line;
}

// Returns the text that is searched for signatures.
std::string LastWords(const WorkerFailure& failure) {
  std::string words = ExceptionOf(failure);
  if (!words.empty()) return words;
  Lines lines = SplitLines(absl::StripTrailingAsciiWhitespace(failure.log_tail));
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return absl::StrJoin(lines, "\n");
}

// Returns the failure at the end of the chain that begins at `index`: the chain goes on to the rank
// that a failure names, if that rank failed. If they name each other, returns `index`.
size_t EndOfChain(const std::vector<WorkerFailure>& failures, size_t index) {
  size_t end = index;
  for (size_t steps = 0; steps < failures.size(); ++steps) {
    const std::optional<Accusation> accusation = AccusationIn(LastWords(failures[end]));
    if (!accusation) return end;
    const auto next =
        std::find_if(failures.begin(), failures.end(),
                     [&](const WorkerFailure& failure) { return Accuses(*accusation, failure); });
    if (next == failures.end() || next == failures.begin() + static_cast<ptrdiff_t>(end))
      return end;
    end = static_cast<size_t>(next - failures.begin());
  }
  return index;
}

// Returns which of `failures`, all of them consequences, says most: `index`, unless it names no
// rank that it missed and another one does. A failure that names one leads on to the end of its
// chain.
size_t WhoSaysMost(const std::vector<WorkerFailure>& failures, size_t index) {
  if (AccusationIn(LastWords(failures[index]))) return EndOfChain(failures, index);
  for (size_t i = 0; i < failures.size(); ++i) {
    if (AccusationIn(LastWords(failures[i]))) return EndOfChain(failures, i);
  }
  return index;
}

std::string Name(const WorkerFailure& failure) {
  return absl::StrCat("rank ", failure.rank, " on ", failure.host);
}

absl::string_view Did(FailureKind kind) {
  switch (kind) {
    case FailureKind::kOriginal:
      return "failed by itself";
    case FailureKind::kNoConnect:
      return "could not connect";
    case FailureKind::kTimedOut:
      return "waited in vain";
    case FailureKind::kPeerGone:
      return "lost a connection";
  }
  return "";
}

}  // namespace

std::string LastLines(absl::string_view text, size_t max_bytes) {
  text = absl::StripTrailingAsciiWhitespace(text);
  if (text.size() <= max_bytes) return std::string(text);
  const size_t newline = text.find('\n', text.size() - max_bytes - 1);
  return newline == text.npos ? "" : std::string(text.substr(newline + 1));
}

std::string TracebackIn(absl::string_view text) {
  Lines lines = SplitLines(text);
  const std::optional<Block> block = LastBlock(lines);
  if (!block) return "";
  for (absl::string_view& line : lines) line = Head(line, kMaxTracebackLine);
  return LastLines(absl::StrJoin(lines.begin() + static_cast<ptrdiff_t>(block->begin),
                                 lines.begin() + static_cast<ptrdiff_t>(block->end), "\n"),
                   kMaxTracebackBytes);
}

std::string ExceptionOf(const WorkerFailure& failure) {
  if (!failure.message.empty()) {
    if (!absl::StrContains(failure.message, kOriginalTraceback)) {
      return OneCleanLine(failure.message);
    }
    const Lines lines = SplitLines(failure.message);
    const std::optional<Block> block = LastBlock(lines);
    return OneCleanLine(block ? lines[block->exception] : failure.message);
  }
  // Another signal ended the worker: it survived any exception that it wrote.
  if (failure.signal != 0 && failure.signal != SIGABRT) return "";
  const Lines lines = SplitLines(failure.traceback.empty() ? failure.log_tail : failure.traceback);
  const std::string uncaught = UncaughtInCpp(lines);
  if (!uncaught.empty()) return OneCleanLine(uncaught);
  const std::optional<Block> block = LastBlock(lines);
  return block ? OneCleanLine(lines[block->exception]) : "";
}

std::vector<std::string> MoreOfException(const WorkerFailure& failure) {
  const bool told = !failure.message.empty();
  if (told && absl::StrContains(failure.message, kOriginalTraceback)) return {};
  const Lines lines = SplitLines(told ? failure.message : absl::string_view(failure.traceback));
  size_t begin = 1, end = lines.size();
  if (!told) {
    const std::optional<Block> block = LastBlock(lines);
    if (!block) return {};
    begin = block->exception + 1;
    end = block->end;
  }
  std::vector<std::string> more;
  for (size_t i = begin; i < end && more.size() < kMaxMoreLines; ++i) {
    std::string line = OneCleanLine(lines[i]);
    if (!line.empty()) more.push_back(std::move(line));
  }
  return more;
}

FailureKind KindOf(const WorkerFailure& failure) {
  if (absl::StrContains(failure.evidence, kWhileItWaits)) return FailureKind::kTimedOut;
  if (absl::StrContains(failure.evidence, kOpenMpiLostRank)) return FailureKind::kPeerGone;
  if (failure.signal == SIGPIPE) return FailureKind::kPeerGone;
  if (failure.signal != 0 && failure.signal != SIGABRT) return FailureKind::kOriginal;
  const std::string words = LastWords(failure);
  if (HasAny(words, kNoConnect)) return FailureKind::kNoConnect;
  if (HasAny(words, kTimedOut)) return FailureKind::kTimedOut;
  return HasAny(words, kPeerGone) ? FailureKind::kPeerGone : FailureKind::kOriginal;
}

bool HasGivenUp(absl::string_view tail) {
  WorkerFailure failure;
  failure.exit_code = 1;
  failure.log_tail = std::string(tail);
  failure.traceback = TracebackIn(tail);
  return KindOf(failure) != FailureKind::kOriginal;
}

Cause FirstCause(const std::vector<WorkerFailure>& failures) {
  std::array<size_t, 4> first;  // The first failure of each kind.
  first.fill(failures.size());
  for (size_t i = failures.size(); i-- > 0;) first[static_cast<size_t>(KindOf(failures[i]))] = i;
  Cause cause;
  size_t kind = 0;
  while (first[kind] == failures.size()) ++kind;
  cause.index = first[kind];
  cause.kind = static_cast<FailureKind>(kind);
  if (cause.kind != FailureKind::kOriginal) {
    cause.index = WhoSaysMost(failures, cause.index);
    cause.kind = KindOf(failures[cause.index]);
    cause.accusation = AccusationIn(LastWords(failures[cause.index]));
  }
  const FailureKind before = KindOf(failures[0]);
  const std::string name = Name(failures[cause.index]);
  if (cause.index > 0) {
    cause.reason = absl::StrCat(name, " ", Did(cause.kind), "; ", cause.index,
                                cause.index == 1 ? " failure" : " failures",
                                " heard before: ", Name(failures[0]), " ", Did(before));
  } else if (cause.kind != FailureKind::kOriginal) {
    cause.reason =
        absl::StrCat(name, " ", Did(cause.kind), ", and no failure that explains it was heard of");
  } else if (failures.size() > 1) {
    cause.reason = absl::StrCat(name, " was heard of first");
  }
  return cause;
}

Duration CauseWindow(FailureKind kind) {
  switch (kind) {
    case FailureKind::kOriginal:
      return Duration::zero();
    case FailureKind::kTimedOut:
      return std::chrono::seconds(3);
    case FailureKind::kNoConnect:
    case FailureKind::kPeerGone:
      return std::chrono::milliseconds(900);  // So the report comes within a second.
  }
  return Duration::zero();
}

void Shorten(WorkerFailure& failure) {
  if (failure.message.empty()) failure.message = ExceptionOf(failure);
  failure.log_tail.clear();
  failure.traceback.clear();
}

}  // namespace hlaunch
