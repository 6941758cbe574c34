// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/first_cause.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "proto/base/utf8_prefix.h"
#include "rendezvous/round/cause/traceback.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxExceptionBytes = 300;
constexpr size_t kLastLines = 5;  // Searched if no exception was found.

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

// Removes the general remarks of gloo, c10d and NCCL's watchdog, so that the rest has room.
std::string WithoutNoise(absl::string_view text) {
  std::string line = WithShortPlace(text);
  EraseBetween("[PG ID ", "watchdog thread terminated with exception: ", &line);
  EraseBetween(" This is typically caused by a remote worker", "GLHF!", &line);
  line = std::string(absl::StripSuffix(line, " \xF0\x9F\x8F\x96\xEF\xB8\x8F"));  // Of torch 2.15.
  EraseBetween(", TensorDeviceTypes=TensorOptions(", "(nullopt))", &line);
  return absl::StrReplaceAll(line, {{"is running collective: CollectiveFingerPrint(", "runs ("}});
}

std::string OneCleanLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  std::string line = WithoutNoise(Utf8Prefix(text.substr(0, text.find('\n')), kMaxTextBytes));
  if (line.size() > kMaxExceptionBytes) {
    line = absl::StrCat(Utf8Prefix(line, kMaxExceptionBytes - 3), "...");
  }
  std::replace_if(line.begin(), line.end(), absl::ascii_iscntrl, '?');
  return line;
}

// Returns the text that is searched for signatures.
std::string LastWords(const WorkerFailure& failure) {
  std::string words = ExceptionOf(failure);
  if (!words.empty()) return words;
  StderrLines lines = SplitStderr(absl::StripTrailingAsciiWhitespace(failure.log_tail));
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

absl::string_view Did(CauseKind kind) {
  switch (kind) {
    case CauseKind::kOriginal:
      return "failed by itself";
    case CauseKind::kNoConnect:
      return "could not connect";
    case CauseKind::kTimedOut:
      return "waited in vain";
    case CauseKind::kPeerGone:
      return "lost a connection";
  }
  return "";
}

}  // namespace

std::string ExceptionOf(const WorkerFailure& failure) {
  if (!failure.message.empty()) {
    if (!absl::StrContains(failure.message, kOriginalTraceback)) {
      return OneCleanLine(failure.message);
    }
    const StderrLines lines = SplitStderr(failure.message);
    const std::optional<TracebackBlock> block = LastTraceback(lines);
    return OneCleanLine(block ? lines[block->exception] : failure.message);
  }
  // Another signal ended the worker: it survived any exception that it wrote.
  if (failure.signal != 0 && failure.signal != SIGABRT) return "";
  const StderrLines lines =
      SplitStderr(failure.traceback.empty() ? failure.log_tail : failure.traceback);
  const std::string uncaught = UncaughtInCpp(lines);
  if (!uncaught.empty()) return OneCleanLine(uncaught);
  const std::optional<TracebackBlock> block = LastTraceback(lines);
  return block ? OneCleanLine(lines[block->exception]) : "";
}

std::vector<std::string> MoreOfException(const WorkerFailure& failure) {
  const bool told = !failure.message.empty();
  if (told && absl::StrContains(failure.message, kOriginalTraceback)) return {};
  const StderrLines lines =
      SplitStderr(told ? failure.message : absl::string_view(failure.traceback));
  size_t begin = 1, end = lines.size();
  if (!told) {
    const std::optional<TracebackBlock> block = LastTraceback(lines);
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

CauseKind KindOf(const WorkerFailure& failure) {
  if (failure.kind == FailureKind::kStalledWaiting) return CauseKind::kTimedOut;
  if (failure.kind == FailureKind::kMpiPeerLost) return CauseKind::kPeerGone;
  if (failure.signal == SIGPIPE) return CauseKind::kPeerGone;
  if (failure.signal != 0 && failure.signal != SIGABRT) return CauseKind::kOriginal;
  const std::string words = LastWords(failure);
  if (HasAny(words, kNoConnect)) return CauseKind::kNoConnect;
  if (HasAny(words, kTimedOut)) return CauseKind::kTimedOut;
  return HasAny(words, kPeerGone) ? CauseKind::kPeerGone : CauseKind::kOriginal;
}

bool HasGivenUp(absl::string_view tail) {
  WorkerFailure failure;
  failure.exit_code = 1;
  failure.log_tail = std::string(tail);
  failure.traceback = TracebackIn(tail);
  return KindOf(failure) != CauseKind::kOriginal;
}

Cause FirstCause(const std::vector<WorkerFailure>& failures) {
  std::array<size_t, 4> first;  // The first failure of each kind.
  first.fill(failures.size());
  for (size_t i = failures.size(); i-- > 0;) first[static_cast<size_t>(KindOf(failures[i]))] = i;
  Cause cause;
  size_t kind = 0;
  while (first[kind] == failures.size()) ++kind;
  cause.index = first[kind];
  cause.kind = static_cast<CauseKind>(kind);
  if (cause.kind != CauseKind::kOriginal) {
    cause.index = WhoSaysMost(failures, cause.index);
    cause.kind = KindOf(failures[cause.index]);
    cause.accusation = AccusationIn(LastWords(failures[cause.index]));
  }
  const CauseKind before = KindOf(failures[0]);
  const std::string name = Name(failures[cause.index]);
  if (cause.index > 0) {
    cause.reason = absl::StrCat(name, " ", Did(cause.kind), "; ", cause.index,
                                cause.index == 1 ? " failure" : " failures",
                                " heard before: ", Name(failures[0]), " ", Did(before));
  } else if (cause.kind != CauseKind::kOriginal) {
    cause.reason =
        absl::StrCat(name, " ", Did(cause.kind), ", and no failure that explains it was heard of");
  } else if (failures.size() > 1) {
    cause.reason = absl::StrCat(name, " was heard of first");
  }
  return cause;
}

Duration CauseWindow(CauseKind kind) {
  switch (kind) {
    case CauseKind::kOriginal:
      return Duration::zero();
    case CauseKind::kTimedOut:
      return std::chrono::seconds(3);
    case CauseKind::kNoConnect:
    case CauseKind::kPeerGone:
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
